// At most one request for a token at a time, between the session and the app.
import HubClientCore
import HubMessages
import Synchronization

/// Passes the session's requests to the engine. Used only on the client's thread, but the session requires a Sendable
/// source.
final class TokenBroker: Sendable {
  private struct State {
    /// The session's last unanswered request.
    var need: TokenNeed?
    var isNew = false
    var isUnderWay = false
    var failures = 0
    /// When the app is asked again after it had none (uptime, ns).
    var retryAt: Int64?
  }

  let source: TokenSource
  private let state = Mutex(State())

  init(_ source: TokenSource) { self.source = source }

  /// The session's request. The answer comes through `ClientSession.renew`.
  func ask(_ need: TokenNeed) -> TokenAnswer {
    state.withLock { state in
      state.need = need
      state.isNew = true
    }
    return .later
  }

  /// The request to pass to the app; nil while the app works on an earlier one, whose answer serves both.
  func takeNeed() -> TokenNeed? {
    state.withLock { state in
      guard let need = state.need, state.isNew else { return nil }
      state.isNew = false
      guard !state.isUnderWay, state.retryAt == nil else { return nil }
      state.isUnderWay = true
      return need
    }
  }

  func came() {
    state.withLock { $0 = State() }
  }

  /// No token is needed any more. The app's pending answer is for the next request, if there is one.
  func withdraw() {
    state.withLock { state in
      let isUnderWay = state.isUnderWay
      state = State()
      state.isUnderWay = isUnderWay
    }
  }

  /// The app had no token: repeats the request later. `unit`: 0 ≤ unit < 1, at random, to spread clients of a back end.
  func failed(limits: ClientLimits, unit: Double, _ now: Moment) {
    state.withLock { state in
      guard state.need != nil else {
        state = State()
        return
      }
      state.isUnderWay = false
      state.failures += 1
      state.retryAt = now.uptime + nanoseconds(limits.delay(before: state.failures) * (1 + limits.jitter * unit))
    }
  }

  var retryAt: Int64? { state.withLock { $0.retryAt } }

  /// Makes a repeated request due at once, if one waits for its time.
  func hurry(_ now: Moment) {
    state.withLock { state in
      if state.retryAt != nil { state.retryAt = now.uptime }
    }
  }

  /// The request to repeat, if it is due.
  func retry(_ now: Moment) -> TokenNeed? {
    state.withLock { state in
      guard let due = state.retryAt, due <= now.uptime, let need = state.need else { return nil }
      state.retryAt = nil
      state.isUnderWay = true
      return need
    }
  }
}
