// Thousands of small histories of a server, its network, its disk and its clients. A failure prints its seed and the
// last things that happened; HISTORY_SEED=<n> runs that one alone, HISTORIES=<n> runs more of them.
import Foundation
import HubDurabilityModel
import Testing

@Suite struct ModelTests {
  static let groups = 8

  static var seeds: Range<UInt64> {
    let environment = ProcessInfo.processInfo.environment
    if let one = environment["HISTORY_SEED"].flatMap(UInt64.init) { return one..<(one + 1) }
    let usual: UInt64 = environment["HUB_TESTS"] == "brief" ? 200 : 1000
    return 0..<(environment["HISTORIES"].flatMap(UInt64.init) ?? usual)
  }

  @Test(
    "whatever breaks, nobody misses an event or sees one twice, and what was acked is there", arguments: 0..<groups)
  func promises(group: Int) {
    for seed in Self.seeds where Int(seed) % Self.groups == group {
      do throws(HistoryFailure) { _ = try History.run(seed: seed) } catch {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test("the histories meet what they are for: every fault, and every answer to it")
  func reachesEverything() throws {
    var sum = HistoryReach()
    for seed in 0..<250 as Range<UInt64> { sum += try History.run(seed: seed) }
    for reach in Reach.allCases { #expect(sum[reach] > 0, "\(reach)") }
  }

  @Test("the same seed gives the same history")
  func isDeterministic() throws {
    for seed in 0..<20 as Range<UInt64> { #expect(try History.run(seed: seed) == History.run(seed: seed)) }
  }
}
