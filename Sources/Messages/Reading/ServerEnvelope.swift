// What a client reads from the hub.
import HubBytes

/// A message from the hub, with its envelope.
public struct ServerEnvelope: Sendable, Equatable {
  /// As it was sent: `p` and a number for a publication, `r` and a number for a reply.
  public var messageID: MessageID
  /// The hub's clock when it published or sent.
  public var timestamp: Timestamp
  public var message: ServerMessage
  /// Which event of its channel an unknown message is; nil where it is none, and for a known one.
  public var unknownEvent: UnknownEvent?

  public init(messageID: MessageID, timestamp: Timestamp, message: ServerMessage) {
    self.messageID = messageID
    self.timestamp = timestamp
    self.message = message
  }
}

/// An event whose type, or a word in it, this version does not know. It counts all the same: what follows it on its
/// channel is numbered behind it.
public struct UnknownEvent: Sendable, Equatable {
  public var channel: Channel
  public var sequence: UInt64
}

/// Every message that a hub of this version sends.
public enum ServerMessage: Sendable, Equatable {
  case publication(Publication)
  case reply(Reply)
  /// A type, or a word in it, that this version does not know: a newer hub's. To be passed over.
  case unknown(type: String)
}
