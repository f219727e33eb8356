// A list of drivers that was written over several turns, as one message.
import HubBytes
import HubMessages
import HubTransport
import HubWebSocket

extension FanOut {
  /// Sends the list as a reply that is written at once would be; false, and nothing is sent, where it is too large.
  mutating func send(
    _ reply: DriverListReply, _ replyTo: MessageID, to recipient: Recipient, now: Timestamp, through loop: EventLoop,
    largest: Int
  ) -> Bool {
    guard reply.plainBytes <= largest else { return false }
    let number = nextReplyNumber()
    let payload = FrameWriter.begin(as: .server, in: &loop.arena)
    switch reply.form {
    case .json: JSONWriter.writeResultHead(replyTo: replyTo, into: &loop.arena)
    case .binary: BinaryWriter.writeResultHead(replyTo: replyTo, timestamp: now, messageID: number, into: &loop.arena)
    }
    var plainBytes = reply.plainBytes + loop.arena.count - payload
    if reply.isCompressed { compress(partAt: payload, isLast: false) }
    loop.arena.append(reply.body)
    let end = loop.arena.count
    if case .json(let time) = reply.form {
      JSONWriter.writeEnd(timestamp: now, messageID: number, time: time, into: &loop.arena)
    }
    plainBytes += loop.arena.count - end
    guard plainBytes + FrameWriter.headerLength(payload: plainBytes, isMasked: false) <= largest else { return false }
    if reply.isCompressed { compress(partAt: end, isLast: true) }
    send(replyAt: payload, to: recipient, compressedFrom: reply.isCompressed ? plainBytes : nil)
    return true
  }
}
