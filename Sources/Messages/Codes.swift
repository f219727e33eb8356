// All codes of the protocol: meaning, HTTP status, and whether a client sends again or reconnects. The tables in
// protocol/ are made from these (`make docs`), and this project's client uses them.

// MARK: Errors

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

  /// Whether a client should repeat a refused message or request.
  public enum Retry: String, Sendable {
    case never = "no"
    /// The message itself is at fault.
    case changed = "no: fix it first"
    case later = "yes, after `retryAfter`, with the same `messageId`"
    case once = "yes, once"
    case withNewToken = "with a new credential"
  }

  /// The row of this code. `status` is the HTTP status unless the fault is in HTTP itself (`HTTPRefusal`).
  public var facts: (name: StaticString, status: UInt16, retry: Retry, meaning: StaticString) {
    switch self {
    case .badJSON: ("bad_json", 400, .changed, "not JSON, or not UTF-8")
    case .badMessage: ("bad_message", 400, .changed, "a member is missing or of the wrong kind, or a name comes twice")
    case .unknownType: ("unknown_type", 400, .changed, "there is no such message type")
    case .tooLarge: ("too_large", 413, .changed, "beyond a limit: send less at once")
    case .unauthorized: ("unauthorized", 401, .never, "no credential, or one that is not valid")
    case .forbidden: ("forbidden", 403, .never, "not with this credential")
    case .unknownChannel: ("unknown_channel", 400, .never, "there is no such channel")
    case .unknownTrip: ("unknown_trip", 404, .never, "there is no such trip")
    case .invalidLocation:
      ("invalid_location", 400, .changed, "not a place on Earth, no heading, or a time before 2000")
    case .implausibleLocation:
      ("implausible_location", 400, .never, "not where or when this driver can be: continue with the next fix")
    case .tokenExpired: ("token_expired", 401, .withNewToken, "the credential has expired or was revoked")
    case .rateLimited: ("rate_limited", 503, .later, "too much at once, or too many others")
    case .storageFull: ("storage_full", 503, .later, "a table of the hub or its disk is [full](#a-full-disk)")
    case .shuttingDown: ("shutting_down", 503, .later, "the hub is going away")
    case .internalError: ("internal", 500, .once, "a fault of the hub")
    case .invalidTransition: ("invalid_transition", 409, .never, "the trip is in another state: see `details.status`")
    case .notFound: ("not_found", 404, .never, "there is no such endpoint, driver or fence")
    }
  }

  /// The code as it is on the wire (protocol/README.md).
  public var name: StaticString { facts.name }

  /// Whether it counts as a violation: more than 10 in 60 s close the session with 4400.
  public var isBadMessage: Bool { facts.retry == .changed }
}

// MARK: Connections

/// Whether and when a client reconnects by itself.
public enum Reconnect: String, Sendable {
  case never = "no"
  case afterFix = "no: fix the client"
  case withNewToken = "with a new credential"
  /// After the usual, growing delay.
  case backOff = "yes"
  /// Spread, so that not all clients come at once.
  case spread = "yes, after a first delay at random in 0–5 s"
  case afterPause = "after 60 s"
}

/// The close codes that a hub uses: the protocol's own (RFC 6455 §7.4.2 leaves 4000–4999 to applications), and those of
/// RFC 6455 §7.4.1 with a meaning in this protocol.
public enum CloseReason: UInt16, Sendable, CaseIterable {
  case normal = 1000
  case goingAway = 1001
  case protocolError = 1002
  case unsupportedData = 1003
  case invalidPayload = 1007
  case messageTooBig = 1009
  /// Not in RFC 6455 but in its registry (§11.7, registered by A. Popov in 2012).
  case tryAgainLater = 1013
  case tooManyBadMessages = 4400
  case tokenExpired = 4401
  case silentTooLong = 4408
  case replaced = 4409
  case slowConsumer = 4413
  case overRate = 4429

