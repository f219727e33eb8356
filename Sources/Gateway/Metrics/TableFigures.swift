// The tables of a server, for operators: entries, limit, and how often each was full. Limits of one session, address or
// identity are among the `limit_hits_total` instead, since others are not affected.
import HubCore
import HubTransport

/// One table on the metrics page.
struct TableFigures {
  var name: StaticString
  var entries: Int
  var capacity: Int
  /// Refusals, or entries not kept, because it was full.
  var hits: UInt64
}

/// The bounds of a server's tables, and sizes that no counter has.
struct TableBounds {
  var limits: Limits
  var loops: Int
  /// Sessions of all loops, and connections of one.
  var sessions: Int
  var connectionsPerLoop: Int
  /// Addresses and identities in their tables.
  var addresses: Int
  var identities: Int

  /// All tables, the hub's first.
  func figures(_ counters: [LoopCounters], _ hub: HubCounters) -> [TableFigures] {
    let hubLimits = limits.hub
    let ofHub = HubTable.allCases.map { table in
      TableFigures(
        name: table.name, entries: hub.entries(table), capacity: hubLimits.capacity(of: table),
        hits: hub.hits(table))
    }
    let connections = connectionsPerLoop * loops
    let sessions = min(sessions, connections)
    let ofLoops = [
      TableFigures(
        name: "connections", entries: counters.reduce(0) { $0 + $1.connections }, capacity: connections,
        hits: counters.reduce(0) { $0 + $1.transport.refused }),
      TableFigures(
        name: "sessions", entries: counters.reduce(0) { $0 + $1.sessions.reduce(0, +) }, capacity: sessions,
        hits: counters.reduce(0) { $0 + $1.hits(.sessions) }),
      // These two are never full: each session may have an identity, and each connection an address, of its own.
      TableFigures(name: "identities", entries: identities, capacity: sessions, hits: 0),
      TableFigures(
        name: "addresses", entries: addresses, capacity: connections + limits.idleAddresses, hits: 0),
      TableFigures(
        name: "subscriptions", entries: counters.reduce(0) { $0 + $1.fanOut.subscriptions },
        capacity: sessions * limits.subscriptionsPerSession, hits: 0),
      TableFigures(
        name: "answers", entries: counters.reduce(0) { $0 + $1.pendingReplies }, capacity: limits.hub.queries * loops,
        hits: counters.reduce(0) { $0 + $1.answersFull }),
      TableFigures(
        name: "history_questions", entries: counters.reduce(0) { $0 + $1.historyQuestions },
        capacity: limits.historyQuestions, hits: counters.reduce(0) { $0 + $1.historyFull }),
    ]
    return ofHub + ofLoops
  }
}
