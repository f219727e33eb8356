// The hub's messages for a client.
import HubBytes

/// A message from the hub, with its envelope.
public struct ServerEnvelope: Sendable, Equatable {
  /// `p` and a number for a publication, `r` and a number for a reply.
  public var messageID: MessageID
  /// The hub's clock when it published or sent.
  public var timestamp: Timestamp
  public var message: ServerMessage
  /// The event that an unknown message is; nil where it is no event, and for a known message.
  public var unknownEvent: UnknownEvent?
  /// What an unknown message answers; nil where it is no answer, and for a known message.
  public var unknownReplyTo: MessageID?

  public init(messageID: MessageID, timestamp: Timestamp, message: ServerMessage) {
    self.messageID = messageID
    self.timestamp = timestamp
    self.message = message
  }
}

/// An event with an unknown type or keyword. It counts all the same, since the channel's numbers continue behind it.
public struct UnknownEvent: Sendable, Equatable {
  public var channel: Channel
  public var sequence: UInt64
}

/// Every message of a hub of this version.
public enum ServerMessage: Sendable, Equatable {
  case publication(Publication)
  case reply(Reply)
  /// An unknown type or keyword, from a newer hub. To be ignored.
  case unknown(type: String)
}
