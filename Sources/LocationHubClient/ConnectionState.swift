// The state of a client's connection, for apps.
public import HubMessages

/// What a client is doing about its connection. Times are by this device's clock.
public enum ConnectionState: Sendable, Equatable {
  /// `start()` was not called yet.
  case idle
  /// Attempt 1, 2, … since the last connection: getting a token, opening the socket, waiting for `connected`.
  case connecting(attempt: Int)
  /// The hub has accepted the session.
  case live(since: Timestamp)
  /// The next attempt begins at this time; with the error that ended the last connection.
  case waiting(until: Timestamp, HubError)
  /// Nothing connects any more until `start()` is called again: `stop()` was called (`HubError.Code.stopped`), or the
  /// hub refuses this client.
  case stopped(HubError)

  /// Whether messages leave at once.
  public var isLive: Bool { if case .live = self { true } else { false } }
}

/// The states of a connection, the present one first. A slow reader gets the newest.
public typealias ConnectionStates = Latest<ConnectionState>
