// What one thread of the load counted. Those of all threads are merged when the run is over.
package import HubBytes

/// Counts of messages go over the whole run, warm-up included, so that they can be compared with the hub's own;
/// latencies are of what was due in the measured window.
package struct Counts: Sendable {
  /// Fixes that were sent, alone or in batches, and the positions that must come of them.
  package var sent = 0
  package var expected = 0
  package var delivered = 0
  package var duplicated = 0
  package var outOfOrder = 0
  /// Positions that came to sessions of which nothing is expected: riders who come and go.
  package var extra = 0
  package var errors = 0
  /// What the first of these was.
  package var firstError: String?
  /// Moves of trips and batches, and the acks that came.
  package var requests = 0
  package var acknowledged = 0
  /// Numbered events that came, and those that a gap in the numbers shows to be missing.
  package var events = 0
  package var eventsLost = 0
  package var eventsDuplicated = 0
  /// Sessions that were due to come again or in the storm, those that came, and those of these that the hub brought up
  /// to date.
  package var joinsDue = 0
  package var joined = 0
  package var recovered = 0
  /// Positions that slow sessions got; `delivered` includes them.
  package var slowDelivered = 0
  /// Updates of the cell that came to watchers, and those of them that were snapshots.
  package var areaUpdates = 0
  package var areaSnapshots = 0
  /// Updates that watchers must have had at least, and had not.
  package var areaUpdatesMissing = 0
  /// From the tick, by the hub's wall clock, to when a watcher had read it: how long the fan-out takes.
  package var spread = LatencyHistogram()
  /// From when a fix was due to when its position was read, one for each part of the window.
  package var parts: [LatencyHistogram] = []
  /// How late fixes were sent: this program's own doing.
  package var lateness = LatencyHistogram()
  /// From when a batch or move was due to its ack.
  package var acks = LatencyHistogram()
  /// From when a session was due to come (again) to its subscription.
  package var joins = LatencyHistogram()
  /// From when a session that was there from the beginning was due to come to its subscription.
  package var connects = LatencyHistogram()
  /// CPU of this thread within the window, as a share of a core.
  package var cpuShare = 0.0

  package init() {}

  package mutating func fail(_ text: @autoclosure () -> String) {
    errors += 1
    if firstError == nil { firstError = text() }
  }

  /// All of `parts`.
  package var latency: LatencyHistogram {
    var all = LatencyHistogram()
    for part in parts { all.merge(part) }
    return all
  }

  /// `cpuShare` becomes that of the busiest thread.
  package mutating func merge(_ other: Counts) {
    for path in Counts.sums { self[keyPath: path] += other[keyPath: path] }
    firstError = firstError ?? other.firstError
    while parts.count < other.parts.count { parts.append(LatencyHistogram()) }
    for (index, part) in other.parts.enumerated() { parts[index].merge(part) }
    lateness.merge(other.lateness)
    acks.merge(other.acks)
    joins.merge(other.joins)
    connects.merge(other.connects)
    spread.merge(other.spread)
    cpuShare = max(cpuShare, other.cpuShare)
  }

  private static var sums: [WritableKeyPath<Counts, Int>] {
    [
      \.sent, \.expected, \.delivered, \.duplicated, \.outOfOrder, \.extra, \.errors, \.requests, \.acknowledged,
      \.events, \.eventsLost, \.eventsDuplicated, \.joinsDue, \.joined, \.recovered,
      \.slowDelivered, \.areaUpdates, \.areaSnapshots, \.areaUpdatesMissing,
    ]
  }
}
