// Moves and changes of trips that another hub has: they go there, once each, and the answer comes back.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubGeo
import HubMessages
import Testing

@testable import HubCluster

@Suite struct ForwardingTests {
  @Test("A trip that a back end requests for a driver, at any hub, begins at the driver's, and is moved from anywhere")
  func requested() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    let rider = world.follow(.trip(id("t1")), at: "c", slot: 5)
    world.run(seconds: 0.5)
    world.ask("t1", .requested, for: "d1", at: "b", slot: 9)
    world.run(seconds: 0.5)
    #expect(world.engine.owner(of: "t:t1") == "a")
    world.move("t1", .accepted, by: "d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    for step in 0..<4 {
      world.fix(step, trip: "t1", at: "a", slot: 1)
      world.run(seconds: 1)
    }
    world.ask("t1", .cancelled, at: "c", slot: 9)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 9).acks == 1 && world.answers(at: "c", slot: 9).acks == 1)
    #expect(rider.positions.count >= 4 && rider.faults == [] && rider.gaps == 0)
    #expect(rider.point?.since == world.newest(.trip(id("t1")), at: "a") && rider.seen.values.joined().count >= 2)
    #expect(world["b"].node.node.counters.ownerConflicts == 0)
  }

  @Test("A trip for nobody begins where it was requested; a change of another hub's trip is answered by that hub")
  func open() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "b", slot: 9)
    world.run(seconds: 0.5)
    #expect(world.engine.owner(of: "t:t1") == "b" && world.answers(at: "b", slot: 9).acks == 1)
    let change = TripChange(tripID: id("t1"), pickup: Coordinate(latitude: 48.2, longitude: 11.6))
    world["c"].inputs.append(
      .tripChange(
        TripChangeInput(
          session: world.session(7), actor: Actor(role: .ops, id: id("desk")), messageID: message(77),
          timestamp: world.now.timestamp, change: change)))
    world.run(seconds: 0.5)
    #expect(world.answers(at: "c", slot: 7).acks == 1)
    // What the owner refuses is refused: nobody may go from `requested` to the end of a ride.
    world.ask("t1", .completed, at: "c", slot: 8)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "c", slot: 8).errors == [.invalidTransition])
  }

  @Test("A move whose answer is lost is sent again, and made once; without an answer it is refused after 3 s")
  func lost() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "a", slot: 9)
    let own = world.follow(.trip(id("t1")), at: "a", slot: 4)
    world.run(seconds: 1)
    let before = own.point?.since ?? 0
    world.engine.cuts = ["a>b"]
    world.ask("t1", .cancelled, at: "b", slot: 9)
    world.run(seconds: 1.5)
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(world.answers(at: "b", slot: 9).acks == 1 && world.answers(at: "b", slot: 9).errors == [])
    #expect(own.point?.since == before + 1)
    world.engine.cuts = ["b>a"]
    world.ask("t1", .cancelled, at: "b", slot: 10)
    world.run(seconds: 4)
    #expect(world.answers(at: "b", slot: 10).errors == [.rateLimited])
    #expect(world["b"].node.node.counters.pending == 0)
  }

  @Test("Requests for one trip are handled in the order in which they came, wherever they go")
  func order() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.run(seconds: 0.5)
    for (trip, driver) in [("t1", "d1" as String?), ("t2", nil)] {
      world.ask(trip, .requested, for: driver, at: "b", slot: 9)
      world.ask(trip, .cancelled, at: "b", slot: 9)
    }
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 9).acks == 4 && world.answers(at: "b", slot: 9).errors == [])
    #expect(world.engine.owner(of: "t:t1") == "a" && world.engine.owner(of: "t:t2") == "b")
  }

  @Test("Without the ledger a hub moves what it has and begins what is new; past the limit requests are refused")
  func alone() {
    var limits = ClusterLimits()
    limits.pending = 1
    let world = ClusterWorld(limits: limits)
    world.engine.isolated = ["b"]
    world.run(seconds: 0.5)
    world.ask("t1", .requested, at: "b", slot: 9)
    world.run(seconds: 0.2)
    #expect(world.answers(at: "b", slot: 9).acks == 1)
    for slot in 20..<23 { world.ask("t\(slot)", .requested, at: "c", slot: UInt32(slot)) }
    world.run(seconds: 0.5)
    let answers = (20..<23).map { world.answers(at: "c", slot: UInt32($0)) }
    #expect(answers.map(\.acks) == [1, 0, 0])
    #expect(answers.map(\.errors) == [[], [.rateLimited], [.rateLimited]])
  }
}

extension ClusterWorld {
  /// A back end's `trip_status`.
  func ask(_ trip: String, _ status: TripStatus, for driver: String? = nil, at name: String, slot: UInt32) {
    let report = TripStatusReport(
      tripID: id(trip), status: status, timestamp: now.timestamp, driverID: driver.map { id($0) })
    self[name].inputs.append(
      .tripStatus(
        TripStatusInput(
          session: session(slot), actor: Actor(role: .ops, id: id("desk")),
          messageID: message(1000 + Int(slot) * 10 + Int(status.rawValue)),
          report: report, tripIsGranted: true)))
  }

  /// What a session was answered.
  func answers(at name: String, slot: UInt32) -> (acks: Int, errors: [ErrorCode]) {
    let replies = self[name].replies.filter { $0.0.slot == slot }.map(\.1)
    return (
      replies.count { if case .ack = $0 { true } else { false } },
      replies.compactMap { if case .error(let error) = $0 { error.code } else { nil } }
    )
  }
}
