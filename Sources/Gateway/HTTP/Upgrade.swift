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

  /// The first message of the session. `rate`: units of work a second.
  func connected(
    _ sessionID: InlineText, rate: Double, _ sampling: Connected.Sampling?, _ settings: HTTPSettings, now: Timestamp
  ) -> Connected {
    Connected(
      sessionID: sessionID, role: credential.role, id: credential.id,
      heartbeatInterval: settings.configuration.heartbeatInterval, serverTime: now,
      limits: Connected.Limits(
        maxMessageBytes: settings.configuration.limits.messageBytes, maxBatch: LocationBatch.maximumCount, rate: rate),
      sampling: sampling)
  }
}

extension SessionRef {
  /// The session's name in logs: loop, slot and generation.
  var name: InlineText { InlineText("s\(outlet)-\(slot)-\(generation)") ?? InlineText() }
}
