// What came of one run, in the form that tables, JSON, reports and comparisons read.
import HubBytes

package struct RunResult: Sendable, Equatable {
  /// A second (or a longer part) of the window. Latencies are in µs.
  package struct Part: Sendable, Equatable {
    package var second: Double
    package var delivered: Double
    package var p50: Double
    package var p99: Double
    package var maximum: Double
  }

  /// So many values up to this many µs.
  package struct Bucket: Sendable, Equatable {
    package var microseconds: Double
    package var count: Double
  }

  package var scenario: String
  package var about: String
  /// Settings and hub options, as they were given.
  package var settings: [String]
  /// Which hub: its executable, or its address.
  package var hub: String
  /// Milliseconds since 1970.
  package var startedAt: Double
  package var figures: [Figure: Double]
  package var parts: [Part]
  /// Of latencies; where no position is expected, of what else has a time (`timed`).
  package var buckets: [Bucket]
  /// Why it says nothing about the hub: the load itself was too slow.
  package var invalid: [String]
  /// What the hub did that it must never do.
  package var violations: [String]

  package var isValid: Bool { invalid.isEmpty }
  package var isGood: Bool { invalid.isEmpty && violations.isEmpty }

  package subscript(_ figure: Figure) -> Double { figures[figure] ?? 0 }

  /// Resident bytes at the end, under load; for differences of two sizes. What was resident before the first connection
  /// differs by megabytes, with when the hub has given back the code that only starting needs.
  package var residentAtEnd: Double {
    self[.residentBytes] + (self[.bytesUnderLoad] - self[.bytesPerConnection]) * self[.connections]
  }

  /// What the buckets hold: positions from when they were due; without those, updates of a cell, acks, or connecting.
  package var timed: (what: String, title: String) {
    if figures[.latencyP50] != nil { return ("positions", "Latency, from when a fix was due") }
    if figures[.spreadP50] != nil { return ("updates", "From the tick to its reader") }
    if figures[.ackP50] != nil { return ("acks", "From when a batch or move was due to its ack") }
    if figures[.connectP50] != nil { return ("sessions", "Time to connect") }
    return ("positions", "Latency, from when a fix was due")
  }

  /// The p99 that a bound is held against; the maximum where there are too few latencies for a p99. µs
  package var tail: Double { figures[.latencyP99] ?? self[.latencyMax] }

  /// Parts and buckets of what was measured.
  mutating func plot(_ counts: Counts, _ schedule: Schedule) {
    parts = counts.parts.enumerated().filter { $0.element.count > 0 }.map { index, part in
      Part(
        second: Double(index) * schedule.partSeconds, delivered: Double(part.count) / schedule.partSeconds,
        p50: Double(part.value(atQuantile: 0.5)), p99: Double(part.value(atQuantile: 0.99)),
        maximum: Double(part.maximum))
    }
    let histogram = [counts.latency, counts.spread, counts.acks, counts.connects].first { $0.count > 0 }
    buckets = (histogram ?? LatencyHistogram()).buckets.map {
      Bucket(microseconds: Double($0.microseconds), count: Double($0.count))
    }
  }
}

/// One rate that a search for the highest tried.
package struct RateStep: Sendable, Equatable {
  /// Fixes a second of each driver, as they were due.
  package var offered: Double
  /// What the hub counted, of all drivers.
  package var fixesPerSecond: Double
  package var deliveriesPerSecond: Double
  package var p99: Double
  package var hubCores: Double
  package var isValid: Bool
  /// Whether the hub kept the bound and lost nothing.
  package var isKept: Bool
}

/// What a file of results holds.
package struct Results: Sendable, Equatable {
  package var machine: String
  /// What wrote them, where that is not a scenario: `figures`.
  package var kind: String?
  package var runs: [RunResult]
  /// Of a search, in the order in which they were tried.
  package var steps: [RateStep] = []
  /// µs that p99 had to keep.
  package var bound: Double?

  package init(machine: String, runs: [RunResult]) {
    self.machine = machine
    self.runs = runs
  }
}
