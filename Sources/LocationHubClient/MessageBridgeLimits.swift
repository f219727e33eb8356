// Limits of what a session may write to its bridge; the session has its own.
import HubHTTP
import HubWebSocket

extension MessageBridge {
  /// Bytes of a message: unlimited in practice.
  static let frameLimits = FrameLimits(messageBytes: 1 << 40)
  /// Bytes of a request, mostly the token's. At it the request is refused like a hub does (HTTP 431), whose limit is
  /// much lower.
  static let headLimits = HTTPLimits(headBytes: Int(UInt16.max), targetBytes: Int(UInt16.max))
}
