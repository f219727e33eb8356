// One answer from another thread for one waiting task.
import Synchronization

/// Keeps the first answer; others are dropped.
final class Answer<Value: Sendable>: Sendable {
  typealias Outcome = Result<Value, HubError>

  private struct State {
    var outcome: Outcome?
    var continuation: CheckedContinuation<Outcome, Never>?
  }

  private let state = Mutex(State())

  func give(_ outcome: Outcome) {
    let continuation = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume(returning: outcome)
  }

  /// Waits. Throws the given error, or `cancelled` when the task is cancelled; then `withdraw` is called.
  func value(orWithdraw withdraw: @Sendable @escaping () -> Void = {}) async throws(HubError) -> Value {
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state in
          if state.outcome == nil { state.continuation = continuation }
          return state.outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      give(.failure(.cancelled))
      withdraw()
    }
    return try outcome.get()
  }
}
