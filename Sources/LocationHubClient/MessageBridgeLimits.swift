// What a session may write to the far end of its connection: it has limits of its own.
import HubHTTP
import HubWebSocket

extension MessageBridge {
  /// Bytes of a message: as many as one likes.
  static let frameLimits = FrameLimits(messageBytes: 1 << 40)
  /// Bytes of a request, which are the token's. At it the request is refused as a hub refuses it (HTTP 431), and a hub
  /// refuses it by far sooner.
  static let headLimits = HTTPLimits(headBytes: Int(UInt16.max), targetBytes: Int(UInt16.max))
}
