// The pieces and the bytes they work on: the message that hub-loadtest sends, and the position that the hub makes of
// it.

import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubWebSocket

/// One piece of the way of a message; the raw value is its name on the command line.
enum Piece: String, CaseIterable {
  case readLocationUpdate = "read-location_update"
  /// A `location_update` behind a space, which sends it the way of all other messages.
  case readByTape = "read-by-tape"
  /// One fix through a driver's tracker: placed in time, filtered, rounded.
  case trackFix = "track-fix"
  case writeDriverLocation = "write-driver_location"
  /// A fix and a position in binary: the trip was named before, the channel's names are agreed on.
  case readBinaryUpdate = "read-binary-location_update"
  case writeBinaryLocation = "write-binary-driver_location"
  /// 100 drivers of one cell as riders see them.
  case writeArea = "write-area_update"
  case writeBinaryArea = "write-binary-area_update"
  case unmaskFrame = "unmask-frame"
  case maskFrame = "mask-frame"
  /// A fix on a trip that somebody follows, from the hub's input to its output.
  case hubFix = "hub-fix"
  /// A fix where the trip has a route that the driver is on: with its ETA.
  case hubFixOnRoute = "hub-fix-on-route"
  /// A fix with a journal: its record is written, and handed over.
  case hubStoredFix = "hub-fix-stored"
  /// A fix of a driver who drives round a city: without fences, and with 10,000 of them, what happens at them included.
  case hubFixInCity = "hub-fix-in-city"
  case hubFixInFences = "hub-fix-in-10000-fences"
  /// A batch of 50 fixes that are newer than all before: read, and taken in with a journal.
  case readLocationBatch = "read-location_batch"
  case hubStoredBatch = "hub-batch-stored"
  /// The 10 nearest of 100,000 drivers in a city; one of them moves.
  case indexNearest = "index-nearest"
  case indexMove = "index-move"
  case parseNumber = "parse-number"
  case printNumber = "print-number"
}

/// Runs pieces again and again on memory that is made once.
struct MicroBench: ~Copyable {
  /// As from loadtest/HubLoadTest: the members that a phone sends with every fix.
  private static let message: StaticString = """
    {"type":"location_update","payload":{"tripId":"T17","latitude":48.1234567,"longitude":11.5,"accuracy":5.2,\
    "heading":0.5,"speed":10.01,"timestamp":1700000123000},"timestamp":1763680000123,"messageId":"d17-123"}
    """
  private static let spaced: StaticString = """
     {"type":"location_update","payload":{"tripId":"T17","latitude":48.1234567,"longitude":11.5,"accuracy":5.2,\
    "heading":0.5,"speed":10.01,"timestamp":1700000123000},"timestamp":1763680000123,"messageId":"d17-123"}
    """
  private static let number: StaticString = "48.1234567"

  private let reader = MessageReader()
  private var frames = FrameReader(role: .server)
  private var output = ByteBuffer(capacity: 4096)
  private var frame = ByteBuffer(capacity: 4096)
  private let limits = FrameLimits()
  private var hub = HubBench()
  private var routedHub = HubBench(isOnRoute: true)
  private var storingHub = HubBench(isStored: true)
  /// Made when it is needed: a city takes a while.
  private var index: IndexBench?
  private var city: FenceBench?
  private var fencedCity: FenceBench?
  private let publication: Publication
  private let binary: BinaryBench
  /// A round of 256 s at 15 m/s with a fix each second, metres of noise on each, and the driver who drives it.
  private let lap: [Fix]
  private var tracker = Tracker()
  private var trackTime: Int64 = 1_700_000_000_000
  /// What came out goes in here, so that no call can be left out.
  private var sum: UInt64 = 0

  init() {
    guard let driver = Identifier("driver-17"), let trip = Identifier("T17"),
      let place = Coordinate(latitude: 48.1234567, longitude: 11.5)
    else { preconditionFailure("the ids and the place are right") }
    let location = DriverLocation(
      driverID: driver, tripID: trip, coordinate: place, heading: 0.51, speed: 10.01, accuracy: 4.37,
      confidence: .high, timestamp: Timestamp(milliseconds: 1_700_000_123_000), age: 0.012, after: 3)
    publication = Publication(
      channel: .trip(trip), number: 123_456, timestamp: Timestamp(milliseconds: 1_763_680_000_123),
      body: .driverLocation(location))
    binary = BinaryBench(publication, trip)
    lap = MicroBench.lap(around: place)
  }

