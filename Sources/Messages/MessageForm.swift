// The form of one connection's messages, by its subprotocol and `time`.

/// The form of a connection's messages, both ways.
public enum MessageForm: Sendable, Hashable {
  /// `locationhub.v1.json`, in text frames.
  case json(TimeFormat)
  /// `locationhub.v1.binary`, in binary frames; timestamps are milliseconds since 1970 (protocol/binary.md).
  case binary
}

/// The subprotocols, for negotiation (RFC 6455 §1.9).
public enum Subprotocol: UInt8, Sendable, CaseIterable {
  case json, binary

  /// The subprotocol as in `Sec-WebSocket-Protocol` (RFC 6455 §11.3.4).
  public var name: StaticString {
    switch self {
    case .json: "locationhub.v1.json"
    case .binary: "locationhub.v1.binary"
    }
  }
}