  /// The row of this code. `text` is the close frame's reason, unless the hub has a more exact one.
  public var facts: (text: StaticString, reconnect: Reconnect, meaning: StaticString) {
    switch self {
    case .normal: ("normal", .never, "the end; or [replaced](connecting.md), for a client that came again after a 4409")
    case .goingAway: ("going away", .spread, "the hub is going away")
    case .protocolError: ("protocol error", .afterFix, "as in RFC 6455 §7.4.1")
    case .unsupportedData: ("unsupported data", .afterFix, "as in RFC 6455 §7.4.1")
    case .invalidPayload: ("invalid payload", .afterFix, "as in RFC 6455 §7.4.1")
    case .messageTooBig: ("message too big", .afterFix, "a limit was passed: the reason says which, and what it allows")
    case .tryAgainLater:
      (
        "no room for an incomplete message", .spread,
        "no room for one more incomplete message, of all or of its address"
      )
    case .tooManyBadMessages: ("too many bad messages", .afterFix, "more than 10 bad messages in 60 s")
    case .tokenExpired: ("token expired", .withNewToken, "the credential has expired or was revoked")
    case .silentTooLong:
      (
        "silent for too long", .backOff,
        "nothing was heard for 2.5 heartbeat intervals, or a message was not complete after 60 s"
      )
    case .replaced: ("replaced by a newer session of the same driver", .never, "the driver has a newer session")
    case .slowConsumer: ("slow consumer", .spread, "too slow to take what it subscribed to")
    case .overRate: ("over the rate for 60 s", .afterPause, "the session sent more than it may for 60 s")
    }
  }

  /// The reason in the Close frame: at most 123 bytes (RFC 6455 §5.5).
  public var text: StaticString { facts.text }
}

/// A status of a refused HTTP request, with the codes that its body may have.
public struct HTTPRefusal: Sendable {
  public var status: UInt16
  public var codes: [ErrorCode]
  /// What a client does after a refused upgrade; a `Retry-After` gives the earliest time.
  public var reconnect = Reconnect.never
  public var meaning: String

  public static let all = [
    HTTPRefusal(
      status: 400, codes: [.badJSON, .badMessage, .unknownType, .invalidLocation, .unknownChannel],
      meaning: "the request, its parameters or its body"),
    HTTPRefusal(
      status: 401, codes: [.unauthorized, .tokenExpired], reconnect: .withNewToken,
      meaning: "no credential, or one that is not valid; with `WWW-Authenticate`"),
    HTTPRefusal(status: 403, codes: [.forbidden], meaning: "not with this credential, or not from this web page"),
    HTTPRefusal(
      status: 404, codes: [.unknownTrip, .unknownChannel, .notFound],
      meaning: "no such trip; no driver or fence to notify; no such endpoint, driver or fence; nothing is stored"),
    HTTPRefusal(status: 405, codes: [.badMessage], meaning: "not with this method; `Allow` says which"),
    HTTPRefusal(status: 406, codes: [.badMessage], meaning: "a track has none of the types that `Accept` names"),
    HTTPRefusal(
      status: 409, codes: [.invalidTransition, .rateLimited], reconnect: .backOff,
      meaning: """
        there is a trip of this id and other content, or it has arrived and does not change any more; a fence does not \
        change so; a driver's sessions replace each other
        """),
    HTTPRefusal(
      status: 413, codes: [.tooLarge],
      meaning: """
        more than 500 fixes, a track of more than 100,000, too many trips long past, more than 1,000 positions, a body \
        over 256 KiB (over 4 KiB without a good credential, or where no body is wanted), or an answer over 511 KiB
        """),
    HTTPRefusal(status: 414, codes: [.tooLarge], meaning: "the request target is over its limit"),
    HTTPRefusal(status: 417, codes: [.badMessage], meaning: "`Expect` has something else than `100-continue`"),
    HTTPRefusal(status: 426, codes: [.badMessage], meaning: "not a WebSocket handshake, or not version 13"),
    HTTPRefusal(
      status: 429, codes: [.rateLimited], reconnect: .backOff,
      meaning: """
        too many requests, or connections, of your address, or all that one identity may have ([rates](rates.md)); \
        with `Retry-After` where waiting helps
        """),
    HTTPRefusal(status: 431, codes: [.tooLarge], meaning: "the head is over its limit"),
    HTTPRefusal(
      status: 500, codes: [.internalError], reconnect: .backOff,
      meaning: "the hub's journal cannot be read, or the trip's end was in a damaged part of it"),
    HTTPRefusal(
      status: 501, codes: [.badMessage], reconnect: .backOff,
      meaning: "a method or a transfer coding that this hub does not know"),
    HTTPRefusal(
      status: 503, codes: [.rateLimited, .storageFull, .shuttingDown, .internalError], reconnect: .backOff,
      meaning: """
        a table of the hub or its disk is [full](README.md#a-full-disk), or too many queries or tracks are under way, \
        or long answers unread; \
        the hub is going away; with `Retry-After`; `internal` of `/healthz` where an event loop hangs, and of \
        `/readyz?engine` where the hub is cut off from the others
        """),
    HTTPRefusal(
      status: 505, codes: [.badMessage], reconnect: .backOff, meaning: "another major version of HTTP than 1"),
  ]
}
