// A curve of growth, read from results, and whether it keeps its threshold.
//
// The kernel says to the nanosecond how long a process ran, and divides that into user and system by what its clock's
// ticks met; samples divide it more finely (ModeSampler). Either way some hundreds to thousands of them are counted,
// and the machine is not the same from minute to minute: growth is known to some percent only, and a curve that is
// nearer to the threshold than that is reported as open.

package struct GrowthLine {
  package struct Point: Sendable, Equatable {
    package var size: Double
    /// µs for a message, means of the runs.
    package var all: Double
    package var user: Double
    package var system: Double
    /// The user part of each run, in order.
    var rounds: [Double]
    /// Ticks or samples that met user space, of all runs together.
    var samples: Double
    package var isGood: Bool
  }

  package enum Verdict: Sendable { case met, missed, open }

  /// How much the user part may grow.
  package static let threshold = 0.1
  /// Ticks a second of most kernels (CONFIG_HZ); with more of them the error is less than reported.
  static let ticksPerSecond = 250.0

  package let curve: GrowthCurve
  package let points: [Point]

  /// Nil where the results have fewer than two sizes of it.
  package init?(_ curve: GrowthCurve, _ runs: [RunResult]) {
    let own = runs.filter { $0.scenario == curve.rawValue && $0.figures[curve.figure] != nil }
    let sizes = Set(own.map { $0[curve.figure] }).sorted()
    guard sizes.count > 1 else { return nil }
    self.curve = curve
    points = sizes.map { size in
      let same = own.filter { $0[curve.figure] == size }
      let mean = { (figure: Figure) in same.reduce(0) { $0 + $1[figure] } / Double(same.count) }
      let samples = same.reduce(0) { sum, run in
        let seconds = run[.userPerDelivery] * run.buckets.reduce(0) { $0 + $1.count } / 1e6
        return sum + (run.figures[.userSamples] ?? seconds * GrowthLine.ticksPerSecond)
      }
      return Point(
        size: size, all: mean(.cpuPerDelivery), user: mean(.userPerDelivery), system: mean(.systemPerDelivery),
        rounds: same.map { $0[.userPerDelivery] }, samples: samples, isGood: same.allSatisfy(\.isGood))
    }
  }

  /// By how much the user part is more at the largest size than at the smallest, and how exactly that is known (the
  /// standard error): 0.1 is 10 %. Nil where the runs were too short to see one.
  package var userGrowth: (part: Double, error: Double)? {
    guard let first = points.first, let last = points.last, first.user > 0, last.user > 0 else { return nil }
    let ratio = last.user / first.user
    let counted = ratio * (1 / max(1, first.samples) + 1 / max(1, last.samples)).squareRoot()
    return (ratio - 1, max(counted, GrowthLine.spread(first.rounds, last.rounds) ?? 0))
  }

  /// The standard error of what the rounds give each for itself; nil with fewer than three.
  private static func spread(_ first: [Double], _ last: [Double]) -> Double? {
    let ratios = zip(first, last).compactMap { $0 > 0 ? $1 / $0 : nil }
    guard ratios.count > 2 else { return nil }
    let count = Double(ratios.count)
    let mean = ratios.reduce(0, +) / count
    let variance = ratios.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / (count - 1)
    return (variance / count).squareRoot()
  }

  package var verdict: Verdict {
    guard points.allSatisfy(\.isGood), let growth = userGrowth else { return .open }
    if growth.part + growth.error <= GrowthLine.threshold { return .met }
    return growth.part - growth.error > GrowthLine.threshold ? .missed : .open
  }

  /// The growth in words.
  package var summary: String {
    guard let growth = userGrowth, let first = points.first, let last = points.last else {
      return "\(curve.title): too short to see the user part"
    }
    let percent = { (part: Double) in decimals(part * 100, 0) }
    let judged: String
    switch verdict {
    case .met: judged = "met"
    case .missed: judged = "missed"
    case .open: judged = points.allSatisfy(\.isGood) ? "open, not known better" : "open, not all runs count"
    }
    return
      "from \(grouped(Int(first.size))) to \(grouped(Int(last.size))) \(curve.title) the user part of a message goes "
      + "from \(decimals(first.user)) to \(decimals(last.user)) µs: \(percent(growth.part)) ± \(percent(growth.error)) % "
      + "(the threshold: \(percent(GrowthLine.threshold)) %, \(judged))"
  }

  package var text: String {
    var lines = [
      padded(curve.title, to: 28) + padded("µs", to: 9, right: true) + padded("user", to: 9, right: true)
        + padded("kernel", to: 9, right: true)
    ]
    for point in points {
      lines.append(
        padded(grouped(Int(point.size)), to: 28) + padded(decimals(point.all), to: 9, right: true)
          + padded(decimals(point.user), to: 9, right: true) + padded(decimals(point.system), to: 9, right: true)
          + (point.isGood ? "" : "  does not count"))
    }
    return (lines + [summary]).joined(separator: "\n")
  }
}
