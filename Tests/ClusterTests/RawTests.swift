// Fixes as they were measured, of a driver at another hub: followed as its positions are.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import Testing

@testable import HubCluster

@Suite struct RawTests {
  @Test(
    "Ops at b see what a driver at a measured, in order, with the hub's verdict, and at no price when they are gone")
  func raw() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let here = world.follow(.raw(id("d1")), at: "a", slot: 5)
    let ops = world.follow(.raw(id("d1")), at: "b", slot: 6)
    world.run(seconds: 0.5)
    for step in 0..<10 {
      world.fix(step == 7 ? 4000 : step, trip: nil, at: "a", slot: 1)
      world.run(seconds: 1)
    }
    #expect(here.rawFixes.count == 10 && ops.rawFixes == here.rawFixes)
    #expect(Set(ops.rawFixes.map(\.verdict)).count > 1, "one of them leaps")
    #expect(ops.faults == [] && ops.refusals.isEmpty)
    world["b"].leave(ops)
    world.run(seconds: 0.5)
    let before = world["a"].node.node.counters.statesOut
    world.fix(12, trip: nil, at: "a", slot: 1)
    world.run(seconds: 1)
    #expect(here.rawFixes.count == 11 && world["a"].node.node.counters.statesOut == before)
  }

  @Test("They follow the driver from hub to hub, also to their own, and wait for one that nobody knows yet")
  func moving() {
    let world = ClusterWorld()
    let ops = world.follow(.raw(id("d1")), at: "b", slot: 6)
    let rider = world.follow(.driver(id("d1")), at: "b", slot: 7)
    world.run(seconds: 1)
    #expect(ops.answers.count == 1 && ops.refusals.isEmpty)
    var (slot, seen): (UInt32, Int) = (10, 0)
    for (number, name) in ["a", "c", "b", "a", "b"].enumerated() {
      slot += 1
      world.connect("d1", at: name, slot: slot)
      world.run(seconds: 2)
      for step in 0..<3 {
        world.fix(number * 3 + step, trip: nil, at: name, slot: slot)
        world.run(seconds: 1)
      }
      #expect(ops.rawFixes.count == seen + 3, "at \(name)")
      seen = ops.rawFixes.count
      #expect(rider.positions.last?.timestamp == ops.rawFixes.last?.timestamp)
    }
    #expect(ops.faults == [] && rider.faults == [])
  }

  @Test("Who comes to a hub's rider again is followed there, though the rider has come while it was away")
  func back() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 1)
    let ops = world.follow(.raw(id("d1")), at: "a", slot: 6)
    let rider = world.follow(.driver(id("d1")), at: "a", slot: 7)
    world.run(seconds: 1)
    world.connect("d1", at: "a", slot: 3)
    world.run(seconds: 1)
    for step in 0..<3 {
      world.fix(step, trip: nil, at: "a", slot: 3)
      world.run(seconds: 1)
    }
    #expect(rider.positions.count == 3 && ops.rawFixes.count == 3)
  }

  @Test("Of fixes that the bus does not take the newest 64 of a driver wait, however many there are")
  func unread() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let ops = world.follow(.raw(id("d1")), at: "b", slot: 6)
    world.run(seconds: 0.5)
    world.engine.isolated = ["a"]
    for step in 0..<100 {
      world.fix(step, trip: nil, at: "a", slot: 1)
      world.run(seconds: 0.5)
    }
    #expect(world["a"].node.node.counters.waitingStates <= Int(HubLimits.unreadRawFixes))
    world.engine.isolated = []
    world.run(seconds: 3)
    world.fix(101, trip: nil, at: "a", slot: 1)
    world.run(seconds: 1)
    #expect(ops.rawFixes.last?.timestamp == world.now.timestamp + -1000)
  }
}
