// The rank sum test against counting every way to deal out the values, and the comparison's rule.
import HubCommandLine
import HubTestSupport
import Testing

@testable import HubLoadTestKit

@Suite struct RankTestTests {
  @Test("the probability is that of counting every choice of ranks", arguments: 1...20 as ClosedRange<UInt64>)
  func oracle(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let a = (0..<Int.random(in: 1...5, using: &random)).map { _ in Double(Int.random(in: 0...6, using: &random)) }
    let b = (0..<Int.random(in: 1...5, using: &random)).map { _ in Double(Int.random(in: 0...6, using: &random)) }
    let all = a + b
    let ranks = all.map { value in
      Double(all.count { $0 < value }) + Double(all.count { $0 == value } + 1) / 2
    }
    let middle = ranks.reduce(0, +) * Double(a.count) / Double(all.count)
    let observed = abs(ranks[..<a.count].reduce(0, +) - middle)
    var (asFar, ways) = (0, 0)
    for choice in 0..<(1 << all.count) where choice.nonzeroBitCount == a.count {
      let sum = ranks.indices.filter { choice >> $0 & 1 == 1 }.reduce(0.0) { $0 + ranks[$1] }
      ways += 1
      if abs(sum - middle) >= observed - 1e-9 { asFar += 1 }
    }
    let exact = Double(asFar) / Double(ways)
    #expect(abs(RankTest.probability(a, b) - exact) < 0.02, "\(a) \(b)")
    if (2 * a.count) % all.count == 0 { #expect(abs(RankTest.probability(a, b) - exact) < 1e-9) }
  }

  @Test("five against five that lie apart: 1 in 126; equal samples: 1; an empty one: 1")
  func known() {
    #expect(abs(RankTest.probability([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) - 2.0 / 252) < 1e-12)
    #expect(RankTest.probability([1, 1], [1, 1]) == 1)
    #expect(RankTest.probability([], [1]) == 1)
  }

  @Test("many values are compared by the normal distribution, which is near where both can be")
  func many() {
    var random = SplitMix64(seed: 7)
    for shift in [0.0, 2, 5, 9] {
      // Twenty of each are counted; a value more of each is not.
      let a = (0..<20).map { _ in Double(Int.random(in: 0...30, using: &random)) }
      let b = (0..<20).map { _ in Double(Int.random(in: 0...30, using: &random)) + shift }
      let (few, more) = (RankTest.probability(a, b), RankTest.probability(a + [15], b + [15 + shift]))
      #expect(abs(few - more) < 0.05, "\(few) \(more)")
    }
    let counted = (1...20).map { Double($0) }
    let beyond = (1...1000).map { Double($0) }
    #expect(RankTest.probability(counted, counted.map { $0 + 100 }) < 1e-9)
    #expect(RankTest.probability(beyond, beyond.map { $0 + 2000 }) < 1e-9)
    #expect(RankTest.probability(beyond, beyond) > 0.99)
    #expect(RankTest.probability(beyond.map { _ in 1 }, beyond.map { _ in 1 }) == 1)
  }

  @Test("medians and their scatter")
  func medians() {
    #expect(RankTest.median([3, 1, 2]) == 2)
    #expect(RankTest.median([4, 1, 2, 3]) == 2.5)
    #expect(RankTest.median([]) == 0)
    #expect(RankTest.medianDeviation([1, 1, 2, 9]) == 0.5)
  }
}

@Suite struct ComparisonTests {
  private func runs(_ values: [Double], hub: String = "a", from start: Double = 0, valid: Bool = true) -> [RunResult] {
    values.enumerated().map { index, value in
      RunResult(
        scenario: "trip", about: "", settings: [], hub: hub, startedAt: start + Double(index) * 10,
        figures: [.cpuPerFix: value, .fixesPerSecond: 1000 / value, .sent: value], parts: [], buckets: [],
        invalid: valid ? [] : ["too busy"], violations: [])
    }
  }

  private func verdict(_ comparison: Comparison, _ figure: Figure) -> Comparison.Verdict? {
    comparison.lines.first { $0.figure == figure }?.verdict
  }

  @Test("what costs clearly more is worse, and a rate that is clearly higher is better")
  func changed() {
    let comparison = Comparison(
      runs([20, 21, 20, 22, 21]), runs([30, 31, 29, 33, 30], hub: "b", from: 5), names: ("a", "b"))
    #expect(verdict(comparison, .cpuPerFix) == .worse)
    #expect(verdict(comparison, .fixesPerSecond) == .worse)
    #expect(comparison.hasWorse && comparison.warnings.isEmpty)
    let back = Comparison(
      runs([30, 31, 29, 33, 30]), runs([20, 21, 20, 22, 21], hub: "b", from: 5), names: ("b", "a"))
    #expect(verdict(back, .cpuPerFix) == .better && verdict(back, .fixesPerSecond) == .better && !back.hasWorse)
    #expect(verdict(back, .sent) == nil)
  }

