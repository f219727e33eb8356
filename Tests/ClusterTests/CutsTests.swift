// Links between hubs that are cut a thousand times: whoever follows a trip at another hub misses no event of it, sees
// none twice, and none before an earlier one.
import HubBackplaneSupport
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct CutsTests {
  @Test("Over 1,000 cuts of any link, events on trips at other hubs: gaps, doubles, disorder 0")
  func thousand() {
    var random = SplitMix64(seed: 11)
    let world = ClusterWorld(seed: 11)
    let names = ["a", "b", "c"]
    var (own, riders, posted) = ([Follower](), [Follower](), [0, 0, 0])
    for (index, name) in names.enumerated() {
      let (trip, slot) = ("t-\(name)", UInt32(index + 1))
      world.connect("d-\(name)", at: name, slot: slot)
      world.step()
      world.fix(-1, trip: trip, at: name, slot: slot)
      world.run(seconds: 0.2)
      own.append(world.follow(.trip(id(trip)), at: name, slot: world.nextSlot()))
      for other in names where other != name {
        riders.append(world.follow(.trip(id(trip)), at: other, slot: world.nextSlot()))
      }
    }
    world.run(seconds: 1)
    // Each cut heals by itself; up to all six links are cut at once.
    var until: [String: Int] = [:]
    var (cuts, step) = (0, 0)
    while cuts < 1000 {
      step += 1
      if step % 20 == 0 {
        let (from, to) = (Int(random.next() % 3), Int(1 + random.next() % 2))
        until["\(names[from])>\(names[(from + to) % 3])"] = step + 5 + Int(random.next() % 150)
        cuts += 1
      }
      for (index, name) in names.enumerated() where random.next() % 12 == 0 {
        posted[index] += 1
        world.notify("t-\(name)", at: name, number: posted[index])
        world.fix(posted[index], trip: "t-\(name)", at: name, slot: UInt32(index + 1))
      }
      until = until.filter { $0.value > step }
      world.engine.cuts = Set(until.keys)
      world.step()
    }
    world.engine.cuts = []
    world.run(seconds: 3)
    for (index, rider) in riders.enumerated() {
      let owner = own[index / 2]
      #expect(rider.faults == [] && rider.gaps == 0 && rider.doubles == 0 && rider.restarts == 0, "rider \(index)")
      #expect(rider.seen == owner.seen && rider.point == owner.point, "rider \(index)")
    }
    #expect(zip(own, posted).allSatisfy { $0.seen["\($0.point!.epoch)"]!.count >= $1 && $1 > 500 })
    #expect(world.members.allSatisfy { $0.node.node.counters.framesMissed > 500 })
  }
}
