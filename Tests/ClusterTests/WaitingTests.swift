// Who waits for a driver that no hub has follows it where it comes next, whatever happens to the hubs and the ledger.
import HubBackplaneSupport
import HubCore
import HubMessages
import Testing

@testable import HubCluster

@Suite struct WaitingTests {
  @Test("Who waits for a driver whose hub dies before it says that it has it follows it at the next hub")
  func claimerOfAwaitedDies() {
    let world = ClusterWorld()
    let rider = world.follow(.driver(id("d1")), at: "a", slot: 50)
    world.run(seconds: 0.5)
    world.claimOnly(at: "c", slot: 1)
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 12)
    world.drive(rider, at: "b", slot: 2)
  }

  @Test(
    "A driver that its hub has forgotten is followed at its next hub by all who followed it before",
    arguments: [0.0, 3])
  func forgotten(away: Double) {
    var timings = HubTimings()
    (timings.stale, timings.retention, timings.tripGrace) = (2, 5, 5)
    let world = ClusterWorld(timings: timings)
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let riders = ["a", "c"].flatMap { name in
      [Channel.driver(id("d1")), .raw(id("d1"))].map { world.follow($0, at: name, slot: world.nextSlot()) }
    }
    world.run(seconds: 0.5)
    world["a"].inputs.append(.driverDisconnected(world.session(1)))
    for _ in 0..<1500 where world.engine.owner(of: "d:d1") != nil { world.step() }
    #expect(world.engine.owner(of: "d:d1") == nil)
    world.run(seconds: away)
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 1)
    world.drive(riders[0], at: "b", slot: 2)
    #expect(riders.map { $0.positions.count + $0.rawFixes.count } == [4, 4, 4, 4])
    #expect(riders.allSatisfy { $0.faults == [] && $0.gaps == 0 })
  }

  @Test("The ledger is asked again for what sessions wait for before it forgets who waits")
  func notedAgain() {
    var limits = ClusterLimits()
    limits.ownerTime = 4_000_000_000
    let world = ClusterWorld(limits: limits)
    let rider = world.follow(.driver(id("d1")), at: "a", slot: 50)
    world.run(seconds: 0.5)
    world.engine.forget()
    world.run(seconds: 3)
    world.connect("d1", at: "b", slot: 1)
    world.run(seconds: 1)
    world.drive(rider, at: "b", slot: 1)
  }

  @Test("Who asks for trips that nobody has, and has no right to, leaves nothing in the ledger; who has is noted there")
  func strangers() {
    var limits = ClusterLimits()
    limits.ownerTime = 4_000_000_000
    let world = ClusterWorld(limits: limits)
    let stranger = Follower(.trip(id("t1")), slot: 50, role: .rider, grant: .onlyForParties)
    world["a"].followers.append(stranger)
    let guest = world.follow(.trip(id("t2")), at: "a", slot: 51)
    world.run(seconds: 1)
    #expect(stranger.refusals.map(\.code) == [.forbidden] && guest.refusals.isEmpty)
    #expect(world.engine.waiting(for: "t:t1").isEmpty && world.engine.waiting(for: "t:t2") == ["a"])
    #expect(world["a"].node.node.counters.awaited == 1)
    world.engine.forget()
    world.run(seconds: 6)
    #expect(world.engine.waiting(for: "t:t1").isEmpty && world.engine.waiting(for: "t:t2") == ["a"])
  }
}

extension ClusterWorld {
  /// A hub dies when the ledger has carried out its claim of a driver, and it has not had the answer.
  func claimOnly(at name: String, slot: UInt32) {
    connect("d1", at: name, slot: slot)
    step()
    #expect(engine.owner(of: "d:d1") == name)
    kill(name)
  }

  /// A driver goes on, and its rider sees that.
  func drive(_ rider: Follower, at name: String, slot: UInt32) {
    rider.positions.removeAll()
    for step in 0..<4 {
      fix(step, trip: nil, at: name, slot: slot)
      run(seconds: 1)
    }
    #expect(rider.positions.count == 4 && rider.faults == [])
  }
}
