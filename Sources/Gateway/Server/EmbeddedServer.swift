// A server without threads, sockets or a clock: whoever has it turns its loops by hand, over networks of its own. So a
// simulated world runs sessions, admission, fan-out, resume and heartbeat as they are, in thousands of histories.
package import HubCore
import HubMessages
package import HubRuntime
package import HubSystem
package import HubTransport

/// A hub with its loops, all of them turned on one thread. It logs nothing, and its journal is written by its owner.
package final class EmbeddedServer {
  private let shared: SharedState
  private let loops: [EventLoop]
  private let sessions: [SessionLoopDelegate]

  /// Serves `hub`, as `configuration` says, with a loop for each of `networks`. `clock` is asked for the time of each
  /// turn; `history` makes what answers the hub's questions to its journal.
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

  /// One turn of a loop: what has arrived is handled, and what comes of it is sent.
  package func turn(_ loop: Int) { loops[loop].runTurn(timeoutMilliseconds: 0) }

  /// Whether a loop has left something of what had arrived to its next turn.
  package func hasUnhandledInput(_ loop: Int) -> Bool { loops[loop].hasUnhandledReports }

  /// What a loop's sockets came to so far.
  package func counters(_ loop: Int) -> EventLoopCounters { loops[loop].counters }

  /// Shows the hub to its owner, between two turns.
  package func inspect(_ body: (inout Hub) -> Void) { unsafe sessions[0].sessions.pointee.hub.inspect(body) }
}