  private static func lap(around center: Coordinate) -> [Fix] {
    let radius = 15.0 * 256 / (2 * .pi)
    return (0..<256).map { second in
      let direction = Double(second) * 360 / 256
      let noise = Double(second * 7919 % 13) / 13 - 0.5
      return Fix(
        coordinate: center.destination(bearingDegrees: direction, distanceMeters: radius + noise * 6),
        timestamp: Timestamp(milliseconds: 0), accuracy: 5,
        heading: (direction + 90 + noise).truncatingRemainder(dividingBy: 360), speed: 15 + noise / 4)
    }
  }

  /// The bytes of messages in each form.
  func printBytes() { BytesTable(publication, binary).print() }

  mutating func run(_ piece: Piece, calls: Int) {
    switch piece {
    case .readLocationUpdate: readLocationUpdates(MicroBench.message, calls)
    case .readByTape: readLocationUpdates(MicroBench.spaced, calls)
    case .trackFix: trackFixes(calls)
    case .writeDriverLocation: writeJSON(publication, calls)
    case .readBinaryUpdate: readBinaryUpdates(calls)
    case .writeBinaryLocation: writeBinary(publication, binary.names, calls)
    case .writeArea: writeJSON(binary.area, calls)
    case .writeBinaryArea: writeBinary(binary.area, ImpliedNames(), calls)
    case .unmaskFrame: unmaskFrames(calls)
    case .maskFrame: maskFrames(calls)
    case .hubFix: takeFixes(calls)
    case .hubFixOnRoute: takeFixesOnRoute(calls)
    case .hubStoredFix: takeStoredFixes(calls)
    case .hubFixInCity:
      if city == nil { city = FenceBench(fences: 0) }
      sum &+= city!.takeFixes(calls)
    case .hubFixInFences:
      if fencedCity == nil { fencedCity = FenceBench(fences: 10_000) }
      sum &+= fencedCity!.takeFixes(calls)
    case .readLocationBatch: readBatches(calls)
    case .hubStoredBatch: for _ in 0..<calls { sum &+= UInt64(storingHub.takeBatch()) }
    case .indexNearest: searchIndex(calls) { $0.nearest() }
    case .indexMove: searchIndex(calls) { $0.move() }
    case .parseNumber: parseNumbers(calls)
    case .printNumber: printNumbers(calls)
    }
  }

