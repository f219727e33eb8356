// modules: HubBytes HubGeo HubMessages
// libFuzzer entry for the message readers (run.sh in this folder builds and runs it): no input may crash them, and what
// they read must survive being written.
// The corpus may be seeded with the lines of protocol/examples.ndjson, a file each.
import HubBytes
import HubGeo
import HubMessages

nonisolated(unsafe) private let reader = MessageReader()  // libFuzzer calls from one thread only

/// The first byte chooses the time format and the reader, the rest is the message.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMessages(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  guard size > 0, let time = TimeFormat(rawValue: data[0] % 3) else { return 0 }
  let message = UnsafeRawBufferPointer(start: data + 1, count: size - 1)
  switch data[0] / 3 % 7 {
  case 0: fuzzClient(message, time)
  case 1: fuzzServer(message, time)
  case 2: fuzzBody(message, time)
  case 3: fuzzPolygons(message)
  case 4: fuzzFence(message, time)
  case 5: fuzzRequests(message, time)
  default: fuzzLastEventID(message)
  }
  return 0
}

/// A space before a message sends it the long way, over the tape, and means nothing.
private func checkBothWays(_ message: UnsafeRawBufferPointer, _ time: TimeFormat) {
  guard message.count < 4000, String(validating: message, as: UTF8.self) != nil else { return }
  let spaced = [0x20] + message
  var short: ClientEnvelope?
  var long: ClientEnvelope?
  var shortError: MessageError?
  var longError: MessageError?
  do throws(MessageError) { short = try reader.read(message, time: time, isValidUTF8: true) } catch {
    shortError = error
  }
  do throws(MessageError) {
    long = try spaced.span.withUnsafeBytes { (bytes) throws(MessageError) in
      try reader.read(bytes, time: time, isValidUTF8: true)
    }
  } catch { longError = error }
  precondition(short == long, "both ways give the same")
  precondition(shortError?.code == longError?.code && shortError?.messageID == longError?.messageID)
}

private func fuzzClient(_ message: UnsafeRawBufferPointer, _ time: TimeFormat) {
  checkBothWays(message, time)
  guard let read = success({ () throws(MessageError) in try reader.read(message, time: time, isValidUTF8: false) })
  else { return }
  var buffer = ByteBuffer()
  JSONWriter.write(read.message, messageID: read.messageID, timestamp: read.timestamp, time: time, into: &buffer)
  let again = buffer.withBytes { bytes in
    success { () throws(MessageError) in try reader.read(bytes, time: time, isValidUTF8: false) }
  }
  guard var again else { preconditionFailure("what was written is not read") }
  if case .locationBatch(let first) = read.message, case .locationBatch(let second) = again.message {
    precondition(first.tripID == second.tripID && first.fixes.count == second.fixes.count)
    for (a, b) in zip(first.fixes, second.fixes) {
      if case .success(let fix) = a { precondition(b == .success(fix)) }
    }
    again.message = read.message  // what a bad fix was refused for is not written
  }
  precondition(again == read, "what was written means something else")
}

private func fuzzServer(_ message: UnsafeRawBufferPointer, _ time: TimeFormat) {
  guard
    let read = success({ () throws(MessageError) in try reader.readServer(message, time: time, isValidUTF8: false) })
  else { return }
  var buffer = ByteBuffer()
  switch read.message {
  case .publication(let publication):
    JSONWriter.write(publication, time: time, into: &buffer)
  case .reply(let reply):
    JSONWriter.write(reply, timestamp: read.timestamp, messageID: 1, time: time, into: &buffer)
  case .unknown: return
  }
  let again = buffer.withBytes { bytes in
    success { () throws(MessageError) in try reader.readServer(bytes, time: time, isValidUTF8: false) }
  }
  precondition(again?.message == read.message, "what was written means something else")
}

private func fuzzBody(_ message: UnsafeRawBufferPointer, _ time: TimeFormat) {
  guard let batch = success({ () throws(MessageError) in try reader.readLocations(message, time: time) }) else {
    return
  }
  precondition((1...LocationBatch.maximumCount).contains(batch.fixes.count))
}

