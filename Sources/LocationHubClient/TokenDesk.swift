// One question for a token at a time, between the session that needs it and the app that gives it.
import HubClientCore
import HubMessages
import Synchronization

/// What the session asks of, and the engine answers. Only the client's thread uses it, but the session wants its source
/// to be Sendable.
final class TokenDesk: Sendable {
  private struct State {
    /// What the session asked last and has no answer to.
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

  /// The session's question. The answer comes by `ClientSession.renew`.
  func ask(_ need: TokenNeed) -> TokenAnswer {
    state.withLock { state in
      state.need = need
      state.isNew = true
    }
    return .later
  }

  /// What the app is to be asked now: nothing while it is at work on the last question, whose answer is as good.
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

  /// Nobody needs a token any more. What the app is at work on is the answer to the next question, if there is one.
  func withdraw() {
    state.withLock { state in
      let isUnderWay = state.isUnderWay
      state = State()
      state.isUnderWay = isUnderWay
    }
  }

  func failed(limits: ClientLimits, _ now: Moment) {
    state.withLock { state in
      guard state.need != nil else {
        state = State()
        return
      }
      state.isUnderWay = false
      state.failures += 1
      state.retryAt = now.uptime + nanoseconds(limits.delay(before: state.failures))
    }
  }

  var retryAt: Int64? { state.withLock { $0.retryAt } }

  /// The app is asked again now, where that waits.
  func hurry(_ now: Moment) {
    state.withLock { state in
      if state.retryAt != nil { state.retryAt = now.uptime }
    }
  }

  /// What is to be asked again, if its time has come.
  func retry(_ now: Moment) -> TokenNeed? {
    state.withLock { state in
      guard let due = state.retryAt, due <= now.uptime, let need = state.need else { return nil }
      state.retryAt = nil
      state.isUnderWay = true
      return need
    }
  }
}
