// Tokens that end before the client does: a new one is asked for in time and swapped in place (`refresh`), or, where
// the hub has refused the old one, used with the next connection (protocol/tokens.md, "refresh"; protocol/README.md,
// "Close codes").
//
// The application says in the configuration where tokens come from. It may answer at once (a file) or later (a request
// to its back end): nothing here waits. Without such a source a client ends when its token does, with
// `ClientEnd.needsToken`.
public import HubMessages

/// Why a token is asked for.
public enum TokenNeed: Sendable, Equatable {
  /// The client has none yet.
  case first
  /// The one that it has ends soon; the session goes on until then.
  case expiring
  /// The hub does not take it (any more): HTTP 401, or close 4401.
  case refused
}

/// What came of asking.
public enum TokenAnswer: Sendable, Equatable {
  case token(String)
  /// `renew` will be called.
  case later
  /// There is none: where the client needs one to go on, it ends.
  case none
}

/// What a client that renews its tokens keeps for it. On the heap, so that others do not pay for it.
final class TokenRenewal {
  let source: @Sendable (TokenNeed) -> TokenAnswer
  /// The token that went with the upgrade, and the one that the hub has taken.
  var inUpgrade: String?
  var taken: String?
  /// The `refresh` that is not answered yet.
  var asked: (number: UInt64, token: String)?
  /// When the next token is asked for (uptime, ns). A new time is one that who drives the client does not know yet.
  var due = Int64.max { didSet { isDueNew = true } }
  var isDueNew = false
  /// The hub's clock (ms since 1970) at an uptime (ns), to read `exp` by: the phone's may be wrong.
  var hubClock = (milliseconds: Int64(0), uptime: Int64(0))
  /// Why a token is asked for to which `later` was the answer, and without which nothing goes on.
  var awaited: TokenNeed?

  init(_ source: @escaping @Sendable (TokenNeed) -> TokenAnswer) { self.source = source }

  /// Milliseconds by the hub's clock.
  func hubTime(_ now: Moment) -> Int64 { hubClock.milliseconds + (now.uptime - hubClock.uptime) / 1_000_000 }
}

extension ClientSession {
  /// The newest token that came, for what else is asked of the hub; nil while there is none.
  public var newestToken: String? { token }

  /// Gives a new token: to the hub at once where a connection stands, else with the next one. Nothing without
  /// `configuration.tokens`.
  public func renew(token new: String, now: Moment) {
    guard let renewal else { return }
    token = new
    renewal.awaited = nil
    if case .awaitingToken = phase { beginConnecting(now) }
    // The same one again: it can't help, so it is asked for once more.
    if phase.isOpen, new == renewal.taken { renewal.due = nextAsking(now) }
  }

  /// Whether nothing goes on before `renew` is called.
  package var awaitsToken: Bool { renewal?.awaited != nil }

  /// Before an attempt: whether there is no token to make it with yet.
  func mustAwaitToken() -> Bool {
    // Where there is none, the URL may have a credential; if not, the hub says so.
    if token == nil, !awaitsToken { _ = askForToken(.first) }
    return awaitsToken
  }

  /// The hub does not take the token: whether there is another one, or will be.
  func replaceRefusedToken() -> Bool { askForToken(.refused) }

  /// A client that ended while it waited for a token begins again: whoever was asked may have given up.
  func askForAwaitedTokenAgain() {
    guard let need = renewal?.awaited else { return }
    renewal?.awaited = nil
    _ = askForToken(need)
  }

  /// Asks for a token without which nothing goes on: whether there is one, or will be.
  private func askForToken(_ need: TokenNeed) -> Bool {
    guard let renewal else { return false }
    switch renewal.source(need) {
    case .token(let new): token = new
    case .later: renewal.awaited = need
    case .none: return false
    }
    return true
  }

  // MARK: While the connection stands

  /// `connected` came: the hub has taken the upgrade's token.
  func beginRenewal(_ greeting: Connected, _ now: Moment) {
    guard let renewal else { return }
    renewal.asked = nil
    renewal.taken = renewal.inUpgrade
    renewal.hubClock = (greeting.serverTime.milliseconds, now.uptime)
    renewal.due = asking(now)
  }

  /// Whether a new token waits to be sent.
  var wantsRefresh: Bool {
    guard let renewal, renewal.asked == nil, let token else { return false }
    return token != renewal.taken
  }

  /// When `checkRenewal` has something to do.
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

  /// The hub has answered the message with this number; true where it was the `refresh`, which the application need not
  /// see. One that is refused changes nothing: the session goes on with the token that it has.
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

  /// When to ask for the token after the one that the hub has: some time before its end, not all clients at once.
  private func asking(_ now: Moment) -> Int64 {
    guard let renewal, let taken = renewal.taken, let expires = UnverifiedToken.expires(taken) else { return .max }
    let left = Double(expires.milliseconds - renewal.hubTime(now)) / 1000
    let early = min(limits.renewalSeconds, left * limits.renewalPart) * (1 + limits.jitter * random.unit())
    return now.uptime + nanoseconds(max(0, left - early))
  }

  /// When to ask again after it brought nothing.
  private func nextAsking(_ now: Moment) -> Int64 { now.uptime + nanoseconds(limits.renewalRetrySeconds) }
}