  private static func bytes(_ text: StaticString) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }

  private mutating func readLocationUpdates(_ message: StaticString, _ calls: Int) {
    let bytes = MicroBench.bytes(message)
    for _ in 0..<calls {
      do throws(MessageError) {
        let read = try reader.read(bytes, time: .unixMilliseconds, isValidUTF8: true)
        guard case .locationUpdate(let update) = read.message else { preconditionFailure("it is an update") }
        sum &+= update.fix.coordinate.latitude.bitPattern &+ UInt64(bitPattern: read.timestamp.milliseconds)
      } catch {
        preconditionFailure(error.text)
      }
    }
  }

  private mutating func readBatches(_ calls: Int) {
    var message = ByteBuffer()
    // As phones round them.
    let fixes = lap[..<HubBench.batch].map { fix -> Result<Fix, ErrorCode> in
      var fix = fix
      fix.speed = fix.speed.map { ($0 * 100).rounded() / 100 }
      fix.heading = fix.heading.map { ($0 * 100).rounded() / 100 }
      let latitude = (fix.coordinate.latitude * 1e7).rounded() / 1e7
      let longitude = (fix.coordinate.longitude * 1e7).rounded() / 1e7
      guard let place = Coordinate(latitude: latitude, longitude: longitude) else { return .failure(.invalidLocation) }
      fix.coordinate = place
      return .success(fix)
    }
    JSONWriter.write(
      .locationBatch(LocationBatch(tripID: Identifier("T17"), fixes: fixes)), messageID: MessageID("d17-123")!,
      timestamp: Timestamp(milliseconds: 1_763_680_000_123), time: .unixMilliseconds, into: &message)
    for _ in 0..<calls {
      do throws(MessageError) {
        let read = try message.withBytes { (bytes) throws(MessageError) in
          try reader.read(bytes, time: .unixMilliseconds, isValidUTF8: true)
        }
        guard case .locationBatch(let batch) = read.message else { preconditionFailure("it is a batch") }
        sum &+= UInt64(batch.fixes.count)
      } catch {
        preconditionFailure(error.text)
      }
    }
  }

  private mutating func trackFixes(_ calls: Int) {
    for call in 0..<calls {
      trackTime += 1000
      var fix = lap[call & 255]
      fix.timestamp = Timestamp(milliseconds: trackTime)
      guard case .accepted(let position) = tracker.update(fix, receivedAt: trackTime * 1_000_000) else {
        preconditionFailure("each fix is newer")
      }
      sum &+= position.coordinate.latitude.bitPattern
    }
  }

  private mutating func writeJSON(_ publication: Publication, _ calls: Int) {
    for _ in 0..<calls {
      output.removeAll()
      JSONWriter.write(publication, time: .unixMilliseconds, into: &output)
      sum &+= UInt64(output.count)
    }
  }

  private mutating func writeBinary(_ publication: Publication, _ names: ImpliedNames, _ calls: Int) {
    for _ in 0..<calls {
      output.removeAll()
      BinaryWriter.write(publication, handle: 4711, names: names, into: &output)
      sum &+= UInt64(output.count)
    }
  }

  private mutating func readBinaryUpdates(_ calls: Int) {
    for _ in 0..<calls {
      do throws(MessageError) {
        let read = try binary.update.span.withUnsafeBytes { (bytes) throws(MessageError) in
          try BinaryReader.read(bytes, tripBefore: binary.trip)
        }
        guard case .locationUpdate(let update) = read.message else { preconditionFailure("it is an update") }
        sum &+= update.fix.coordinate.latitude.bitPattern &+ UInt64(bitPattern: read.timestamp.milliseconds)
      } catch {
        preconditionFailure(error.text)
      }
    }
  }

  /// One masked text frame of the message, as it comes from the socket; reading it unmasks it in place, so that every
  /// second call sees other bytes: the mask 0x01010101 leaves them ASCII.
  private mutating func unmaskFrames(_ calls: Int) {
    frame.removeAll()
    FrameWriter.write(.text, MicroBench.bytes(MicroBench.message), mask: MaskKey(0x0101_0101), into: &frame)
    for _ in 0..<calls {
      let length = frame.withMutableBytes { (bytes) -> Int in
        var offset = 0
        do throws(FrameError) {
          guard case .message(_, let payload, isCompressed: _) = try frames.next(in: bytes, at: &offset, limits: limits)
          else { preconditionFailure("it is a message") }
          return payload.count
        } catch {
          preconditionFailure("\(error)")
        }
      }
      sum &+= UInt64(length)
    }
  }

  private mutating func maskFrames(_ calls: Int) {
    for call in 0..<calls {
      output.removeAll()
      let payload = FrameWriter.begin(as: .client, in: &output)
      output.append(MicroBench.bytes(MicroBench.message))
      let start = FrameWriter.finish(
        .text, payloadAt: payload, mask: MaskKey(UInt32(truncatingIfNeeded: call)), in: &output)
      sum &+= UInt64(start)
    }
  }

  private mutating func takeFixes(_ calls: Int) {
    for _ in 0..<calls {
      let count = hub.takeFix()
      precondition(count >= 1, "each fix makes a position")
      sum &+= UInt64(count)
    }
  }

  private mutating func takeFixesOnRoute(_ calls: Int) {
    for _ in 0..<calls {
      let count = routedHub.takeFix()
      precondition(count >= 1, "each fix makes a position")
      sum &+= UInt64(count)
    }
  }

  private mutating func takeStoredFixes(_ calls: Int) {
    for _ in 0..<calls {
      let count = storingHub.takeFix()
      precondition(count >= 1, "each fix makes a position")
      sum &+= UInt64(count)
    }
  }

  private mutating func searchIndex(_ calls: Int, _ step: (inout IndexBench) -> Int) {
    if index == nil { index = IndexBench() }
    for _ in 0..<calls { sum &+= UInt64(step(&index!)) }
  }

  private mutating func parseNumbers(_ calls: Int) {
    let bytes = MicroBench.bytes(MicroBench.number)
    for _ in 0..<calls {
      guard let value = parseDouble(bytes) else { preconditionFailure("it is a number") }
      sum &+= value.bitPattern
    }
  }

  private mutating func printNumbers(_ calls: Int) {
    for call in 0..<calls {
      output.removeAll()
      output.append(fixed: 48.1 + Double(call & 1) * 0.0234567, decimals: 7)
      sum &+= UInt64(output.count)
    }
  }
}
