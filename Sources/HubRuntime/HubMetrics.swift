// The hub's counters for other threads: a copy, made once a second, and on request.
package import HubCore
import HubSystem
import Synchronization

package final class HubMetrics: Sendable {
  private struct State {
    var counters = HubCounters()
    /// The newest request than which `counters` are newer.
    var answered: UInt64 = 0
  }

  private let state = Locked(State())
  /// The number of requests.
  private let asked = Atomic<UInt64>(0)

  package init() {}

  /// The newest request. Read it before the counters that `store` marks as its answer.
  package var question: UInt64 { asked.load(ordering: .acquiring) }

  /// Requests counters newer than this moment; the caller wakes the threads concerned. Returns the request's number.
  package func ask() -> UInt64 { asked.add(1, ordering: .acquiringAndReleasing).newValue }

  /// Whether the hub's counters are newer than a request.
  package func isAnswered(_ question: UInt64) -> Bool { state.withLock { $0.answered >= question } }

  package func store(_ counters: HubCounters, answering question: UInt64) {
    state.withLock {
      $0.counters = counters
      $0.answered = question
    }
  }

  package var counters: HubCounters { state.withLock { $0.counters } }
}
