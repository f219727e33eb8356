// What the tests of binary messages share: reading and writing them, and messages whose numbers are on the steps.
import Foundation
import HubBytes
import HubGeo
import HubMessages

/// One end of a binary connection as tests need it: what a client has sent before, what the hub has named.
struct BinaryPeer {
  var reader = BinaryServerReader()
  var tripBefore: Identifier?
  /// By channel.
  var naming: [Channel: (handle: UInt32, names: ImpliedNames)] = [:]

  /// Reads as the hub does, which remembers the trip.
  mutating func readClient(_ bytes: [UInt8]) throws(MessageError) -> ClientEnvelope {
    let tripBefore = self.tripBefore
    let read = try bytes.span.withUnsafeBytes { (bytes) throws(MessageError) in
      try BinaryReader.read(bytes, tripBefore: tripBefore)
    }
    if case .locationUpdate(let update) = read.message, let trip = update.tripID { self.tripBefore = trip }
    return read
  }

  /// Writes as a client does, which remembers the trip.
  mutating func write(_ envelope: ClientEnvelope) -> [UInt8] {
    var buffer = ByteBuffer()
    BinaryWriter.write(
      envelope.message, messageID: envelope.messageID, timestamp: envelope.timestamp, tripBefore: tripBefore,
      into: &buffer)
    if case .locationUpdate(let update) = envelope.message, let trip = update.tripID { tripBefore = trip }
    return buffer.array()
  }

  mutating func readServer(_ bytes: [UInt8]) throws(MessageError) -> ServerEnvelope? {
    var reader = self.reader
    defer { self.reader = reader }
    return try bytes.span.withUnsafeBytes { (bytes) throws(MessageError) in try reader.read(bytes) }
  }

  /// Writes as the hub does; a message of an unknown type is empty.
  func write(_ envelope: ServerEnvelope) -> [UInt8] {
    var buffer = ByteBuffer()
    switch envelope.message {
    case .publication(let publication):
      let known = naming[publication.channel]
      BinaryWriter.write(
        publication, handle: known?.handle ?? 0, names: known?.names ?? ImpliedNames(), into: &buffer)
    case .reply(let reply):
      var known: (handle: UInt32, names: ImpliedNames)?
      if case .subscribed(let answer) = reply { known = naming[answer.channel] }
      let number = UInt64(envelope.messageID.description.dropFirst()) ?? 0
      BinaryWriter.write(
        reply, timestamp: envelope.timestamp, messageID: number, naming: known, into: &buffer)
    case .unknown: break
    }
    return buffer.array()
  }

  /// Lets the reader know a channel, as `subscribed` does, and the time.
  mutating func name(
    _ channel: Channel, _ handle: UInt32, _ names: ImpliedNames = ImpliedNames(), at time: Timestamp
  ) throws {
    guard let id = MessageID("s1"), let epoch = InlineText("k3v9q2") else { throw Unexpected() }
    naming[channel] = (handle, names)
    var answer = Subscribed(
      replyTo: id, channel: channel, sequence: 0, epoch: epoch, recovered: false, snapshot: nil)
    if channel == .stats { answer.history = [] }
    let read = try readServer(
      write(ServerEnvelope(messageID: id, timestamp: time, message: .reply(.subscribed(answer)))))
    guard read?.message == .reply(.subscribed(answer)) else { throw Unexpected() }
  }
}

/// The nearest number of steps, as a decimal fraction means it.
private func onStep(_ value: Double, _ steps: Double) -> Double { (value * steps).rounded() / steps }

/// The message with the numbers of its fixes on the steps of binary messages.
func onSteps(_ envelope: ClientEnvelope) throws -> ClientEnvelope {
  func hundredths(_ value: Double?) -> Double? { value.map { onStep($0, 100) } }
  func rounded(_ fix: Fix) throws -> Fix {
    guard
      let place = Coordinate(
        latitude: onStep(fix.coordinate.latitude, 1e7), longitude: onStep(fix.coordinate.longitude, 1e7))
    else { throw Unexpected() }
    return Fix(
      coordinate: place, timestamp: fix.timestamp, accuracy: hundredths(fix.accuracy),
      heading: hundredths(fix.heading), speed: hundredths(fix.speed), altitude: hundredths(fix.altitude),
      headingAccuracy: hundredths(fix.headingAccuracy), speedAccuracy: hundredths(fix.speedAccuracy),
      source: fix.source, batteryLevel: hundredths(fix.batteryLevel))
  }
  var envelope = envelope
  switch envelope.message {
  case .locationUpdate(let update):
    envelope.message = .locationUpdate(LocationUpdate(tripID: update.tripID, fix: try rounded(update.fix)))
  case .locationBatch(var batch):
    batch.fixes = try batch.fixes.map {
      switch $0 {
      case .success(let fix): .success(try rounded(fix))
      case .failure: .failure(.badMessage)
      }
    }
    envelope.message = .locationBatch(batch)
  case .driverStatus, .tripStatus, .tripChange, .offerDecline, .subscribe, .unsubscribe, .ping, .refresh, .query: break
  }
  return envelope
}

/// The message as a client of binary knows it: state has no number.
func withoutNumberOfState(_ envelope: ServerEnvelope) throws -> ServerEnvelope {
  guard case .publication(var publication) = envelope.message else { return envelope }
  switch publication.body {
  case .tripUpdate, .notification, .offer: return envelope
  case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats: break
  }
  guard let id = MessageID("p0") else { throw Unexpected() }
  publication.number = 0
  return ServerEnvelope(messageID: id, timestamp: envelope.timestamp, message: .publication(publication))
}

func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

func bytes(hex: String) throws -> [UInt8] {
  try stride(from: 0, to: hex.utf8.count, by: 2).map { offset in
    guard let byte = UInt8(hex.dropFirst(offset).prefix(2), radix: 16) else { throw Unexpected() }
    return byte
  }
}
