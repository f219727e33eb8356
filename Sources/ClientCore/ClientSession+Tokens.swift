// Tokens that end before the client does: a new one is requested in time and replaced in place (`refresh`) or, after
// the hub refused the old one, used with the next connection (protocol/tokens.md, "refresh"; protocol/README.md, "Close
// codes").
//
// The application's source of tokens is in the configuration. It may answer at once (a file) or later (a request to its
// back end): nothing here waits. Without a source a client ends with its token, with `ClientEnd.needsToken`.
public import HubMessages

/// Why a token is requested.
public enum TokenNeed: Sendable, Equatable {
  /// The client has none yet.
  case first
  /// The present one ends soon; the session continues until then.
  case expiring
  /// The hub refused the present one (HTTP 401, or close 4401), or a driver's client has a token of another role.
  case refused
}

/// The answer to a request for a token.
public enum TokenAnswer: Sendable, Equatable {
  case token(String)
  /// `renew` will be called.
  case later
  /// There is none: a client that needs one ends.
  case none
}

/// The state of token renewal. On the heap, so that other clients do not pay for it.
final class TokenRenewal {
  let source: @Sendable (TokenNeed) -> TokenAnswer
  /// The token of the upgrade, and the newest one that the hub has accepted.
  var inUpgrade: String?
  var taken: String?
  /// The unanswered `refresh`.
  var asked: (number: UInt64, token: String)?
  /// When the next token is requested (uptime, ns). A change asks for a `flush`, after which `deadline` is read again.
  var due = Int64.max { didSet { isDueNew = true } }
  var isDueNew = false
  /// The hub's clock (ms since 1970) at an uptime (ns), to compare `exp` with: the phone's may be wrong.
  var hubClock = (milliseconds: Int64(0), uptime: Int64(0))
  /// Why the client must get a token before it can connect, from `renew` or the next `start`; nil where it need not.
  var awaited: TokenNeed?

  init(_ source: @escaping @Sendable (TokenNeed) -> TokenAnswer) { self.source = source }

  /// Milliseconds by the hub's clock.
  func hubTime(_ now: Moment) -> Int64 { hubClock.milliseconds + (now.uptime - hubClock.uptime) / 1_000_000 }
}

extension ClientSession {
  /// The newest token, for other requests to the hub; nil without one.
  public var newestToken: String? { token }

  /// Takes a new token: sends it to the hub at once where connected, else uses it with the next connection. Does
  /// nothing without `configuration.tokens`.
  public func renew(token new: String, now: Moment) {
    guard let renewal else { return }
    token = new
    renewal.awaited = nil
    if case .awaitingToken = phase { beginConnecting(now) }
    // The same token does not help, so it is requested again.
    if phase.isOpen, new == renewal.taken { renewal.due = nextAsking(now) }
  }

  /// Draws a random number, 0 ≤ number < 1, for the delay of a caller whose requests for tokens fail.
  package func drawUnit() -> Double { random.unit() }

  /// Whether the client cannot connect before `renew` gives it a token.
  package var awaitsToken: Bool { renewal?.awaited != nil }

  /// Call when the hub accepts the token but the application cannot use it: the next `start` requests another one.
  package func refuseToken() { renewal?.awaited = .refused }

  /// Before an attempt: whether its token is missing.
  func mustAwaitToken() -> Bool {
    // Without a token the URL may have a credential; if not, the hub refuses.
    if token == nil, !awaitsToken { _ = askForToken(.first) }
    return awaitsToken
  }

  /// Requests another token after the hub refused the present one; false where the source has none.
  func replaceRefusedToken() -> Bool { askForToken(.refused) }

  /// Repeats the request of a client that ended while it waited for a token: the earlier one may have been abandoned.
  func askForAwaitedTokenAgain() {
    guard let need = renewal?.awaited else { return }
    renewal?.awaited = nil
    _ = askForToken(need)
  }

  /// Requests a token that the client needs in order to connect; false where the source has none.
  private func askForToken(_ need: TokenNeed) -> Bool {
    guard let renewal else { return false }
    switch renewal.source(need) {
    case .token(let new): token = new
    case .later: renewal.awaited = need
    case .none: return false
    }
    return true
  }

  // MARK: While the connection is open

  /// `connected` has come: the hub accepted the upgrade's token.
  func beginRenewal(_ greeting: Connected, _ now: Moment) {
    guard let renewal else { return }
    renewal.asked = nil
    renewal.taken = renewal.inUpgrade
    renewal.hubClock = (greeting.serverTime.milliseconds, now.uptime)
    renewal.due = asking(now)
  }

  /// Whether a new token is to be sent.
  var wantsRefresh: Bool {
    guard let renewal, renewal.asked == nil, let token else { return false }
    return token != renewal.taken
  }

  /// When `checkRenewal` is due.
  var renewalDeadline: Int64 { renewal?.due ?? .max }

  func checkRenewal(_ now: Moment) {
    guard let renewal, now.uptime >= renewal.due else { return }
    renewal.due = .max
    switch renewal.source(.expiring) {
    case .token(let new): renew(token: new, now: now)
    case .later: break
    case .none: renewal.due = nextAsking(now)
    }
  }

  /// The hub has answered the message with this number; true for the `refresh`, which is not for the application. A
  /// refused one changes nothing: the session keeps its token.
  func noteRefresh(_ number: UInt64, isTaken: Bool, _ now: Moment) -> Bool {
    guard let renewal, let asked = renewal.asked, asked.number == number else { return false }
    renewal.asked = nil
    if isTaken {
      counters.refreshes += 1
      renewal.taken = asked.token
      renewal.due = asking(now)
    } else {
      counters.refreshesRefused += 1
      if token == asked.token { token = renewal.taken }
      renewal.due = nextAsking(now)
    }
    return true
  }

  /// When to request the next token: some time before the end of the present one, spread among clients.
  private func asking(_ now: Moment) -> Int64 {
    guard let renewal, let taken = renewal.taken, let expires = UnverifiedToken.expires(taken) else { return .max }
    let left = Double(expires.milliseconds - renewal.hubTime(now)) / 1000
    // The hub accepts an expired token for 30 s: a source that has only expired ones must not be asked in a busy loop.
    guard left > 0 else { return nextAsking(now) }
    let early = min(limits.renewalSeconds, left * limits.renewalPart) * (1 + limits.jitter * random.unit())
    return now.uptime + nanoseconds(max(0, left - early))
  }

  /// When to request again after a failure.
  private func nextAsking(_ now: Moment) -> Int64 { now.uptime + nanoseconds(limits.renewalRetrySeconds) }
}
