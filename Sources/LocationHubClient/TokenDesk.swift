// One question for a token at a time, between the session that needs it and the app that gives it.
import HubClientCore
import HubMessages
import Synchronization

/// What the session asks of, and the engine answers. Only the client's thread uses it, but the session wants its source
/// to be Sendable.
final class TokenDesk: Sendable {
  private struct State {
    /// What the session asked and nobody has gone for yet.
    var need: TokenNeed?
    var isUnderWay = false
    var failures = 0
    /// When the app is asked again after it had none (uptime, ns), and for what.
    var retry: (at: Int64, need: TokenNeed)?
  }

  let source: TokenSource
  private let state = Mutex(State())

  init(_ source: TokenSource) { self.source = source }

  /// The session's question. The answer comes by `ClientSession.renew`.
  func ask(_ need: TokenNeed) -> TokenAnswer {
    state.withLock { $0.need = need }
    return .later
  }

  /// What the app is to be asked now: nothing while it is at work on the last question, whose answer is as good.
  func takeNeed() -> TokenNeed? {
    state.withLock { state in
      guard let need = state.need else { return nil }
      state.need = nil
      guard !state.isUnderWay, state.retry == nil else { return nil }
      state.isUnderWay = true
      return need
    }
  }

  func came() {
    state.withLock { $0 = State() }
  }

  func failed(_ need: TokenNeed, limits: ClientLimits, _ now: Moment) {
    state.withLock { state in
      state.isUnderWay = false
      state.failures += 1
      state.retry = (now.uptime + nanoseconds(limits.delay(before: state.failures)), need)
    }
  }

  var retryAt: Int64? { state.withLock { $0.retry?.at } }

  /// What is to be asked again, if its time has come.
  func retry(_ now: Moment) -> TokenNeed? {
    state.withLock { state in
      guard let retry = state.retry, retry.at <= now.uptime else { return nil }
      state.retry = nil
      state.isUnderWay = true
      return retry.need
    }
  }
}
