// When everything is due. The load is open: what is due is fixed before the run, and counts from then, so that a stall
// of the hub (or of this program) shows in all that it delayed, and not only in the one message that was under way
// (G. Tene, "How NOT to Measure Latency": coordinated omission).

/// The times of one run, on the clock of `ClockReading.uptimeNanoseconds`.
package struct Schedule: Sendable, Equatable {
  /// When the first is due.
  package let start: Int64
  /// Nanoseconds between two of one driver.
  package let interval: Double
  /// Drivers of all threads: they are spread evenly over an interval.
  package let drivers: Int
  /// What is due within this range is measured.
  package private(set) var window: Range<Int64>
  /// Parts into which it is divided for plots over time.
  package private(set) var partCount: Int
  /// When the storm breaks.
  package let storm: Int64
  /// Nanoseconds between two who leave and come again.
  package let churnInterval: Double?

  package init(_ scenario: Scenario, start: Int64) {
    self.start = start
    interval = 1e9 / scenario.rate
    drivers = max(1, scenario.drivers)
    let begin = start + Int64(scenario.warmUp * 1e9)
    let length = Int64(scenario.duration * 1e9)
    window = begin..<begin + length
    partCount = min(600, max(1, Int((Double(length) / 1e9).rounded())))
    storm = begin + Int64(Double(length) * scenario.stormAt)
    churnInterval = scenario.churn > 0 ? 1e9 / scenario.churn : nil
  }

  /// When number `number` of a driver is due. Numbers begin at 0.
  package func due(_ driver: Int, _ number: Int) -> Int64 {
    start + Int64(interval * (Double(number) + Double(driver) / Double(drivers)))
  }

  /// When the one who leaves and comes as number `number` of all threads is due.
  package func churnDue(_ number: Int) -> Int64? {
    churnInterval.map { start + Int64($0 * Double(number)) }
  }

  /// A schedule of this load of which another time is measured, as one part.
  func measuring(_ window: Range<Int64>) -> Schedule {
    var schedule = self
    schedule.window = window
    schedule.partCount = 1
    return schedule
  }

  // MARK: Intervals of the report

  package var partSeconds: Double { Double(window.upperBound - window.lowerBound) / 1e9 / Double(partCount) }

  /// Which part of the window a time lies in; nil outside.
  package func part(of time: Int64) -> Int? {
    guard window.contains(time) else { return nil }
    return min(partCount - 1, Int(Double(time - window.lowerBound) / 1e9 / partSeconds))
  }
}

/// How a fix says which one it is: its timestamp is base + number × step, so that a rider knows without a table when it
/// was due.
enum FixTime {
  static let base = 1_700_000_000_000
  /// Milliseconds by the fix's own clock from one to the next, whatever the real rate: the hub sees one fix a second.
  static let step = 1000

  static func timestamp(_ number: Int) -> Int { base + number * step }

  /// The number of a fix with this timestamp; nil where it is none of ours. A simulated phone measures anywhere within
  /// its step.
  static func number(_ timestamp: Int) -> Int? { timestamp >= base ? (timestamp - base) / step : nil }
}
