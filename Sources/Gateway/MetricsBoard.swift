// Where each thread hangs a copy of its counters, for whoever asks.
import HubCore
import Transport

final class MetricsBoard: Sendable {
  private struct State {
    var loops: [LoopCounters]
    var hub = HubCounters()
  }

  private let state: Locked<State>

  init(loops: Int) {
    state = Locked(State(loops: Array(repeating: LoopCounters(), count: loops)))
  }

  func store(_ counters: LoopCounters, loop: Int) { state.withLock { $0.loops[loop] = counters } }
  func store(_ counters: HubCounters) { state.withLock { $0.hub = counters } }

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
