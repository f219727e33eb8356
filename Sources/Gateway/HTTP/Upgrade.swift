// An upgrade that is granted, until the session is open.
import HubBytes
import HubCore
import HubMessages
import HubWebSocket

/// What an upgrade will be answered with.
struct Upgrade {
  var handshake: ServerHandshake
  var credential: Credential
  var form: MessageForm
  /// Names who connects, by the token (development's credentials say no more than the id) and the address; never 0
  /// (`HubInput.driverConnecting`).
  var client: UInt32

  /// What the session gets first. `rate`: units of work a second.
  func connected(
    _ sessionID: InlineText, rate: Double, _ sampling: Connected.Sampling?, _ configuration: ServerConfiguration,
    now: Timestamp
  ) -> Connected {
    Connected(
      sessionID: sessionID, role: credential.role, id: credential.id,
      heartbeatInterval: configuration.heartbeatInterval, serverTime: now,
      limits: Connected.Limits(
        maxMessageBytes: configuration.limits.messageBytes, maxBatch: LocationBatch.maximumCount, rate: rate),
      sampling: sampling)
  }
}

extension SessionRef {
  /// In logs and support cases: loop, slot and generation.
  var name: InlineText { InlineText("s\(outlet)-\(slot)-\(generation)") ?? InlineText() }
}