  @Test("what overlaps, and what differs by less than 2 in 100, is noise")
  func noise() {
    let overlapping = Comparison(
      runs([20, 25, 22, 28, 24]), runs([21, 26, 23, 29, 25], hub: "b", from: 5), names: ("a", "b"))
    #expect(verdict(overlapping, .cpuPerFix) == .same)
    let small = Comparison(
      runs([20, 20.01, 20.02, 20.03, 20.04]), runs([20.1, 20.11, 20.12, 20.13, 20.14], hub: "b", from: 5),
      names: ("a", "b"))
    #expect(verdict(small, .cpuPerFix) == .same)
  }

  @Test("three runs of each decide nothing, however far apart")
  func few() {
    let comparison = Comparison(runs([1, 1, 1]), runs([9, 9, 9], hub: "b", from: 5), names: ("a", "b"))
    #expect(verdict(comparison, .cpuPerFix) == .tooFew && !comparison.hasWorse)
  }

  @Test("runs that are not valid are left out, and runs one after the other are warned of")
  func warned() {
    let comparison = Comparison(
      runs([20, 21]) + runs([1], from: 3, valid: false), runs([20], hub: "b", from: 1000), names: ("a", "b"))
    #expect(comparison.counts.a == 2)
    #expect(comparison.warnings.count == 2 && comparison.warnings[0] == "1 run is not valid and left out")
    #expect(comparison.text.hasPrefix("trip: A is a (2 runs), B is b (1 run)"))
    let none = Comparison(runs([20], valid: false), runs([20], hub: "b"), names: ("a", "b"))
    #expect(none.text.contains("no valid run in A") && !none.text.contains("medians"))
  }

  @Test("a hub that leaves out positions for newer ones is worse, and its latencies are said to be of the others")
  func conflated() {
    func conflating(_ values: [Double], slow: Double = 0) -> [RunResult] {
      var runs = runs([20, 21, 20, 22, 21], hub: "b", from: 5)
      for (index, value) in values.enumerated() {
        runs[index].figures[.conflated] = value
        runs[index].figures[.slowDelivered] = slow
      }
      return runs
    }
    let few = conflating([1, 2, 1, 3, 2])
    let comparison = Comparison(few, conflating([300, 310, 290, 305, 300]), names: ("a", "b"))
    #expect(verdict(comparison, .conflated) == .worse && comparison.hasWorse)
    #expect(
      comparison.warnings.contains("10 runs left positions out for newer ones: latencies are of the others only"))
    let slow = Comparison(conflating([9, 9], slow: 5), conflating([9, 9], slow: 5), names: ("a", "b"))
    #expect(!slow.text.contains("left positions out"), "slow sessions are meant to")
  }

  @Test("what the hub must not do is named, and worse where only B did it, though too few runs tell no figure")
  func violated() throws {
    var bad = runs([20], hub: "b")
    bad[0].violations = ["lost: 3"]
    let worse = Comparison(runs([20]), bad, names: ("a", "b"))
    #expect(worse.hasWorse && worse.tells && worse.violated == (0, 1))
    #expect(worse.text.contains("NOTE: 1 run of B VIOLATED what must hold, for instance: lost: 3"))
    let both = Comparison(bad, bad, names: ("a", "b"))
    #expect(!both.hasWorse && !both.tells && both.text.contains("1 run of A VIOLATED"))
    let files = [("a.json", runs([20])), ("b.json", bad)].map { (name: $0, results: Results(machine: "", runs: $1)) }
    #expect(try FileComparison(files).failures.isEmpty && FileComparison(files).hasWorse)
    #expect(
      try FileComparison(files.map { ($0.name, files[0].results) }).failures
        == ["there was nothing to compare: too few runs of each scenario"])
  }

  @Test("files are compared scenario by scenario, and what cannot be is named")
  func files() throws {
    func file(_ name: String, _ runs: [RunResult]) -> (name: String, results: Results) {
      (name, Results(machine: "", runs: runs))
    }
    let enough = [20.0, 21, 22, 23, 24]
    let both = file("a.json", runs(enough) + [sampleRun("fan-out")])
    let one = try FileComparison([both, file("b.json", runs(enough, hub: "b") + [sampleRun("area")])])
    #expect(one.comparisons.count == 1 && one.failures.isEmpty)
    #expect(one.leftOut == ["fan-out is only in a.json", "area is only in b.json"])
    #expect(one.text.contains("left out: fan-out is only in a.json"))
    let invalid = try FileComparison([both, file("nv.json", runs([20], valid: false))])
    #expect(invalid.failures == ["no valid run of trip in nv.json"] && invalid.comparisons.isEmpty)
    let strange = try FileComparison([both, file("b.json", runs(enough)), file("c.json", [sampleRun("area")])])
    #expect(strange.comparisons.count == 1 && strange.failures == ["a.json and c.json have no scenario in common"])
    let hubs = try FileComparison([file("a.json", runs([20]) + runs([21], hub: "b"))])
    #expect(hubs.comparisons.first?.names.b == "b")
    do throws(LoadTestError) {
      _ = try FileComparison([file("a.json", runs([20]))])
      Issue.record("compared with nothing")
    } catch {
      #expect(error.description.contains("runs of 1 hub, not of two"))
    }
    #expect(throws: LoadTestError.self) { try FileComparison([]) }
  }
}
