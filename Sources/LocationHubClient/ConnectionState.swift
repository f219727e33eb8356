// How a client's connection is, as a person would say it.
public import HubMessages

/// What a client is doing about its connection. Times are by this device's clock.
public enum ConnectionState: Sendable, Equatable {
  /// `start()` was not called yet.
  case idle
  /// Attempt 1, 2, … of this break: a token is asked for, the socket opens, the hub greets.
  case connecting(attempt: Int)
  /// The hub has greeted.
  case live(since: Timestamp)
  /// The next attempt begins by itself at this time; why the last connection ended.
  case waiting(until: Timestamp, HubError)
  /// Nothing connects any more until `start()` is called again: `stop()` was called (`HubError.Code.stopped`), or the
  /// hub will not have this client.
  case stopped(HubError)

  /// Whether what is sent now leaves at once.
  public var isLive: Bool { if case .live = self { true } else { false } }
}

/// The states of a connection, the present one first. A reader that is slow gets the newest.
public typealias ConnectionStates = Latest<ConnectionState>
