// Seeded histories of a whole fleet (Fleet.swift): hubs die in the middle of a write and begin anew with their journal,
// stall, and have clocks that are 5 s apart; frames are lost, spoiled and late, and come twice; links are cut, and the
// engine is away.
import Foundation
import HubBackplaneSupport
import Testing

@Suite struct FleetTests {
  static let groups = 4

  @Test(
    "Whatever fails, no event is missing, doubled or out of order, what was acked is there, and all hubs say the same",
    arguments: 0..<groups)
  func promises(group: Int) {
    var sum: [FleetReach: Int] = [:]
    let seeds = historySeeds(60)
    for seed in seeds where Int(seed) % Self.groups == group {
      let fleet = Fleet(seed: seed)
      if seeds.count == 1 { fleet.world.engine.trace = { [unowned fleet] in fleet.note($0) } }
      fleet.run()
      let faults = fleet.faults()
      sum.merge(fleet.reach, uniquingKeysWith: +)
      guard !faults.isEmpty else { continue }
      Issue.record("\(replay(seed, "FleetTests")): \(faults)\n\(fleet.diary.suffix(400).joined(separator: "\n"))")
      return
    }
    guard seeds.count >= 60 else { return }
    // An engine forgets only while all hubs are alive and cut off from it: too seldom for each group of so few.
    for event in FleetReach.allCases where event != .forgotten || seeds.count >= 240 {
      #expect(sum[event, default: 0] > 0, "\(event)")
    }
  }

  @Test("The same seed gives the same history")
  func isDeterministic() {
    let diaries = (0..<2).map { _ in
      let fleet = Fleet(seed: 5)
      fleet.world.engine.trace = { [unowned fleet] in fleet.note($0) }
      fleet.run()
      return fleet.diary
    }
    #expect(diaries[0] == diaries[1])
  }
}
