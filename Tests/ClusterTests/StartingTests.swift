// What comes to a hub that has just started, before it knows who the others are: it waits for that, and is answered.
import HubBackplane
import HubBackplaneSupport
import HubCore
import HubMessages
import Testing

@testable import HubCluster

@Suite struct StartingTests {
  /// A rider, a move and a question at hub `b`.
  private func ask(_ world: ClusterWorld, _ number: Int) -> Follower {
    world.ask("t\(number)", .cancelled, at: "b", slot: 9)
    world.ask(.driver(id("d1")), at: "b", slot: 20)
    world.ask(.trip(id("t1")), at: "b", slot: 21)
    return world.follow(.trip(id("t1")), at: "b", slot: 5)
  }

  private func expectAnswers(_ rider: Follower, _ world: ClusterWorld, _ comment: Comment) {
    #expect(rider.refusals.isEmpty && rider.answers.first?.snapshot?.trip?.tripID == id("t1"), comment)
    #expect(world.answers(at: "b", slot: 9).acks == 1 && world.answers(at: "b", slot: 9).errors == [], comment)
    guard case .driver(let report)?? = world.result(at: "b", slot: 20) else {
      Issue.record("no driver: \(comment)")
      return
    }
    #expect(report.driverID == id("d1") && report.isOnline == true, comment)
    guard case .trip(let trip)?? = world.result(at: "b", slot: 21) else {
      Issue.record("no trip: \(comment)")
      return
    }
    #expect(trip.tripID == id("t1"), comment)
  }

  private func world() -> ClusterWorld {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.fix(0, trip: nil, at: "a", slot: 1)
    for trip in 1...12 { world.ask("t\(trip)", .requested, at: "a", slot: 9) }
    world.run(seconds: 1)
    return world
  }

  @Test("Who asks a hub for something in any of its first ten turns is not refused, and gets what the others have")
  func firstTurns() {
    let world = world()
    for turn in 0..<10 {
      world.restart("b")
      for _ in 0..<turn { world.step() }
      let rider = ask(world, turn + 2)
      world.run(seconds: 3)
      expectAnswers(rider, world, "turn \(turn)")
      #expect(world["b"].node.node.counters.pending == 0)
    }
  }

  @Test("A hub that reaches the engine 300 ms after its start refuses nobody meanwhile")
  func lateEngine() {
    let world = world()
    world.restart("b")
    world.engine.isolated = ["b"]
    world.step()
    let rider = ask(world, 2)
    world.run(seconds: 0.3)
    world.engine.isolated = []
    world.run(seconds: 3)
    expectAnswers(rider, world, "late")
  }

  @Test("A hub whose ledger refuses all, as it is full, waits a second, then refuses at once, and is one of all later")
  func fullLedger() {
    let world = world()
    world.restart("b")
    world.engine.full = ["b"]
    let rider = ask(world, 2)
    world.run(seconds: 0.9)
    #expect(rider.refusals.isEmpty)
    world.run(seconds: 3)
    #expect(rider.refusals.map(\.code) == [.rateLimited])
    #expect(world.answers(at: "b", slot: 9).errors == [.rateLimited])
    for slot in 30..<40 as Range<UInt32> {
      let late = world.follow(.trip(id("t1")), at: "b", slot: slot)
      world.run(seconds: 0.1)
      #expect(late.refusals.map(\.code) == [.rateLimited])
    }
    #expect(world["b"].node.node.counters.pending == 0 && world["b"].node.node.counters.follows == 0)
    world.engine.full = []
    world.run(seconds: 3)
    let late = world.follow(.trip(id("t1")), at: "b", slot: 60)
    world.run(seconds: 0.5)
    #expect(late.answers.count == 1 && late.refusals.isEmpty)
  }

  @Test("A hub that does not reach the engine answers or refuses within 3 s, and holds nothing")
  func noEngine() {
    let world = world()
    world.restart("b")
    world.engine.isolated = ["b"]
    let rider = ask(world, 2)
    world.run(seconds: 4)
    #expect(rider.refusals.map(\.code) == [.rateLimited])
    #expect(world.answers(at: "b", slot: 9).errors.count == 1)
    #expect((20...21).flatMap { world.answers(at: "b", slot: $0).errors } == [.rateLimited, .rateLimited])
    #expect(world["b"].node.node.counters.pending == 0 && world["b"].node.node.counters.follows == 0)
  }

  @Test("A trip that a driver names in the first second of a hub that is alone begins, and its batches are taken")
  func namedAtOnce() {
    for isFull in [false, true] {
      let world = world()
      world.restart("b")
      if isFull { world.engine.full = ["b"] } else { world.engine.isolated = ["b"] }
      world.connect("d2", at: "b", slot: 2)
      world.step()
      world.fix(0, trip: "t20", at: "b", slot: 2)
      world.run(seconds: 3)
      #expect(world["b"].hub.hub.shownCounters().entries(.trips) == 1)
      for _ in 0..<2 { world.batch(naming: "t20", at: "b", slot: 2) }
      #expect(world.answers(at: "b", slot: 2).acks == 2 && world.answers(at: "b", slot: 2).errors == [])
    }
  }
}
