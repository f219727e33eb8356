// An upgrade that is granted, until the session is open.
import HubBytes
import HubCore
import HubMessages
import HubWebSocket

/// The answer to an upgrade.
struct Upgrade {
  var handshake: ServerHandshake
  var credential: Credential
  var form: MessageForm
  /// A hash of the client's token, if it has one, and of its address. The hub compares those of one driver's
  /// connections. Never 0 (`HubInput.driverConnecting`).
  var client: UInt32
}

extension SessionRef {
  /// The session's name in logs: loop, slot and generation.
  var name: InlineText { InlineText("s\(outlet)-\(slot)-\(generation)") ?? InlineText() }
}
