// What `DriverHub.send` asks on the caller's thread: whether the hub wants this fix at all.
import HubClientCore
import HubMessages
import Synchronization

/// The hub's advice and what was sent last, for callers on any thread.
final class SamplingDesk: Sendable {
  private struct State {
    var gate = SamplingGate()
    var advice: Sampling?
    var trip: Identifier?
  }

  private let state = Mutex(State())

  func set(_ advice: Sampling?) { state.withLock { $0.advice = advice } }

  /// Whether to send a fix. The first of a trip always is: it is what others wait for.
  func takes(_ fix: Fix, trip: Identifier?) -> Bool {
    state.withLock { state in
      if trip != state.trip { state.gate.reset() }
      state.trip = trip
      return state.gate.takes(fix, by: state.advice)
    }
  }
}
