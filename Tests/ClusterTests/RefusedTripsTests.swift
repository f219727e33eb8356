// Trips that a driver's fixes name, that no hub has, and that the driver may not begin.
import HubBackplane
import HubBackplaneSupport
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct RefusedTripsTests {
  @Test("A trip that nobody has, and that the driver may not begin, is looked for when a fix names it, and never else")
  func lookedForOnce() {
    let world = ClusterWorld(["a", "b"])
    world.connect("d1", at: "b", slot: 1)
    world.run(seconds: 0.5)
    var questions = 0
    world.engine.trace = { if $0.contains("t:t1") { questions += 1 } }
    world.fix(0, trip: "t1", at: "b", slot: 1, isGranted: false)
    world.run(seconds: 5)
    #expect(questions == 1 && world["b"].node.node.counters.follows == 0)
    #expect(world["b"].hub.hub.counters.fixesForbidden == 0, "the first one came before that was known")
    // Each is refused, and one in a second asks for it again.
    for step in 1...3 {
      for _ in 0..<4 {
        world.fix(step, trip: "t1", at: "b", slot: 1, isGranted: false)
        world.run(seconds: 0.1)
      }
      world.run(seconds: 3)
      #expect(questions == 1 + step && world["b"].node.node.counters.follows == 0)
    }
    #expect(world["b"].hub.hub.counters.fixesForbidden == 12 && world.trips == 0)
    #expect(world.answers(at: "b", slot: 1).errors == [ErrorCode](repeating: .forbidden, count: 12))
  }

  @Test("A trip that was refused is the driver's once it has begun elsewhere, or once the token names it")
  func begunSince() {
    let world = ClusterWorld(["a", "b"])
    world.connect("d1", at: "b", slot: 1)
    world.run(seconds: 0.5)
    for trip in ["t2", "t1"] {
      world.fix(0, trip: trip, at: "b", slot: 1, isGranted: false)
      world.run(seconds: 2)
    }
    world.begin("t1", for: nil, at: "a", slot: 20)
    world.run(seconds: 0.5)
    world.move("t1", .accepted, by: "d1", at: "b", slot: 1)
    let rider = world.follow(.trip(id("t1")), at: "a", slot: 5)
    world.run(seconds: 2)
    for step in 1...6 {
      world.fix(step, trip: "t1", at: "b", slot: 1, isGranted: false)
      world.run(seconds: 1)
    }
    #expect(rider.positions.count >= 4 && rider.faults == [] && world.status(of: "d1", at: "b") == .onTrip)
    #expect(world.answers(at: "b", slot: 1).errors == [.forbidden], "while it was looked for again")
    for step in 7...9 {
      world.fix(step, trip: "t2", at: "b", slot: 1, isGranted: step > 7)
      world.run(seconds: 2)
    }
    #expect(world.engine.owner(of: "t:t2") == "b" && world.trips == 2)
  }
}
