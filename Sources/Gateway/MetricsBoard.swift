// Where each thread hangs a copy of its counters, for whoever asks: once a second, and when one of them asks for new
// ones.
import HubCore
import HubSystem
import Synchronization

final class MetricsBoard: Sendable {
  private struct State {
    var loops: [LoopCounters]
    var hub = HubCounters()
    /// The newest question that each loop's counters, and the hub's, are an answer to.
    var answered: [UInt64]
    var answeredByHub: UInt64 = 0
  }

  private let state: Locked<State>
  /// Questions so far.
  private let asked = Atomic<UInt64>(0)

  init(loops: Int) {
    state = Locked(
      State(
        loops: Array(repeating: LoopCounters(), count: loops), answered: Array(repeating: 0, count: loops)))
  }

  /// What `store` says to be answered has to be read before the counters are.
  var question: UInt64 { asked.load(ordering: .acquiring) }

  /// Asks for counters that are newer than this moment; the caller wakes whose they are. Gives the question's number.
  func ask() -> UInt64 { asked.add(1, ordering: .acquiringAndReleasing).newValue }

  /// Whether all counters are newer than a question.
  func isAnswered(_ question: UInt64) -> Bool {
    state.withLock { $0.answeredByHub >= question && $0.answered.allSatisfy { $0 >= question } }
  }

  func store(_ counters: LoopCounters, loop: Int, answering question: UInt64) {
    state.withLock {
      $0.loops[loop] = counters
      $0.answered[loop] = question
    }
  }

  func store(_ counters: HubCounters, answering question: UInt64) {
    state.withLock {
      $0.hub = counters
      $0.answeredByHub = question
    }
  }

  var loops: [LoopCounters] { state.withLock { $0.loops } }
  var hub: HubCounters { state.withLock { $0.hub } }
}

/// How a running server stands, summed over its loops; at most a second old.
public struct ServerStatistics: Sendable {
  public var connections = 0
  public var sessions = 0
  public var hub = HubCounters()
  public var publicationsOut: UInt64 = 0
  public var positionsOut: UInt64 = 0
  public var conflated: UInt64 = 0
  public var dropped: UInt64 = 0
  public var latency = LatencyHistogram()

  init(_ board: MetricsBoard) {
    hub = board.hub
    for loop in board.loops {
      connections += loop.connections
      sessions += loop.sessions.reduce(0, +)
      publicationsOut += loop.publicationsOut
      positionsOut += loop.positionsOut
      conflated += loop.conflatedByInterval + loop.transport.conflated
      dropped += loop.transport.dropped
      latency.merge(loop.latency)
    }
  }
}
