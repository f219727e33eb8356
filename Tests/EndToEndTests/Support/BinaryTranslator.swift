// Between the JSON that tests write and read and a binary connection: what a peer means is the same on both.
import HubBytes
import HubMessages

final class BinaryTranslator {
  private let json = MessageReader()
  private var reader = BinaryServerReader()
  private var tripBefore: Identifier?
  /// Bytes of each `driver_location`, and how often `names` came.
  private(set) var positionBytes: [Int] = []
  private(set) var names = 0

  /// A client's message.
  func message(_ text: String) throws -> [UInt8] {
    let envelope = try Array(text.utf8).span.withUnsafeBytes { (bytes) throws(MessageError) in
      try json.read(bytes, time: .unixMilliseconds, isValidUTF8: true)
    }
    var buffer = ByteBuffer()
    BinaryWriter.write(
      envelope.message, messageID: envelope.messageID, timestamp: envelope.timestamp, tripBefore: tripBefore,
      into: &buffer)
    if case .locationUpdate(let update) = envelope.message, let trip = update.tripID { tripBefore = trip }
    return buffer.array()
  }

  /// What the hub says, as JSON would have it; nil for `names`.
  func text(_ message: UnsafeRawBufferPointer) throws -> [UInt8]? {
    guard let envelope = try reader.read(message) else {
      names += 1
      return nil
    }
    var buffer = ByteBuffer()
    switch envelope.message {
    case .publication(let publication):
      if case .driverLocation = publication.body { positionBytes.append(message.count) }
      JSONWriter.write(publication, time: .unixMilliseconds, into: &buffer)
    case .reply(let reply):
      let number = UInt64(envelope.messageID.description.dropFirst()) ?? 0
      JSONWriter.write(
        reply, timestamp: envelope.timestamp, messageID: number, time: .unixMilliseconds, into: &buffer)
    case .unknown(let type): throw PeerError.unexpected("an unknown message: \(type)")
    }
    return buffer.array()
  }
}
