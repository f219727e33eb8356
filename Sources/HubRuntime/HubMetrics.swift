// The hub's counters as other threads see them: a copy, made once a second, and when somebody asks for newer ones.
package import HubCore
import HubSystem
import Synchronization

package final class HubMetrics: Sendable {
  private struct State {
    var counters = HubCounters()
    /// The newest question that they answer.
    var answered: UInt64 = 0
  }

  private let state = Locked(State())
  /// Questions so far.
  private let asked = Atomic<UInt64>(0)

  package init() {}

  /// The newest question. What `store` says to be answered has to be read before the counters are.
  package var question: UInt64 { asked.load(ordering: .acquiring) }

  /// Asks for counters that are newer than this moment; the caller wakes the threads whose they are. Returns the
  /// question's number.
  package func ask() -> UInt64 { asked.add(1, ordering: .acquiringAndReleasing).newValue }

  /// Whether the hub's counters are newer than a question.
  package func isAnswered(_ question: UInt64) -> Bool { state.withLock { $0.answered >= question } }

  package func store(_ counters: HubCounters, answering question: UInt64) {
    state.withLock {
      $0.counters = counters
      $0.answered = question
    }
  }

  package var counters: HubCounters { state.withLock { $0.counters } }
}
