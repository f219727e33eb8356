// Close codes: which exist, and which may be sent (RFC 6455 §7.4, and the IANA registry for 1012–1014).

/// The status code of a Close frame. Any 16-bit number; `isValidOnWire` is whether it may be sent.
public struct CloseCode: Sendable, Hashable {
  public let rawValue: UInt16

  @inlinable public init(_ rawValue: UInt16) { self.rawValue = rawValue }

  public static let normal = CloseCode(1000)
  public static let goingAway = CloseCode(1001)
  public static let protocolError = CloseCode(1002)
  public static let unsupportedData = CloseCode(1003)
  /// Represents a Close frame without a code; never sent (RFC 6455 §7.1.5).
  public static let noStatus = CloseCode(1005)
  public static let invalidPayload = CloseCode(1007)
  public static let messageTooBig = CloseCode(1009)
  public static let internalError = CloseCode(1011)
  public static let tryAgainLater = CloseCode(1013)

  /// Whether the code may be sent: 1000–1003 and 1007–1014 are defined, 3000–3999 registered by libraries, and
  /// 4000–4999 private. RFC 6455 §7.4.1, §7.4.2.
  @inlinable public var isValidOnWire: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: return true
    default: return false
    }
  }
}
