// What got better or worse from A to B, beyond noise.
//
// The rule: a figure has changed where the rank sum test says that chance alone would do as much in 2 of 100 cases at
// most, and the medians are 2 % or more apart. Five runs of each can show that (1 in 126 when all of A are on one side
// of all of B), three cannot. Runs must be interleaved, ABBA…: else a slow minute of the machine is taken for a slow
// hub.

package struct Comparison: Sendable {
  package enum Verdict: String, Sendable {
    case better, worse
    case same = "no difference beyond noise"
    case tooFew = "too few runs to tell"
  }

  package struct Line: Sendable {
    package let figure: Figure
    package let a: Double
    package let b: Double
    /// Scatter of each, as a part of its median.
    package let scatter: (a: Double, b: Double)
    package let probability: Double
    package let verdict: Verdict
  }

  static let level = 0.02
  static let smallestChange = 0.02

  package let scenario: String
  package let lines: [Line]
  package let names: (a: String, b: String)
  package let counts: (a: Int, b: Int)
  /// Runs in which the hub did what it must not, also those that are not valid.
  package let violated: (a: Int, b: Int)
  /// What makes the comparison worth less.
  package let warnings: [String]

  /// Of the runs of one scenario. Those that are not valid are left out.
  package init(_ a: [RunResult], _ b: [RunResult], names: (String, String)) {
    let (validA, validB) = (a.filter(\.isValid), b.filter(\.isValid))
    self.names = names
    counts = (validA.count, validB.count)
    violated = (a.count { !$0.violations.isEmpty }, b.count { !$0.violations.isEmpty })
    scenario = a.first?.scenario ?? b.first?.scenario ?? ""
    var lines: [Line] = []
    for figure in Figure.allCases where figure.better != .neither {
      let (valuesA, valuesB) = (validA.compactMap { $0.figures[figure] }, validB.compactMap { $0.figures[figure] })
      guard !valuesA.isEmpty, !valuesB.isEmpty, (valuesA + valuesB).contains(where: { $0 != 0 }) else { continue }
      lines.append(Comparison.line(figure, valuesA, valuesB))
    }
    self.lines = lines
    warnings = Comparison.warnings(a, b, validA, validB)
  }

  static func line(_ figure: Figure, _ a: [Double], _ b: [Double]) -> Line {
    let (medianA, medianB) = (RankTest.median(a), RankTest.median(b))
    let probability = RankTest.probability(a, b)
    let change = medianA == 0 ? (medianB == 0 ? 0 : 1) : abs(medianB - medianA) / abs(medianA)
    let fewest = RankTest.probability(a.indices.map { Double($0) }, b.indices.map { Double($0 + a.count) })
    let verdict: Verdict =
      if fewest > level {
        .tooFew
      } else if probability > level || change < smallestChange {
        .same
      } else {
        (medianB < medianA) == (figure.better == .lower) ? .better : .worse
      }
    let scatter = { (values: [Double], median: Double) in
      median == 0 ? 0 : RankTest.medianDeviation(values) / abs(median)
    }
    return Line(
      figure: figure, a: medianA, b: medianB, scatter: (scatter(a, medianA), scatter(b, medianB)),
      probability: probability, verdict: verdict)
  }

  private static func warnings(
    _ a: [RunResult], _ b: [RunResult], _ validA: [RunResult], _ validB: [RunResult]
  ) -> [String] {
    var warnings: [String] = []
    let left = a.count + b.count - validA.count - validB.count
    if left > 0 { warnings.append("\(plural(left, "run")) \(left == 1 ? "is" : "are") not valid and left out") }
    for (name, runs) in [("A", a), ("B", b)] {
      let violated = runs.filter { !$0.violations.isEmpty }
      guard let first = violated.first?.violations.first else { continue }
      warnings.append("\(plural(violated.count, "run")) of \(name) VIOLATED what must hold, for instance: \(first)")
    }
    // Slow sessions are meant to miss positions, and no latency is of them.
    let censored = (validA + validB).count { $0[.conflated] > 0 && $0[.slowDelivered] == 0 }
    if censored > 0 {
      warnings.append("\(plural(censored, "run")) left positions out for newer ones: latencies are of the others only")
    }
    if Set((a + b).map { $0.settings.sorted() }).count > 1 { warnings.append("the runs have different settings") }
    if let lastA = validA.map(\.startedAt).max(), let firstA = validA.map(\.startedAt).min(),
      let lastB = validB.map(\.startedAt).max(), let firstB = validB.map(\.startedAt).min(),
      lastA < firstB || lastB < firstA
    {
      warnings.append("the runs of A and B were not interleaved: what changed may be the machine")
    }
    return warnings
  }

  /// Whether something got worse: a figure, or what must hold and does only in A.
  package var hasWorse: Bool {
    lines.contains { $0.verdict == .worse } || violated.a == 0 && violated.b > 0
  }

  /// Whether it says anything: there is something worse, or a figure with enough runs.
  package var tells: Bool { hasWorse || lines.contains { $0.verdict != .tooFew } }

  package var text: String {
    let runs = (a: plural(counts.a, "run"), b: plural(counts.b, "run"))
    var rows = ["\(scenario): A is \(names.a) (\(runs.a)), B is \(names.b) (\(runs.b))"]
    let empty = [("A", counts.a), ("B", counts.b)].filter { $0.1 == 0 }.map {
      "  no valid run in \($0.0): nothing to compare"
    }
    if !empty.isEmpty { return (rows + empty).joined(separator: "\n") }
    rows.append(
      "  " + padded("medians", to: 36) + padded("A", to: 14, right: true) + padded("B", to: 14, right: true)
        + padded("B / A", to: 9, right: true) + padded("scatter", to: 14, right: true) + padded("p", to: 8, right: true)
    )
    for line in lines {
      let ratio = line.a == 0 ? "-" : decimals(line.b / line.a, 3)
      rows.append(
        "  " + padded(line.figure.title, to: 36) + padded(line.figure.text(line.a), to: 14, right: true)
          + padded(line.figure.text(line.b), to: 14, right: true) + padded(ratio, to: 9, right: true)
          + padded(
            "\(decimals(line.scatter.a * 100, 1))/\(decimals(line.scatter.b * 100, 1)) %", to: 14, right: true)
          + padded(decimals(line.probability, 3), to: 8, right: true)
          + (line.verdict == .same ? "" : "  \(line.verdict.rawValue)"))
    }
    rows.append(
      "  better or worse: chance would do it in \(Int(Comparison.level * 100)) of 100 cases at most (rank sum test), "
        + "and the medians differ by \(Int(Comparison.smallestChange * 100)) % or more")
    rows += warnings.map { "  NOTE: \($0)" }
    return rows.joined(separator: "\n")
  }
}
