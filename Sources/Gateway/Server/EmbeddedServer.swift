// A server without threads, sockets or a clock: its owner turns its loops by hand, over simulated networks, to run
// sessions, admission, fan-out, resume and heartbeat in thousands of simulated histories.
package import HubCore
import HubMessages
package import HubRuntime
package import HubSystem
package import HubTransport

/// A hub with its loops, all turned on one thread. It logs nothing, and its owner writes its journal.
package final class EmbeddedServer {
  private let shared: SharedState
  private let loops: [EventLoop]
  private let sessions: [SessionLoopDelegate]

  /// Serves `hub` with `configuration` and a loop for each of `networks`. `clock` gives the time of each turn;
  /// `history` makes the answers to the hub's questions to its journal.
  ///
  /// Throws when the kernel has no descriptor left: each loop has two.
  package init(
    _ configuration: ServerConfiguration, _ hub: consuming Hub, networks: [any Network],
    clock: @escaping () -> ClockReading, history: (Waker) -> Consultation<HistoryLookup>?
  ) throws(SystemError) {
    configuration.limits.validate()
    precondition(configuration.loops == networks.count, "a network for each loop")
    let shared = SharedState(configuration: configuration, log: .silent)
    let limits = configuration.limits.eventLoop(loops: networks.count, openFiles: 1024)
    var loops: [EventLoop] = []
    for network in networks {
      let loop = try EventLoop(limits: limits, clock: clock, network: network)
      _ = try loop.listen(.loopback(port: configuration.port))
      loops.append(loop)
    }
    let history = history(loops[0].waker)
    func makeSessions(_ index: Int, _ port: consuming HubPort) -> SessionLoopDelegate {
      let sessions = SessionLoopDelegate(
        SessionLoop(index: index, loop: loops[index], hub: port, shared: shared, configuration: configuration))
      loops[index].delegate = sessions
      return sessions
    }
    if loops.count == 1 {
      sessions = [makeSessions(0, HubPort(hub: hub, journal: shared.journal, history: history))]
    } else {
      let capacity = configuration.limits.mailboxMessages
      let now = loops[0].now
      let sharedHub = SharedHub(
        hub, outlets: loops.map { Outlet(to: $0, capacity: capacity) }, inboxCapacity: capacity,
        journal: shared.journal, history: history, lifecycle: shared.lifecycle, metrics: shared.metrics.hub,
        now: Moment(now))
      sessions = loops.indices.map { makeSessions($0, HubPort(sharedHub, loop: $0)) }
    }
    self.shared = shared
    self.loops = loops
  }

  /// The queue to the journal, which its owner writes; nil where nothing is stored.
  package var journal: JournalQueue? { shared.journal }

  /// Runs one turn of a loop: handles input and sends the output.
  package func turn(_ loop: Int) { loops[loop].runTurn(timeoutMilliseconds: 0) }

  /// Whether a loop left input to its next turn.
  package func hasUnhandledInput(_ loop: Int) -> Bool { loops[loop].hasUnhandledReports }

  /// The counters of a loop's sockets.
  package func counters(_ loop: Int) -> EventLoopCounters { loops[loop].counters }

  /// Gives the hub to its owner, between two turns.
  package func inspect(_ body: (inout Hub) -> Void) { unsafe sessions[0].sessions.pointee.hub.inspect(body) }
}
