// A rider on one hub follows a driver or a trip on another: positions, numbered events, exact resume, whatever is lost.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubTestSupport
import Testing

@testable import HubCluster
@testable import HubMessages

@Suite struct FollowingTests {
  private let moves: [TripStatus] = [.driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination]

  @Test("A rider on b sees a trip on a: how it stands, its driver's positions, every move in order")
  func trip() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 0.2)
    let rider = world.follow(.trip(id("t1")), at: "b", slot: 5)
    world.run(seconds: 0.2)
    #expect(rider.answers.first?.snapshot?.trip?.status == .accepted)
    for (number, status) in moves.enumerated() {
      world.move("t1", status, by: "d1", at: "a", slot: 1)
      for step in 0..<5 {
        world.fix(number * 5 + step, trip: "t1", at: "a", slot: 1)
        world.run(seconds: 1)
      }
    }
    #expect(rider.faults == [] && rider.gaps == 0 && rider.refusals.isEmpty)
    #expect(rider.seen["epoch1"]?.count ?? 0 >= 4)
    #expect(rider.positions.count >= 18)
    #expect(world["c"].node.node.counters.relayed == 0)
  }

  @Test("A driver whom nobody follows elsewhere puts nothing on the bus, and what is followed goes once to each hub")
  func interest() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    func statesOut(_ fixes: Range<Int>) -> UInt64 {
      let before = world["a"].node.node.counters.statesOut
      for step in fixes {
        world.fix(step, trip: nil, at: "a", slot: 1)
        world.run(seconds: 1)
      }
      return world["a"].node.node.counters.statesOut - before
    }
    #expect(statesOut(0..<5) == 0)
    let riders = (0..<20).map { world.follow(.driver(id("d1")), at: "b", slot: UInt32(10 + $0)) }
    world.run(seconds: 0.5)
    let out = statesOut(5..<15)
    #expect(out == 10)
    #expect(riders.allSatisfy { $0.faults.isEmpty && $0.positions.count >= 10 })
    for rider in riders { world["b"].leave(rider) }
    world.run(seconds: 0.5)
    #expect(statesOut(15..<20) == 0)
    #expect(world["b"].node.node.counters.follows == 0)
    #expect(world["a"].node.node.counters.followed == 0)
  }

  @Test("Who follows what begins later, at another hub, gets it from its first event on")
  func born() {
    let world = ClusterWorld()
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 5)
    world.run(seconds: 0.5)
    #expect(rider.answers.count == 1 && rider.answers[0].snapshot == nil)
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 1)
    world.move("t1", .driverEnRoute, by: "d1", at: "a", slot: 1)
    world.run(seconds: 1)
    #expect(rider.restarts == 1 && rider.faults == [])
    #expect(rider.point?.epoch.description == "epoch1")
    #expect(rider.point?.since == world.newest(.trip(id("t1")), at: "a"))
  }

  @Test("Who follows what begins later gets it though the word of that is lost, or the ledger has forgotten who waits")
  func bornUnheard() {
    let world = ClusterWorld()
    let channels = [Channel.trip(id("t1")), .driver(id("d1"))]
    func begin(_ driver: String, _ trip: String, slot: UInt32) {
      world.connect(driver, at: "a", slot: slot)
      world.step()
      world.fix(-1, trip: trip, at: "a", slot: slot)
      world.run(seconds: 0.2)
    }
    let riders = channels.map { world.follow($0, at: "c", slot: world.nextSlot()) }
    world.run(seconds: 0.5)
    world.engine.cuts = ["a>c control"]
    begin("d1", "t1", slot: 1)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(riders.allSatisfy { $0.restarts == 1 && $0.point?.epoch.description == "epoch1" && $0.faults == [] })
    let late = [Channel.trip(id("t2")), .driver(id("d2")), .raw(id("d2"))].map {
      world.follow($0, at: "b", slot: world.nextSlot())
    }
    world.run(seconds: 0.5)
    world.engine.isolated = ["a", "b", "c"]
    world.run(seconds: 2)
    world.engine.forget()
    world.engine.isolated = []
    world.run(seconds: 1)
    begin("d2", "t2", slot: 2)
    world.run(seconds: 1)
    #expect(late.allSatisfy { $0.restarts == 1 && $0.point?.epoch.description == "epoch1" && $0.faults == [] })
    // Who waits in vain and leaves is not waited for.
    let vain = world.follow(.trip(id("t3")), at: "b", slot: world.nextSlot())
    world.run(seconds: 0.5)
    world["b"].leave(vain)
    world.run(seconds: 0.5)
    var questions = 0
    world.engine.trace = { if $0.contains("t3") { questions += 1 } }
    world.engine.isolated = ["b"]
    world.run(seconds: 1)
    world.engine.isolated = []
    world.run(seconds: 1)
    #expect(questions == 0)
  }

  @Test("A driver that connects to another hub is nowhere else, and who follows it does so there")
  func driverMoves() {
    let world = ClusterWorld()
    let riders = ["a", "b", "c"].enumerated().map { index, name in
      world.follow(.driver(id("d1")), at: name, slot: UInt32(50 + index))
    }
    for (turn, name) in ["a", "b", "a", "c", "b"].enumerated() {
      let slot = UInt32(turn + 1)
      world.connect("d1", at: name, slot: slot)
      world.run(seconds: 2)
      for rider in riders { rider.positions.removeAll() }
      for step in 0..<4 {
        world.fix(turn * 10 + step, trip: nil, at: name, slot: slot)
        world.run(seconds: 1)
      }
      for (index, rider) in riders.enumerated() {
        #expect(rider.positions.count >= 4, "rider \(index) in turn \(turn)")
        #expect(rider.faults == [])
      }
      #expect(world.engine.owner(of: "d:d1") == name)
    }
    let replaced = world.members.reduce(0) { $0 + $1.replaced.count }
    #expect(replaced == 4)
  }

  @Test("A hub keeps no name of a channel at a hub where its driver is no more, reported by that one or not")
  func movedNames() {
    let world = ClusterWorld()
    let drivers = 1...20 as ClosedRange<UInt32>
    for driver in drivers { world.follow(.driver(id("d\(driver)")), at: "c", slot: 100 + driver) }
    for (turn, name) in ["a", "b", "a", "b"].enumerated() {
      for driver in drivers { world.connect("d\(driver)", at: name, slot: UInt32(turn) * 20 + driver) }
      if turn == 3 { world.engine.cuts = ["a>c control"] }
      world.run(seconds: 1)
      world.engine.cuts = []
      world.run(seconds: 2)
      let names = world["c"].node.node.context.peers.map(\.reader.entries.count)
      #expect(names.reduce(0, +) == drivers.count, "turn \(turn)")
    }
  }

  @Test("A client that has opened several sessions at one hub has none there when it has one at another")
  func overlapping() {
    let world = ClusterWorld()
    for slot in 1...3 as ClosedRange<UInt32> {
      world["a"].inputs.append(.driverConnecting(world.session(slot), id("d1"), client: 7))
      world.step()
    }
    world.connect("d1", at: "b", slot: 1)
    world.run(seconds: 3)
    #expect(Set(world["a"].replaced.map(\.slot)) == [1, 2, 3])
    #expect(world["b"].replaced.isEmpty && world.engine.owner(of: "d:d1") == "b")
  }

  @Test("An event that is on the way while its channel is asked for anew is shown once")
  func crossingResume() {
    let world = ClusterWorld(["a", "b"])
    let rider = world.followTrip()
    for number in 0..<5 {
      world.notify("t1", at: "a", number: number)
      world["b"].node.node.context.peers[0].wantsRestart = true
      world.run(seconds: 1.5)
    }
    #expect(rider.seen["epoch1"]?.count == 5 && rider.doubles == 0 && rider.faults == [] && rider.gaps == 0)
  }

  @Test("Who follows a driver that was at another hub meanwhile, whose answer never came, is told that it missed")
  func away() {
    let world = ClusterWorld(["a", "b"])
    world.connect("d1", at: "b", slot: 1)
    let rider = world.follow(.driver(id("d1")), at: "b", slot: 5)
    world.run(seconds: 0.5)
    world.connect("d1", at: "a", slot: 2)
    for _ in 0..<100 where world["b"].replaced.isEmpty { world.step() }
    world.engine.cuts = ["a>b"]
    #expect(world["b"].replaced.map(\.slot) == [1] && rider.restarts == 0)
    world.run(seconds: 0.5)
    world.connect("d1", at: "b", slot: 3)
    world.run(seconds: 1)
    #expect(rider.restarts == 1 && rider.faults == [] && world["b"].node.node.counters.follows == 0)
  }

  @Test("Where the last who follows leaves while another's answer is on its way, that one gets what follows")
  func lastLeaves() {
    let world = ClusterWorld(["a", "b"])
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 1)
    var last = world.follow(.trip(id("t1")), at: "b", slot: world.nextSlot())
    world.run(seconds: 1)
    for steps in 0..<8 {
      let next = world.follow(.trip(id("t1")), at: "b", slot: world.nextSlot())
      for _ in 0..<steps { world.step() }
      world["b"].leave(last)
      world.run(seconds: 0.5)
      world.notify("t1", at: "a", number: steps)
      world.run(seconds: 0.5)
      #expect(next.seen["epoch1"]?.count == 1 && next.faults == [], "after \(steps) steps")
      last = next
    }
    // The answer is followed by events before the hub, which was stalled, takes notice that the last one has left.
    let next = world.follow(.trip(id("t1")), at: "b", slot: world.nextSlot())
    for _ in 0..<2 { world.step() }
    #expect(world["b"].node.node.counters.pending == 1)
    world.stalled = ["b"]
    world.run(seconds: 0.5)
    for number in 8..<10 { world.notify("t1", at: "a", number: number) }
    world.run(seconds: 0.5)
    world["b"].leave(last)
    world.stalled = []
    world.run(seconds: 2)
    #expect(next.seen["epoch1"]?.count == 2 && next.faults == [] && next.doubles == 0 && next.gaps == 0)
    #expect(world["b"].node.node.counters.follows == 1)
  }

  @Test("An owner that starts anew, without what it knew, is followed again, under its new epoch")
  func ownerRestarts() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let rider = world.follow(.driver(id("d1")), at: "b", slot: 5)
    world.run(seconds: 0.5)
    world.restart("a")
    world.run(seconds: 3)
    world.connect("d1", at: "a", slot: 2)
    world.run(seconds: 3)
    rider.positions.removeAll()
    for step in 0..<4 {
      world.fix(step, trip: nil, at: "a", slot: 2)
      world.run(seconds: 1)
    }
    #expect(rider.positions.count >= 4 && rider.faults == [])
    #expect(rider.point?.epoch.description == "epoch4")
  }

  @Test(
    "Without the engine each hub serves its own, a new question is refused at once or in 3 s, and all converges after")
  func engineAway() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    let own = world.follow(.trip(id("t1")), at: "a", slot: 4)
    let rider = world.follow(.trip(id("t1")), at: "b", slot: 5)
    world.run(seconds: 1)
    world.engine.isolated = ["a", "b", "c"]
    world.run(seconds: 1)
    let late = world.follow(.trip(id("t1")), at: "c", slot: 6)
    for step in 0..<20 {
      if step < 3 { world.move("t1", moves[step], by: "d1", at: "a", slot: 1) }
      world.fix(step, trip: "t1", at: "a", slot: 1)
      world.run(seconds: 1)
    }
    #expect(own.positions.count >= 18 && own.faults == [] && own.gaps == 0)
    #expect(late.refusals.count == 1)
    world.engine.forget()
    world.engine.isolated = []
    world.run(seconds: 3)
    #expect(rider.point == own.point && rider.faults == [] && rider.gaps == 0 && rider.doubles == 0)
    #expect(world.engine.owner(of: "t:t1") == "a")
    late.wantsToAsk = true
    world.run(seconds: 1)
    #expect(late.point == own.point)
  }

  @Test("Frames lost, doubled, late, and links cut: no event is missing, doubled or out of order, and all converge")
  func faults() {
    for seed in historySeeds(12) { history(seed) }
  }

  private func history(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let world = ClusterWorld(seed: seed)
    world.connect("d1", at: "a", slot: 1)
    world.step()
    world.fix(-1, trip: "t1", at: "a", slot: 1)
    let own = world.follow(.trip(id("t1")), at: "a", slot: 40)
    let riders = ["b", "c", "b"].enumerated().map { world.follow(.trip(id("t1")), at: $1, slot: UInt32(50 + $0)) }
    world.run(seconds: 1)
    (world.engine.faults.lost, world.engine.faults.doubled, world.engine.faults.delayed) = (0.05, 0.02, 0.2)
    world.engine.faults.unknown = 0.1
    let names = ["a", "b", "c"]
    for step in 0..<60 {
      if random.next() % 4 == 0 {
        let (from, to) = (names[Int(random.next() % 3)], names[Int(random.next() % 3)])
        world.engine.cuts = random.next() % 2 == 0 ? [] : ["\(from)>\(to)"]
      }
      if random.next() % 6 == 0 { world.move("t1", moves[Int(random.next() % 3)], by: "d1", at: "a", slot: 1) }
      if random.next() % 10 == 0, let rider = riders.randomElement(using: &random) { rider.wantsToAsk = true }
      world.notify("t1", at: "a", number: step)
      world.fix(step, trip: "t1", at: "a", slot: 1)
      world.run(seconds: 0.3)
    }
    world.engine.faults = .init()
    world.engine.cuts = []
    world.run(seconds: 3)
    for rider in riders {
      #expect(rider.faults == [], replay(seed, "FollowingTests"))
      for (_, numbers) in rider.seen { #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 + 1 == $1 }) }
      #expect(rider.refusals.isEmpty || rider.point != nil)
      #expect(rider.point == own.point, replay(seed, "FollowingTests"))
    }
    #expect(own.gaps == 0 && own.faults == [] && (own.point?.since ?? 0) >= 60)
  }
}

extension ClusterWorld {
  /// A rider at `b` of the trip `t1`, which `d1` has begun at `a`.
  func followTrip() -> Follower {
    connect("d1", at: "a", slot: 1)
    step()
    fix(-1, trip: "t1", at: "a", slot: 1)
    let rider = follow(.trip(id("t1")), at: "b", slot: 5)
    run(seconds: 2)
    return rider
  }
}
