// Every code that crosses the wire, in one place, each with what a client should do about it (protocol/README.md).

/// The `code` of an `error` message and of an HTTP error body.
public enum ErrorCode: UInt8, Sendable, CaseIterable, Error {
  case badJSON, badMessage, unknownType, tooLarge
  case unauthorized, forbidden, unknownChannel, unknownTrip
  case invalidLocation, implausibleLocation
  case tokenExpired
  case rateLimited, storageFull, shuttingDown
  case internalError
  case invalidTransition
  case notFound

  public var name: StaticString {
    switch self {
    case .badJSON: "bad_json"
    case .badMessage: "bad_message"
    case .unknownType: "unknown_type"
    case .tooLarge: "too_large"
    case .unauthorized: "unauthorized"
    case .forbidden: "forbidden"
    case .unknownChannel: "unknown_channel"
    case .unknownTrip: "unknown_trip"
    case .invalidLocation: "invalid_location"
    case .implausibleLocation: "implausible_location"
    case .tokenExpired: "token_expired"
    case .rateLimited: "rate_limited"
    case .storageFull: "storage_full"
    case .shuttingDown: "shutting_down"
    case .internalError: "internal"
    case .invalidTransition: "invalid_transition"
    case .notFound: "not_found"
    }
  }

  /// True where the message itself is at fault: more than 10 such in 60 s close the session with 4400.
  public var isBadMessage: Bool {
    switch self {
    case .badJSON, .badMessage, .unknownType, .tooLarge, .invalidLocation: true
    case .unauthorized, .forbidden, .unknownChannel, .unknownTrip, .implausibleLocation, .tokenExpired, .rateLimited,
      .storageFull, .shuttingDown, .internalError, .invalidTransition, .notFound:
      false
    }
  }
}

/// The protocol's own WebSocket close codes (RFC 6455 §7.4.2 leaves 4000–4999 to applications).
public enum CloseReason: UInt16, Sendable, CaseIterable {
  case goingAway = 1001
  /// Not of RFC 6455 but of the registry that it founded (§11.7, registered by A. Popov in 2012).
  case tryAgainLater = 1013
  case tooManyBadMessages = 4400
  case tokenExpired = 4401
  case silentTooLong = 4408
  case replaced = 4409
  case slowConsumer = 4413
  case overRate = 4429

  /// The close frame's reason text.
  public var text: StaticString {
    switch self {
    case .goingAway: "going away"
    case .tryAgainLater: "no room for an incomplete message"
    case .tooManyBadMessages: "too many bad messages"
    case .tokenExpired: "token expired"
    case .silentTooLong: "silent for too long"
    case .replaced: "replaced by a newer session of the same driver"
    case .slowConsumer: "slow consumer"
    case .overRate: "over the rate for 60 s"
    }
  }

  /// Whether a client should connect again by itself after this code.
  public var shouldReconnect: Bool {
    switch self {
    case .goingAway, .tryAgainLater, .silentTooLong, .slowConsumer, .overRate: true
    case .tooManyBadMessages, .tokenExpired, .replaced: false
    }
  }
}