/// Polygons that are read have an area and a box with all their positions, and are read again as they are written.
private func fuzzPolygons(_ message: UnsafeRawBufferPointer) {
  guard let read = success({ () throws(MessageError) in try reader.readPolygons(message) }) else { return }
  for (polygon, rings) in zip(read.polygons, read.positions) {
    precondition(polygon.areaSquareMeters >= 0 || rings.count > 1)
    for ring in rings { for position in ring { precondition(polygon.contains(position) || rings.count > 2) } }
  }
  var buffer = ByteBuffer()
  JSONWriter.write(read, into: &buffer)
  let again = buffer.withBytes { bytes in success { () throws(MessageError) in try reader.readPolygons(bytes) } }
  precondition(again == read && again?.polygons == read.polygons, "what was written means something else")
}

/// A fence that is read is the same when it is put again as it is shown.
private func fuzzFence(_ message: UnsafeRawBufferPointer, _ time: TimeFormat) {
  let id = Identifier("F")!
  guard let read = success({ () throws(MessageError) in try reader.readFence(message, id: id) }) else { return }
  var buffer = ByteBuffer()
  let report = FenceReport(fence: read, updated: Timestamp(milliseconds: 0), inside: 0)
  JSONWriter.write(report, time: time, into: &buffer)
  let again = buffer.withBytes { bytes in success { () throws(MessageError) in try reader.readFence(bytes, id: id) } }
  precondition(again == read, "what was written means something else")
}

/// Bodies of requests that say what messages say: what is read of them is read again as a message.
private func fuzzRequests(_ body: UnsafeRawBufferPointer, _ time: TimeFormat) {
  let (id, now) = (Identifier("T")!, Timestamp(milliseconds: 1_763_680_000_000))
  let messages: [ClientMessage?] = [
    success { () throws(MessageError) in try reader.readTripRequest(body, time: time, id: id, now: now) }
      .map { .tripStatus($0) },
    success { () throws(MessageError) in try reader.readTripMove(body, time: time, id: id, now: now) }
      .map { .tripStatus($0.report) },
    success { () throws(MessageError) in try reader.readTripChange(body, id: id) }.map { .tripChange($0) },
    success { () throws(MessageError) in try reader.readDriverStatus(body) }.map { .driverStatus($0) },
  ]
  for message in messages.compactMap({ $0 }) {
    var buffer = ByteBuffer()
    JSONWriter.write(message, messageID: MessageID("m")!, timestamp: now, time: time, into: &buffer)
    let again = buffer.withBytes { bytes in
      success { () throws(MessageError) in try reader.read(bytes, time: time, isValidUTF8: false) }
    }
    precondition(again?.message == message, "what was written means something else")
  }
  if let post = success({ () throws(MessageError) in try reader.readNotification(body) }) {
    precondition(!post.title.isEmpty && !post.body.isEmpty)
  }
  if let criteria = success({ () throws(MessageError) in try reader.readOfferCriteria(body) }) {
    precondition(criteria.radiusMeters > 0 && criteria.radiusMeters.isFinite && criteria.atOnce > 0)
  }
}

/// The first byte says how many channels the stream has.
private func fuzzLastEventID(_ bytes: UnsafeRawBufferPointer) {
  guard let first = bytes.first else { return }
  let channels = Int(first % 16) + 1
  guard let last = LastEventID(bytes.dropFirst(), channels: channels) else { return }
  precondition(last.points.count == channels)
  var buffer = ByteBuffer()
  last.writeLine(into: &buffer)
  let line = buffer.array()
  precondition(LastEventID(line.dropFirst(4).dropLast(), channels: channels) == last, "what was written is not read")
}

private func success<T>(_ body: () throws(MessageError) -> T) -> T? {
  do {
    return try body()
  } catch {
    precondition(!error.text.isEmpty)
    return nil
  }
}
