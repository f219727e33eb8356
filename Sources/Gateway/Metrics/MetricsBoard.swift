// Where each thread publishes a copy of its counters: once a second, and when new ones are requested.
public import HubBytes
import HubCluster
public import HubCore
import HubRuntime
import HubSystem
import HubTransport

final class MetricsBoard: Sendable {
  private struct State {
    var loops: [LoopCounters]
    /// The newest request that each loop's counters answer.
    var answered: [UInt64]
  }

  private let state: Locked<State>
  /// The hub's counters, and the numbers of the requests.
  let hub = HubMetrics()
  /// The counters of a cluster's thread; nil for a single hub.
  let cluster: Locked<ClusterCounters?>

  init(loops: Int, isInCluster: Bool = false) {
    cluster = Locked(isInCluster ? ClusterCounters() : nil)
    state = Locked(
      State(
        loops: Array(repeating: LoopCounters(), count: loops), answered: Array(repeating: 0, count: loops)))
  }

  /// Whether all counters are newer than a request.
  func isAnswered(_ question: UInt64) -> Bool {
    hub.isAnswered(question) && state.withLock { $0.answered.allSatisfy { $0 >= question } }
  }

  func store(_ counters: LoopCounters, loop: Int, answering question: UInt64) {
    state.withLock {
      $0.loops[loop] = counters
      $0.answered[loop] = question
    }
  }

  /// Why other hubs' events do not reach this hub of a cluster; nil where they do, and for a hub alone.
  var isolation: StaticString? { cluster.withLock { $0?.isolation } }

  var loops: [LoopCounters] { state.withLock { $0.loops } }
}

/// A running server's state, summed over its loops; at most a second old.
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
    hub = board.hub.counters
    for loop in board.loops {
      connections += loop.connections
      sessions += loop.sessions.reduce(0, +)
      publicationsOut += loop.fanOut.publicationsOut
      positionsOut += loop.fanOut.positionsOut
      conflated += loop.fanOut.conflatedByInterval + loop.transport.conflated
      dropped += loop.transport.dropped
      latency.merge(loop.fanOut.latency)
    }
  }
}
