// hub-loadtest compare: the runs of one file against those of others, scenario by scenario. What cannot be compared is
// named, for a table that lacks a scenario looks like one in which nothing changed.
import HubCommandLine

package struct FileComparison: Sendable {
  package private(set) var comparisons: [Comparison] = []
  /// Scenarios that only one file of a pair has.
  package private(set) var leftOut: [String] = []
  /// Why something that was asked for could not be compared.
  package private(set) var failures: [String] = []

  /// The runs of a file, or of one of the hubs in it, with their name.
  package typealias Side = (name: String, runs: [RunResult])

  /// The first file against each other one. With one file: the two hubs in it.
  package init(_ files: [(name: String, results: Results)]) throws(LoadTestError) {
    guard let first = files.first else { throw .usage("compare A.json B.json …, or one file with runs of two hubs") }
    if files.count == 1 {
      let hubs = FileComparison.distinct(first.results.runs.map(\.hub))
      guard hubs.count == 2 else {
        throw .usage(
          hubs.isEmpty
            ? "\(first.name) has no runs"
            : "\(first.name) has runs of \(plural(hubs.count, "hub")), not of two: name a second file")
      }
      let sides = hubs.map { hub in (name: hub, runs: first.results.runs.filter { $0.hub == hub }) }
      compare(sides[0], sides[1])
    }
    for other in files.dropFirst() {
      compare((name: first.name, runs: first.results.runs), (name: other.name, runs: other.results.runs))
    }
    // Some have a single run by their nature, as a start has in `figures`.
    if !comparisons.isEmpty, !comparisons.contains(where: \.tells) {
      failures.append("there was nothing to compare: too few runs of each scenario")
    }
  }

  private mutating func compare(_ a: Side, _ b: Side) {
    let (ofA, ofB) = (FileComparison.distinct(a.runs.map(\.scenario)), FileComparison.distinct(b.runs.map(\.scenario)))
    for scenario in ofA where !ofB.contains(scenario) { leftOut.append("\(scenario) is only in \(a.name)") }
    for scenario in ofB where !ofA.contains(scenario) { leftOut.append("\(scenario) is only in \(b.name)") }
    let common = ofA.filter(ofB.contains)
    if common.isEmpty { failures.append("\(a.name) and \(b.name) have no scenario in common") }
    for scenario in common {
      let sides = [a, b].map { side in (name: side.name, runs: side.runs.filter { $0.scenario == scenario }) }
      let empty = sides.filter { !$0.runs.contains(where: \.isValid) }
      failures += empty.map { "no valid run of \(scenario) in \($0.name)" }
      guard empty.isEmpty else { continue }
      comparisons.append(Comparison(sides[0].runs, sides[1].runs, names: (sides[0].name, sides[1].name)))
    }
  }

  package var hasWorse: Bool { comparisons.contains(where: \.hasWorse) }

  package var text: String {
    (comparisons.map(\.text) + leftOut.map { "left out: \($0)" }).joined(separator: "\n")
  }

  private static func distinct(_ names: [String]) -> [String] {
    names.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }
}
