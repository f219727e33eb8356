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
  /// Identifies the client by its token (by the id with a development credential) and address; never 0
  /// (`HubInput.driverConnecting`).
  var client: UInt32
}

extension SessionRef {
  /// The session's name in logs: loop, slot and generation.
  var name: InlineText { InlineText("s\(outlet)-\(slot)-\(generation)") ?? InlineText() }
}
