// Questions about drivers and trips: what several hubs answer together is what one hub with all of them would.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct AskingTests {
  private let center = Coordinate(latitude: 48.1, longitude: 11.5)!

  /// Drivers over several hubs, and all of them at one that is alone.
  private func worlds(drivers: Int, seed: UInt64) -> (many: ClusterWorld, one: ClusterWorld) {
    let (many, one) = (ClusterWorld(), ClusterWorld(["z"]))
    var random = SplitMix64(seed: seed)
    for number in 0..<drivers {
      let east = Double.random(in: -0.05...0.05, using: &random)
      let place = Coordinate(latitude: 48.1 + Double.random(in: -0.05...0.05, using: &random), longitude: 11.5 + east)!
      let slot = UInt32(number + 1)
      for (world, name) in [(many, ["a", "b", "c"].randomElement(using: &random)!), (one, "z")] {
        world.connect("d\(number)", at: name, slot: slot)
        world.fix(at: place, at: name, slot: slot)
      }
    }
    for world in [many, one] { world.run(seconds: 1) }
    return (many, one)
  }

  private func drivers(_ result: QueryResult??) -> (names: [String], more: Int)? {
    guard case .drivers(var list)?? = result else { return nil }
    list.sort()
    return (list.drivers.map { "\($0.driverID) \($0.distance ?? -1)" }, list.more)
  }

  @Test(
    "The nearest drivers, and those in a box, are the same over three hubs as over one, asked at any of them",
    arguments: 1...4 as ClosedRange<UInt64>)
  func oracle(seed: UInt64) throws {
    let (many, one) = worlds(drivers: 60, seed: seed)
    let box = BoundingBox(south: 48.08, west: 11.48, north: 48.12, east: 11.53)!
    let searches: [DriverSearch] = [
      DriverSearch(area: .nearby(center, radiusMeters: nil), limit: 7),
      DriverSearch(area: .nearby(center, radiusMeters: 2000), limit: 500),
      DriverSearch(area: .box(box), limit: 4), DriverSearch(area: .box(box)),
    ]
    for (index, search) in searches.enumerated() {
      let slot = UInt32(500 + index)
      one.ask(.drivers(search), at: "z", slot: slot)
      one.run(seconds: 0.5)
      let expected = try #require(drivers(one.result(at: "z", slot: slot)))
      #expect(!expected.names.isEmpty)
      for name in ["a", "b", "c"] {
        many.ask(.drivers(search), at: name, slot: slot)
        many.run(seconds: 0.5)
        let found = try #require(drivers(many.result(at: name, slot: slot)))
        #expect(found.names == expected.names && found.more == expected.more, "\(search) at \(name)")
      }
    }
    #expect(many.members.allSatisfy { $0.node.node.counters.questionsIncomplete == 0 })
    #expect(many.members.allSatisfy { $0.node.node.counters.pending == 0 })
  }

  @Test("A second answer to a peer's question is not taken for that to the next one in its place")
  func secondAnswer() throws {
    let world = ClusterWorld(["a", "b"])
    let context = world["a"].node.node.context
    let first = try #require(context.session(for: 0, 1, Subscribe(channel: .fleet)))
    #expect(context.asker(first)?.ask.token == 1)
    let next = try #require(context.session(for: 0, 2, Subscribe(channel: .fleet)))
    #expect(next.slot == first.slot && context.asker(first) == nil && context.asker(next)?.ask.token == 2)
  }

  @Test("A driver and a trip are found at whichever hub they are; a driver that has changed hubs is shown once")
  func elsewhere() throws {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.fix(0, trip: nil, at: "a", slot: 1)
    world.ask("t1", .requested, for: "d1", at: "a", slot: 9)
    world.run(seconds: 0.5)
    for (slot, name) in [(20, "a"), (21, "b")] as [(UInt32, String)] {
      world.ask(.driver(id("d1")), at: name, slot: slot)
      world.ask(.trip(id("t1")), at: name, slot: slot + 10)
      world.run(seconds: 0.5)
      guard case .driver(let report)?? = world.result(at: name, slot: slot) else {
        Issue.record("no driver at \(name)")
        return
      }
      #expect(report.driverID == id("d1") && report.isOnline == true && report.position != nil)
      guard case .trip(let trip)?? = world.result(at: name, slot: slot + 10) else {
        Issue.record("no trip at \(name)")
        return
      }
      #expect(trip.tripID == id("t1") && trip.status == .requested)
    }
    world.ask(.driver(id("nobody")), at: "c", slot: 40)
    world.ask(.trip(id("none")), at: "c", slot: 41)
    world.run(seconds: 0.5)
    #expect(world.results(at: "c", slot: 40) == [nil])
    #expect(world.answers(at: "c", slot: 41).errors.count == 1)
    // It comes back to another hub: the first one still knows where it was.
    world.connect("d1", at: "b", slot: 2)
    world.run(seconds: 0.5)
    world.fix(3, trip: nil, at: "b", slot: 2)
    world.run(seconds: 0.5)
    var filter = DriverFilter()
    filter.includesStale = true
    world.ask(.drivers(DriverSearch(area: .nearby(center, radiusMeters: 5000), filter: filter)), at: "c", slot: 50)
    world.run(seconds: 0.5)
    guard case .drivers(let list)?? = world.result(at: "c", slot: 50) else {
      Issue.record("no answer")
      return
    }
    #expect(list.drivers.map(\.driverID) == [id("d1")])
    #expect(list.drivers.first?.position?.coordinate.latitude ?? 0 > 48.1002, "what its newest hub knows")
  }

  @Test("A trip whose hub has left or died is not said to be unknown")
  func hubIsGone() {
    let world = ClusterWorld()
    world.ask("t1", .requested, at: "a", slot: 9)
    world.run(seconds: 0.5)
    // Who may not see it is not told that there is one.
    for (slot, trip) in [(UInt32(15), "t1"), (16, "none")] {
      world.ask(.trip(id(trip)), by: .rider, .onlyForParties, at: "b", slot: slot)
    }
    world.run(seconds: 0.5)
    for slot in [UInt32(15), 16] { #expect(world.answers(at: "b", slot: slot).errors == [.forbidden]) }
    world.kill("a")
    world.run(seconds: 20)
    world.ask(.trip(id("t1")), at: "b", slot: 20)
    world.ask(.trip(id("none")), at: "b", slot: 21)
    world.run(seconds: 0.5)
    #expect(world.answers(at: "b", slot: 20).errors == [.rateLimited])
    #expect(world.answers(at: "b", slot: 21).errors == [.unknownTrip])
    #expect(world["b"].node.node.counters.pending == 0)
  }

  @Test("A hub that does not answer is waited for 0.3 s and left out; one that is silent is not asked")
  func slow() throws {
    let world = ClusterWorld()
    for (slot, name) in [(1, "a"), (2, "b")] as [(UInt32, String)] {
      world.connect("d\(slot)", at: name, slot: slot)
      world.fix(Int(slot), trip: nil, at: name, slot: slot)
    }
    world.run(seconds: 0.5)
    let search = QueryRequest.drivers(DriverSearch(area: .nearby(center, radiusMeters: 5000)))
    world.engine.cuts = ["b>a"]
    world.ask(search, at: "a", slot: 20)
    world.run(seconds: 0.25)
    #expect(world.results(at: "a", slot: 20).isEmpty)
    world.run(seconds: 0.2)
    #expect(drivers(world.result(at: "a", slot: 20))?.names.count == 1)
    #expect(world["a"].node.node.counters.questionsIncomplete == 1)
    world.run(seconds: 1)
    world.ask(search, at: "a", slot: 21)
    world.run(seconds: 0.1)
    #expect(drivers(world.result(at: "a", slot: 21))?.names.count == 1)
    #expect(world["a"].node.node.counters.questionsIncomplete == 2)
    // What no other hub has may be at the silent one.
    world.ask(.driver(id("d9")), at: "a", slot: 23)
    world.ask(.trip(id("t9")), at: "a", slot: 24)
    world.run(seconds: 0.1)
    #expect((23...24).flatMap { world.answers(at: "a", slot: $0).errors } == [.rateLimited, .rateLimited])
    #expect(world.results(at: "a", slot: 23).isEmpty)
    // An answer that comes too late is nobody's.
    world.engine.cuts = []
    world.run(seconds: 2)
    #expect(world.results(at: "a", slot: 20).count == 1)
    world.ask(search, at: "a", slot: 22)
    world.run(seconds: 0.5)
    #expect(drivers(world.result(at: "a", slot: 22))?.names.count == 2)
  }

  @Test("A hub may say that there are as many more drivers as a number holds")
  func countless() throws {
    let world = ClusterWorld()
    world.engine.cuts = ["b>a", "c>a"]
    world.ask(.drivers(DriverSearch(area: .nearby(center, radiusMeters: 5000))), at: "a", slot: 20)
    world.step()
    let node = world["a"].node
    for index in node.node.context.peers.indices {
      node.node.asking.receive(answer: .result(.drivers(DriverList(drivers: [], more: .max))), of: 1, from: index)
    }
    world.step()
    #expect(try #require(drivers(world.result(at: "a", slot: 20))).more > 1_000_000_000)
  }

  @Test(
    "Past the limits questions are refused; hubs that have no room for them are left out; alone a hub answers itself")
  func limits() throws {
    var limits = ClusterLimits()
    limits.pending = 2
    let world = ClusterWorld(limits: limits)
    world.connect("d1", at: "a", slot: 1)
    world.fix(0, trip: nil, at: "a", slot: 1)
    world.run(seconds: 0.5)
    let search = QueryRequest.drivers(DriverSearch(area: .nearby(center, radiusMeters: 5000)))
    for slot in 20..<24 { world.ask(search, at: "a", slot: UInt32(slot)) }
    world.run(seconds: 0.5)
    #expect((20..<24).map { world.results(at: "a", slot: UInt32($0)).count } == [1, 1, 0, 0])
    #expect((20..<24).flatMap { world.answers(at: "a", slot: UInt32($0)).errors } == [.rateLimited, .rateLimited])
    world.engine.isolated = ["a"]
    world.run(seconds: 2)
    world.ask(search, at: "a", slot: 30)
    world.run(seconds: 0.1)
    #expect(drivers(world.result(at: "a", slot: 30))?.names.count == 1)
    world.engine.isolated = []
    world.run(seconds: 2)
    var few = ClusterLimits()
    few.asksPerPeer = 0
    world.restart("b", limits: few)
    world.run(seconds: 3)
    let before = world["a"].node.node.counters.questionsIncomplete
    world.ask(search, at: "a", slot: 31)
    // What no other hub has may be at the busy one.
    world.ask(.driver(id("d9")), at: "a", slot: 32)
    world.run(seconds: 0.1)
    world.ask(.trip(id("t9")), at: "a", slot: 33)
    world.run(seconds: 0.1)
    #expect(drivers(world.result(at: "a", slot: 31))?.names.count == 1, "it is left out")
    #expect(world["a"].node.node.counters.questionsIncomplete == before + 3)
    #expect((32...33).flatMap { world.answers(at: "a", slot: $0).errors } == [.rateLimited, .rateLimited])
  }
}

extension ClusterWorld {
  func ask(
    _ request: QueryRequest, by role: Role = .ops, _ grant: ChannelGrant = .granted, at name: String, slot: UInt32
  ) {
    let question = FleetQuestion(
      session: session(slot), replyTo: message(1), request: .query(request), actor: Actor(role: role, id: id("desk")),
      audience: role == .ops ? .ops : .riders, grant: grant)
    self[name].inputs.append(HubInput(question))
  }

  /// A driver's fix at a place.
  func fix(at place: Coordinate, at name: String, slot: UInt32) {
    let update = LocationUpdate(tripID: nil, fix: Fix(coordinate: place, timestamp: now.timestamp, accuracy: 5))
    self[name].inputs.append(
      .fix(
        FixInput(
          session: session(slot), messageID: message(Int(slot)), sent: now.timestamp, received: now, update: update,
          tripIsGranted: true)))
  }

  /// All that a session was answered, and the last of it.
  func results(at name: String, slot: UInt32) -> [QueryResult?] {
    self[name].results.filter { $0.session.slot == slot }.map(\.result)
  }

  func result(at name: String, slot: UInt32) -> QueryResult?? { results(at: name, slot: slot).last }
}
