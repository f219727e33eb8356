// Many seeds of the simulation. A failure prints its seed; SIMULATION_SEED=<n> runs that one alone,
// SIMULATION_SEEDS=<n> runs more of them.
import Foundation
import HubMessages
import Testing

@testable import HubCore

@Suite struct HubSimulationTests {
  static let steps = 2000
  static let groups = 6

  static var seeds: Range<UInt64> {
    let environment = ProcessInfo.processInfo.environment
    if let one = environment["SIMULATION_SEED"].flatMap(UInt64.init) { return one..<(one + 1) }
    return 0..<(environment["SIMULATION_SEEDS"].flatMap(UInt64.init) ?? 150)
  }

  /// Runs one world to its end; the digest of all outputs, and what was counted.
  private func run(_ seed: UInt64) throws(SimulationFailure) -> (UInt64, HubCounters, SimulationReach) {
    let simulation = Simulation(seed: seed)
    try simulation.run(steps: HubSimulationTests.steps)
    for loop in simulation.loops { simulation.reached.keptAsParty += loop.keptAsParty }
    return (simulation.digest, simulation.hub.counters, simulation.reached)
  }

  @Test("whatever drivers, riders and ops do, the hub keeps the contract", arguments: 0..<groups)
  func keepsTheContract(group: Int) {
    for seed in HubSimulationTests.seeds where Int(seed) % HubSimulationTests.groups == group {
      do throws(SimulationFailure) { _ = try run(seed) } catch {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test("the same seed gives the same outputs, another seed others")
  func isDeterministic() throws {
    let first = try [1, 2, 4].map { try run($0).0 }
    let second = try [1, 2, 4].map { try run($0).0 }
    #expect(first == second)
    #expect(Set(first).count == 3)
  }

  @Test("the simulation reaches what it is for: every outcome of a fix, refusals, replacements, full tables")
  func reachesEverything() throws {
    var total = [UInt64](repeating: 0, count: 19)
    for seed in 0..<12 as Range<UInt64> {
      let (_, counters, reached) = try run(seed)
      let row = [
        counters.fixesAccepted, counters.fixesHistory, counters.fixesDuplicate, counters.fixesHeld,
        counters.fixesReleased,
        counters.fixesUnreadable, counters.fixesForbidden, counters.fixesOrphaned, counters.tripMovesRefused,
        counters.replacements, counters.tableLimitHits.reduce(0, +), reached.forbidden, reached.recoveredAfterEnd,
        reached.claims,
        reached.keptAsParty, counters.fenceEvents[Int(HubMessages.Notification.Kind.fenceEnter.rawValue)],
        counters.fenceEvents[Int(HubMessages.Notification.Kind.fenceExit.rawValue)],
        counters.fenceEvents[Int(HubMessages.Notification.Kind.fenceDwell.rawValue)],
        counters.fenceEvents[Int(HubMessages.Notification.Kind.speeding.rawValue)],
      ]
      for (index, count) in row.enumerated() { total[index] += count }
    }
    #expect(total.allSatisfy { $0 > 0 }, "\(total)")
  }
}
