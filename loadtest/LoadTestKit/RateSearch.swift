// The highest rate that keeps p99 under a bound: doubling until it does not, then bisection, each rate in a run of its
// own against a hub of its own. Only valid runs count: where the load itself was too slow, lower rates are tried, for
// what the hub could carry beyond that cannot be measured from here; where none of the first four is kept, it ends.

package struct RateSearch {
  package let bound: Double
  /// Ends when the highest that was kept and the lowest that was not are this near to each other.
  static let precision = 0.05
  static let maximumSteps = 16

  package private(set) var steps: [RateStep] = []
  private var kept: Double?
  private var missed: Double?
  private var isOver = false

  /// `first`: the rate of each driver to begin with.
  package init(first: Double, bound: Double) {
    self.bound = bound
    next = first
  }

  /// The rate of each driver that is to be tried next; nil when all is known.
  package private(set) var next: Double?

  /// What came of a run at `next`.
  package mutating func note(_ run: RunResult) {
    guard let rate = next else { return }
    let isKept = run.isGood && run.tail <= bound && run[.conflated] == 0
    steps.append(
      RateStep(
        offered: rate, fixesPerSecond: run[.fixesPerSecond], deliveriesPerSecond: run[.deliveriesPerSecond],
        p99: run.tail, hubCores: run[.hubCores], isValid: run.isValid, isKept: isKept))
    if !run.isValid {
      isOver = kept == nil && steps.count > 3
      // Less load may be within this program's reach.
      missed = min(missed ?? rate, rate)
    } else if isKept {
      kept = max(kept ?? rate, rate)
    } else {
      missed = min(missed ?? rate, rate)
    }
    choose(after: rate)
  }

  private mutating func choose(after rate: Double) {
    if isOver || steps.count >= RateSearch.maximumSteps {
      next = nil
      return
    }
    switch (kept, missed) {
    case (.some(let low), .some(let high)):
      next = high / low <= 1 + RateSearch.precision ? nil : (low + high) / 2
    case (.some, .none): next = rate * 2
    case (.none, .some): next = rate / 2
    case (.none, .none): next = nil
    }
  }

  package static func verdict(_ steps: [RateStep], bound: Double) -> String {
    let limit = Figure.latencyP99.text(bound)
    guard let best = steps.filter(\.isKept).max(by: { $0.offered < $1.offered }) else {
      return "no rate that was tried keeps p99 under \(limit)"
    }
    let rate =
      "\(grouped(Int(best.fixesPerSecond))) fixes and \(grouped(Int(best.deliveriesPerSecond))) positions a second"
    // What came in is less than what was offered where the hub is too slow.
    let above = steps.filter { $0.offered > best.offered && !$0.isKept }.min { $0.offered < $1.offered }
    guard let above else { return "p99 is under \(limit) at \(rate), the most that was tried" }
    return above.isValid
      ? "\(rate) is the most with p99 under \(limit)"
      : "at least \(rate) with p99 under \(limit): beyond that this program was the bottleneck, not the hub"
  }
}
