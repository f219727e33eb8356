// The load in binary: every message is made and looked at as JSON, and translated on its way, so that all scenarios can
// be run in both. That costs the load some microseconds a message, and the hub nothing.
import HubBytes
import HubMessages
import HubTransport
import HubWebSocket

extension Generator {
  func sendBinary(_ peer: PeerPointer, _ end: BinaryEnd, _ body: (inout ByteBuffer) -> Void) {
    jsonText.removeAll()
    body(&jsonText)
    let payload = FrameWriter.begin(as: .client, in: &loop.arena)
    do throws(MessageError) {
      let envelope = try jsonText.withBytes { (bytes) throws(MessageError) in
        try messages.read(bytes, time: .unixMilliseconds, isValidUTF8: true)
      }
      var id = envelope.messageID
      var trip: Identifier?
      if case .locationUpdate(let update) = envelope.message {
        trip = update.tripID
        id = MessageID(number: UInt64(counts.sent))
      }
      BinaryWriter.write(
        envelope.message, messageID: id, timestamp: envelope.timestamp, tripBefore: end.tripBefore, into: &loop.arena)
      if let trip { end.tripBefore = trip }
    } catch { preconditionFailure("the load writes what can be read: \(error.text)") }
    let start = FrameWriter.finish(.binary, payloadAt: payload, mask: MaskKey(0x1234_5678), in: &loop.arena)
    loop.send(start..<loop.arena.count, to: peer.pointee.id)
  }

  func receivedBinary(_ peer: PeerPointer, _ end: BinaryEnd, _ payload: UnsafeRawBufferPointer) {
    jsonText.removeAll()
    do throws(MessageError) {
      guard let envelope = try end.reader.read(payload) else { return }
      switch envelope.message {
      case .publication(let publication): JSONWriter.write(publication, time: .unixMilliseconds, into: &jsonText)
      case .reply(let reply):
        JSONWriter.write(reply, timestamp: envelope.timestamp, messageID: 0, time: .unixMilliseconds, into: &jsonText)
      case .unknown: return
      }
    } catch { return counts.fail("a binary message that can't be read: \(error.text)") }
    // A copy: what is looked at may lead to something being sent, which is written there too.
    let message = jsonText.array()
    message.withUnsafeBytes { received(peer, $0) }
  }
}
