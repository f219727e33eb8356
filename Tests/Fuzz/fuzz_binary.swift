// modules: HubBytes HubGeo HubMessages
// libFuzzer entry for the readers of binary messages (run.sh in this folder builds and runs it): no input may crash
// them, and what they read means the same when it is written and read again.
import HubBytes
import HubGeo
import HubMessages

/// The first byte chooses the reader; the hub's is given a row of messages, as on one connection.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzBinary(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
  guard size > 0 else { return 0 }
  let input = UnsafeRawBufferPointer(start: data + 1, count: size - 1)
  if data[0] & 1 == 0 { fuzzClient(input, hasTrip: data[0] & 2 != 0) } else { fuzzServer(input) }
  return 0
}

private func fuzzClient(_ message: UnsafeRawBufferPointer, hasTrip: Bool) {
  let tripBefore = hasTrip ? Identifier("trip-7") : nil
  guard let read = success({ () throws(MessageError) in try BinaryReader.read(message, tripBefore: tripBefore) })
  else { return }
  var buffer = ByteBuffer()
  BinaryWriter.write(
    read.message, messageID: read.messageID, timestamp: read.timestamp, tripBefore: tripBefore, into: &buffer)
  let written = buffer.array()
  let again = written.span.withUnsafeBytes { bytes in
    success { () throws(MessageError) in try BinaryReader.read(bytes, tripBefore: tripBefore) }
  }
  guard let again else { preconditionFailure("what was written is not read") }
  precondition(again.messageID == read.messageID && again.timestamp == read.timestamp)
  // Numbers of more than 2^50 steps become the largest that is exact: compared when written once more.
  var third = ByteBuffer()
  BinaryWriter.write(
    again.message, messageID: again.messageID, timestamp: again.timestamp, tripBefore: tripBefore, into: &third)
  precondition(third.array() == written, "what was written means something else")
}

/// Messages in a row, each behind a byte with its length.
private func fuzzServer(_ input: UnsafeRawBufferPointer) {
  var reader = BinaryServerReader()
  var offset = 0
  while offset < input.count {
    let length = min(Int(input[offset]), input.count - offset - 1)
    let message = UnsafeRawBufferPointer(rebasing: input[offset + 1..<offset + 1 + length])
    offset += 1 + length
    guard let read = success({ () throws(MessageError) in try reader.read(message) }), let envelope = read else {
      continue
    }
    var buffer = ByteBuffer()
    switch envelope.message {
    case .publication(let publication):
      BinaryWriter.write(publication, handle: 1, names: ImpliedNames(), into: &buffer)
      JSONWriter.write(publication, time: .unixMilliseconds, into: &buffer)
    case .reply(let reply):
      BinaryWriter.write(reply, timestamp: envelope.timestamp, messageID: 1, into: &buffer)
      JSONWriter.write(reply, timestamp: envelope.timestamp, messageID: 1, time: .unixMilliseconds, into: &buffer)
    case .unknown: break
    }
  }
}

private func success<T>(_ body: () throws(MessageError) -> T) -> T? {
  do {
    return try body()
  } catch {
    precondition(!error.text.isEmpty)
    return nil
  }
}
