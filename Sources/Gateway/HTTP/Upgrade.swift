// An upgrade that is granted, until the session is open.
import HubBytes
import HubCore
import HubMessages
import HubWebSocket

/// What the hub's settings have for the first message of a session: seconds, bytes.
typealias Announced = (heartbeatInterval: Double, messageBytes: Int)

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
    _ sessionID: InlineText, rate: Double, _ sampling: Connected.Sampling?, _ announced: Announced,
    now: Timestamp
  ) -> Connected {
    Connected(
      sessionID: sessionID, role: credential.role, id: credential.id,
      heartbeatInterval: announced.heartbeatInterval, serverTime: now,
      limits: Connected.Limits(
        maxMessageBytes: announced.messageBytes, maxBatch: LocationBatch.maximumCount, rate: rate),
      sampling: sampling)
  }
}

extension SessionRef {
  /// The session's name in logs: loop, slot and generation.
  var name: InlineText { InlineText("s\(outlet)-\(slot)-\(generation)") ?? InlineText() }
}
