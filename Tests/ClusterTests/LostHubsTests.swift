// What is followed when a hub is gone for good, a link is cut for longer than anything is repeated, or one frame of
// control is lost among positions.
import HubBackplane
import HubBackplaneSupport
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct LostHubsTests {
  @Test(
    "A driver whose hub dies, and who continues at another one, is followed there, on its own channel and its trip's",
    arguments: [0.5, 3, 12])
  func driverOfADeadHub(away: Double) {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.ask("t1", .requested, at: "b", slot: 9)
    world.run(seconds: 0.5)
    world.move("t1", .accepted, by: "d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let riders = [Channel.driver(id("d1")), .trip(id("t1"))].enumerated().map { index, channel in
      world.follow(channel, at: "b", slot: UInt32(50 + index))
    }
    for step in 0..<3 { drive(world, step, at: "a", slot: 1) }
    world.kill("a")
    world.run(seconds: away)
    world.connect("d1", at: "c", slot: 2)
    world.run(seconds: 12 - min(away, 10))
    for rider in riders { rider.positions.removeAll() }
    for step in 3..<8 { drive(world, step, at: "c", slot: 2) }
    for rider in riders {
      #expect(rider.positions.count >= 4 && rider.faults == [] && rider.gaps == 0, "\(rider.channel)")
    }
    let late = world.follow(.driver(id("d1")), at: "b", slot: 60)
    world.run(seconds: 0.5)
    #expect(late.answers.count == 1 && late.refusals.isEmpty)
    #expect(world.status(of: "d1", at: "c") == .onTrip)
  }

  private func drive(_ world: ClusterWorld, _ step: Int, at name: String, slot: UInt32) {
    world.fix(step, trip: "t1", at: name, slot: slot)
    world.run(seconds: 1)
  }

  @Test("A driver whose trip's hub is dead is where it is, also at a hub that could not ask whose the trip is")
  func tripOfADeadHub() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.ask("t1", .requested, for: "d1", at: "a", slot: 9)
    world.run(seconds: 0.5)
    world.kill("a")
    world.engine.isolated = ["b"]
    world.run(seconds: 3)
    world.connect("d1", at: "b", slot: 2)
    let rider = world.follow(.driver(id("d1")), at: "b", slot: 50)
    func drive(_ steps: Range<Int>) {
      for step in steps {
        world.fix(step, trip: "t1", at: "b", slot: 2, isGranted: false)
        world.run(seconds: 1)
      }
    }
    drive(0..<3)
    #expect(world.answers(at: "b", slot: 2).errors == [.forbidden, .forbidden], "nobody can say that it is its trip")
    world.engine.isolated = []
    world.run(seconds: 3)
    rider.positions.removeAll()
    drive(3..<7)
    #expect(world.answers(at: "b", slot: 2).errors.count == 2 && rider.positions.count == 4 && rider.faults == [])
    #expect(world.trips == 0, "the dead hub's continues there")
  }

  @Test("A rider of a trip whose hub is dead waits where the engine has forgotten whose it is, and misses nothing")
  func forgottenTrip() {
    let world = ClusterWorld(hasJournals: true)
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    drive(world, 0, at: "a", slot: 1)
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 1)
    drive(world, 1, at: "b", slot: 2)
    var riders = (0..<2).map { world.follow(.trip(id("t1")), at: "b", slot: UInt32(50 + $0)) }
    world.run(seconds: 0.5)
    for number in 0..<3 { world.notify("t1", at: "a", number: number) }
    world.run(seconds: 0.5)
    let point = riders[0].point
    world.killForgotten("a")
    // The hub follows the trip for its driver; both riders leave, and come back.
    for rider in riders { world["b"].leave(rider) }
    world.run(seconds: 2)
    riders = riders.map { world.reconnect($0, at: "b") }
    world.run(seconds: 2)
    #expect(riders.allSatisfy { $0.answers.count == 1 && $0.refusals.count == 1 && $0.point == point })
    world.join("a")
    world.run(seconds: 4)
    for rider in riders { rider.wantsToAsk = true }
    world.run(seconds: 1)
    for number in 3..<6 { world.notify("t1", at: "a", number: number) }
    world.run(seconds: 1)
    let newest = world.newest(.trip(id("t1")), at: "a")
    #expect(riders.allSatisfy { $0.point?.epoch == point?.epoch && $0.point?.since == newest && $0.gaps == 0 })
    #expect(riders.allSatisfy { $0.faults == [] && $0.unrecovered == 0 && $0.doubles == 0 })
  }

  @Test("Who follows a dead hub's trip, which the engine has forgotten and a driver has named and left, misses nothing")
  func forgottenAndNamed() {
    let world = ClusterWorld(hasJournals: true)
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    drive(world, 0, at: "a", slot: 1)
    world.run(seconds: 0.5)
    let rider = world.follow(.trip(id("t1")), at: "b", slot: 50)
    world.run(seconds: 0.5)
    for number in 0..<3 { world.notify("t1", at: "a", number: number) }
    world.run(seconds: 0.5)
    world.killForgotten("a")
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 1)
    world.engine.isolated = ["b"]
    world.fix(1, trip: "t1", at: "b", slot: 2, isGranted: false)
    world.run(seconds: 3)
    world.engine.isolated = []
    world.run(seconds: 2)
    world.connect("d1", at: "c", slot: 3)
    world.run(seconds: 1)
    world.join("a")
    world.run(seconds: 4)
    for number in 3..<6 { world.notify("t1", at: "a", number: number) }
    world.run(seconds: 1)
    #expect(rider.point?.since == world.newest(.trip(id("t1")), at: "a"))
    #expect(rider.faults == [] && rider.unrecovered == 0 && rider.gaps == 0 && rider.doubles == 0)
    #expect(rider.beginnings == 1 && rider.restarts == 0)
  }

  @Test("A driver that moves while the two hubs do not hear each other for 40 s has one home when they do")
  func longCut() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let riders = ["a", "b", "c"].enumerated().map { index, name in
      world.follow(.driver(id("d1")), at: name, slot: UInt32(50 + index))
    }
    world.run(seconds: 0.5)
    world.engine.cuts = ["a>b", "b>a"]
    world.run(seconds: 1)
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 40)
    world.engine.cuts = []
    world.run(seconds: 3)
    #expect(world["a"].replaced.map(\.slot) == [1] && world["b"].replaced.isEmpty)
    for rider in riders { rider.positions.removeAll() }
    for step in 0..<4 {
      world.fix(step, trip: nil, at: "b", slot: 2)
      world.run(seconds: 1)
    }
    #expect(riders.allSatisfy { $0.positions.count == 4 && $0.faults == [] })
  }

  @Test("More drivers than are sent again to a hub that missed them move during a cut: all have one home")
  func manyMoves() {
    var limits = ClusterLimits()
    limits.endedRights = 4
    let world = ClusterWorld(limits: limits)
    let drivers = 0..<20
    for driver in drivers { world.connect("d\(driver)", at: "a", slot: UInt32(driver + 1)) }
    world.run(seconds: 0.5)
    world.engine.cuts = ["b>a"]
    for driver in drivers { world.connect("d\(driver)", at: "b", slot: UInt32(driver + 1)) }
    world.run(seconds: 2)
    world.engine.cuts = []
    world.run(seconds: 3)
    #expect(world["a"].replaced.count == drivers.count && world["b"].replaced.isEmpty)
  }

  @Test("An event whose frame is lost comes within a second though positions go on, and so do the positions behind it")
  func lostAmongPositions() {
    let world = ClusterWorld(["a", "b"])
    let rider = world.followTrip()
    for step in 0..<60 {
      if step == 20 {
        world.engine.cuts = ["a>b control"]
        world.notify("t1", at: "a", number: 1)
      }
      world.fix(step, trip: "t1", at: "a", slot: 1)
      world.run(seconds: 0.02)
      world.engine.cuts = []
      world.run(seconds: 0.08)
      if step == 30 {
        #expect(rider.seen["epoch1"]?.count == 1)
        rider.positions.removeAll()
      }
    }
    #expect(rider.positions.count >= 20 && rider.faults == [] && rider.gaps == 0)
    #expect(world["b"].node.node.counters.framesMissed == 1)
  }

  @Test("A position whose frame is lost comes though no other follows it")
  func lastPosition() {
    let world = ClusterWorld(["a", "b"])
    let (rider, own) = (world.followTrip(), world.follow(.trip(id("t1")), at: "a", slot: 60))
    for step in 0..<3 { drive(world, step, at: "a", slot: 1) }
    rider.positions.removeAll()
    world.engine.cuts = ["a>b state"]
    world.fix(3, trip: "t1", at: "a", slot: 1)
    world.run(seconds: 0.1)
    world.engine.cuts = []
    #expect(rider.positions.isEmpty && world["b"].node.node.counters.framesMissed == 0)
    world.run(seconds: 2)
    #expect(rider.positions.last?.coordinate == own.positions.last?.coordinate && rider.faults == [])
    #expect(world["b"].node.node.counters.framesMissed > 0)
  }

  @Test("A question after a gap that is lost itself is put again though positions go on")
  func lostResume() {
    let world = ClusterWorld(["a", "b"])
    for driver in 1...2 as ClosedRange<UInt32> { world.connect("d\(driver)", at: "a", slot: driver) }
    world.connect("d3", at: "b", slot: 3)
    world.run(seconds: 0.5)
    let rider = world.follow(.driver(id("d1")), at: "b", slot: 5)
    _ = world.follow(.driver(id("d3")), at: "a", slot: 6)
    world.run(seconds: 2)
    world["b"].node.node.context.peers[0].wantsRestart = true
    world.engine.cuts = ["b>a control"]
    for step in 0..<30 {
      world.fix(step, trip: nil, at: "b", slot: 3)
      world.run(seconds: 0.02)
      world.engine.cuts = []
      world.run(seconds: 0.08)
    }
    rider.positions.removeAll()
    for step in 0..<3 {
      world.fix(step, trip: nil, at: "a", slot: 1)
      world.run(seconds: 1)
    }
    #expect(rider.positions.count == 3 && rider.faults == [])
  }

  @Test("Hubs that have left make room for others where there is none")
  func freed() {
    let world = ClusterWorld(["a"])
    let node = world["a"].node
    for number in 0..<ClusterLimits.maximumPeers { #expect(node.node.context.peer("p\(number)") != nil) }
    world.run(seconds: 9)
    world.join("b")
    world.run(seconds: 3)
    #expect(node.node.counters.peers == 1 && node.node.context.peers.count == ClusterLimits.maximumPeers)
    world.connect("d1", at: "b", slot: 1)
    world.run(seconds: 0.5)
    let rider = world.follow(.driver(id("d1")), at: "a", slot: 5)
    world.run(seconds: 0.5)
    #expect(rider.answers.count == 1 && rider.refusals.isEmpty)
  }

  @Test("A hub that was cut off until another has forgotten it is heard there again, and hears it, at once")
  func forgotten() throws {
    let world = ClusterWorld(["a", "b"])
    let node = world["a"].node
    world.connect("d1", at: "a", slot: 1)
    world.connect("d2", at: "b", slot: 2)
    var riders = [world.follow(.driver(id("d1")), at: "b", slot: 5), world.follow(.driver(id("d2")), at: "a", slot: 6)]
    world.run(seconds: 30)
    let index = try #require(node.node.context.knownPeer("b"))
    let before = node.node.context.peers[index]
    world.engine.isolated = ["b"]
    world.run(seconds: 4)
    for number in 0..<ClusterLimits.maximumPeers - 1 { #expect(node.node.context.peer("p\(number)") != nil) }
    world.run(seconds: 13)
    #expect(node.node.context.knownPeer("b") == nil)
    world.engine.isolated = []
    world.run(seconds: 3)
    let again = try #require(node.node.context.knownPeer("b"))
    let peer = node.node.context.peers[again]
    #expect(peer !== before && peer.incarnation == before.incarnation && peer.lastBinding > before.lastBinding)
    #expect(peer.note(1, .control) == .repeated, "its old frames are refused still")
    riders += [world.follow(.driver(id("d1")), at: "b", slot: 7), world.follow(.driver(id("d2")), at: "a", slot: 8)]
    world.run(seconds: 1)
    for rider in riders { rider.positions.removeAll() }
    for step in 0..<3 {
      world.fix(step, trip: nil, at: "a", slot: 1)
      world.fix(step, trip: nil, at: "b", slot: 2)
      world.run(seconds: 1)
    }
    #expect(riders.map(\.positions.count) == [3, 3, 3, 3] && riders.allSatisfy { $0.faults == [] && $0.gaps == 0 })
    #expect(world["b"].node.node.counters.framesRefused == 0 && node.node.counters.framesRefused == 0)
  }

  @Test("Of hubs that have left and are forgotten, so many are remembered, the newest")
  func forgottenPeers() throws {
    var limits = ClusterLimits()
    limits.forgottenPeers = 2
    let world = ClusterWorld(["a"], limits: limits)
    let context = world["a"].node.node.context
    for number in 0..<4 {
      let index = try #require(context.peer("p\(number)"))
      if number < 3 { context.peers[index].begin(UInt64(100 + number)) }
      context.forget(index)
    }
    let known = try (0..<4).map { number in
      let index = try #require(context.peer("p\(number)"))
      return context.peers[index].incarnation
    }
    #expect(known == [0, 101, 102, 0])
  }
}

extension ClusterWorld {
  /// A process is gone, and meanwhile the engine has forgotten everything.
  func killForgotten(_ name: String) {
    engine.isolated = Set(members.map(\.name))
    run(seconds: 1)
    engine.forget()
    kill(name)
    engine.isolated = []
    run(seconds: 8)
  }
}
