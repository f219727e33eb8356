// Lists over several hubs: page by page they have what one hub with all drivers and trips would have, each once.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct ListingTests {
  /// Drivers with trips over several hubs, and all of them at one that is alone.
  private func worlds(
    drivers: Int, seed: UInt64, _ limits: ClusterLimits = ClusterLimits()
  ) -> (many: ClusterWorld, one: ClusterWorld) {
    let (many, one) = (ClusterWorld(limits: limits), ClusterWorld(["z"]))
    var random = SplitMix64(seed: seed)
    for number in 0..<drivers {
      let slot = UInt32(number + 1)
      for (world, name) in [(many, ["a", "b", "b", "c"].randomElement(using: &random)!), (one, "z")] {
        world.connect("d\(number)", at: name, slot: slot)
        world.step()
        world.fix(number, trip: nil, at: name, slot: slot)
        world.ask("t\(number)", .requested, for: "d\(number)", at: name, slot: 900 + slot)
        if number % 3 > 0 { world.move("t\(number)", .accepted, by: "d\(number)", at: name, slot: slot) }
        world.run(seconds: 0.1)
      }
    }
    return (many, one)
  }

  private func drivers(_ query: DriverListQuery, _ world: ClusterWorld, at names: [String]) throws -> [DriverReport] {
    var (query, found): (DriverListQuery, [DriverReport]) = (query, [])
    for turn in 0..<200 {
      let (name, slot) = (names[turn % names.count], UInt32(2000 + world.asked))
      world.ask(.drivers(query), at: name, slot: slot)
      world.run(seconds: 0.1)
      guard case .drivers(let list)?? = world.result(at: name, slot: slot) else {
        Issue.record("no page at \(name)")
        break
      }
      #expect(list.drivers.count <= query.limit)
      found += list.drivers
      guard let cursor = list.cursor else { return found }
      let end = try #require(ListCursor(cursor, of: .drivers))
      (query.from, query.lastHub) = (Int(end.number), end.hub)
    }
    Issue.record("it does not end")
    return found
  }

  private func trips(_ query: TripListQuery, _ world: ClusterWorld, at names: [String]) throws -> [TripReport] {
    var (query, found): (TripListQuery, [TripReport]) = (query, [])
    for turn in 0..<200 {
      let (name, slot) = (names[turn % names.count], UInt32(2000 + world.asked))
      world.ask(.trips(query), at: name, slot: slot)
      world.run(seconds: 0.1)
      let page = try #require(world[name].tripPages.last { $0.session.slot == slot }?.page)
      #expect(page.trips.count <= query.limit)
      found += page.trips
      guard let next = page.next else { return found }
      let end = try #require(ListCursor(next.text(of: .trips), of: .trips))
      (query.below, query.lastHub) = (end.number, end.hub)
    }
    Issue.record("it does not end")
    return found
  }

  /// As a report is the same at both, whenever it was asked for.
  private func known(_ reports: [DriverReport]) -> [String] {
    reports.map { report in
      var report = report
      report.position?.age = 0
      report.position?.timestamp = nil
      return "\(report)"
    }
  }

  @Test(
    "Page by page, each asked at another hub, every driver comes once, as one hub with all of them has it",
    arguments: 1...3 as ClosedRange<UInt64>)
  func drivers(seed: UInt64) throws {
    let (many, one) = worlds(drivers: 40, seed: seed)
    for limit in [1, 3, 7, 13, 40, 1000] {
      for (prefix, states) in [("", DriverListQuery.State.allCases), ("d1", [.available]), ("d", [.onTrip])] {
        let query = DriverListQuery(prefix: InlineText(prefix)!, states: Set(states), limit: limit)
        let expected = known(try drivers(query, one, at: ["z"]))
        let found = known(try drivers(query, many, at: ["a", "c", "b"]))
        #expect(found.sorted() == expected.sorted(), "\(query)")
        #expect(!expected.isEmpty || prefix != "")
      }
    }
    #expect(many.members.allSatisfy { $0.node.node.counters.questionsIncomplete == 0 })
  }

  @Test(
    "Trips come in the order in which they began, each once, also where hubs cut their pages",
    arguments: 1...3 as ClosedRange<UInt64>)
  func trips(seed: UInt64) throws {
    var limits = ClusterLimits()
    if seed > 1 { limits.listedBytes = 200 * Int(seed) }
    if seed == 3 { limits.listed = 4 }
    let (many, one) = worlds(drivers: 40, seed: seed, limits)
    for limit in [1, 3, 7, 40, 1000] {
      for (statuses, driver) in [(TripStatusSet.all, nil), (TripStatusSet([.requested]), nil), (.all, "d7")] {
        let query = TripListQuery(statuses: statuses, driverID: driver.map { id($0) }, limit: limit)
        let (expected, found) = (
          try trips(query, one, at: ["z"]).map(\.tripID), try trips(query, many, at: ["a", "c", "b"]).map(\.tripID)
        )
        #expect(found == expected, "\(query)")
        #expect(!expected.isEmpty)
      }
    }
    let drivers = try drivers(DriverListQuery(limit: 1000), many, at: ["a"]).map(\.driverID)
    #expect(drivers.count == 40 && Set(drivers).count == 40)
  }

  @Test("A driver that has changed hubs is in the list of the hub where it is, and once")
  func moved() throws {
    let world = ClusterWorld()
    for number in 0..<5 { world.connect("d\(number)", at: "a", slot: UInt32(number + 1)) }
    world.run(seconds: 0.5)
    world.connect("d2", at: "b", slot: 11)
    world.run(seconds: 0.5)
    for limit in [1, 2, 10] {
      let found = try drivers(DriverListQuery(limit: limit), world, at: ["c", "a"])
      #expect(found.map { "\($0.driverID)" }.sorted() == (0..<5).map { "d\($0)" })
      #expect(found.allSatisfy { $0.isOnline == true })
    }
  }

  @Test("A hub that does not answer is waited for 2 s and left out; one that has no room for the list refuses it")
  func slow() throws {
    let world = ClusterWorld(
      hubLimits: {
        var limits = HubLimits()
        limits.driverLists = 1
        return limits
      }())
    for (slot, name) in [(1, "a"), (2, "b")] as [(UInt32, String)] { world.connect("d\(slot)", at: name, slot: slot) }
    world.run(seconds: 0.5)
    world.engine.cuts = ["b>a"]
    world.ask(.drivers(DriverListQuery(limit: 10)), at: "a", slot: 20)
    world.run(seconds: 1.9)
    #expect(world.results(at: "a", slot: 20).isEmpty)
    world.run(seconds: 0.2)
    guard case .drivers(let list)?? = world.result(at: "a", slot: 20) else {
      Issue.record("no answer")
      return
    }
    #expect(list.drivers.map(\.driverID) == [id("d1")] && list.cursor == nil)
    #expect(world["a"].node.node.counters.questionsIncomplete == 1)
    world.engine.cuts = []
    world.run(seconds: 2)
    for slot in 30..<32 { world.ask(.drivers(DriverListQuery(limit: 10)), at: "a", slot: UInt32(slot)) }
    world.run(seconds: 0.5)
    #expect(world.answers(at: "a", slot: 31).errors == [.rateLimited])
    #expect(world.results(at: "a", slot: 30).count == 1)
  }

  @Test("A cursor is read back as it was written, and nothing else is a cursor")
  func cursors() {
    for cursor in [ListCursor(0), ListCursor(77), ListCursor(1 << 49, hub: "hub.a-1_x"), ListCursor(5, hub: "z")] {
      #expect(ListCursor(cursor.text(of: .trips), of: .trips) == cursor)
      #expect(ListCursor(cursor.text(of: .trips), of: .drivers) == nil)
    }
    for text in ["", "t", "d", "d-1", "d+1", "dA", "d01", "d.", "t5", "d1c3zzzzzzzzzzzzzz", "d5.", "d5.a~"] {
      #expect(ListCursor(text, of: .drivers) == nil, "\(text)")
    }
  }
}

extension ClusterWorld {
  /// How often it was asked by `ask(_:at:slot:)`: who asks next is somebody else.
  var asked: Int { members.reduce(0) { $0 + $1.results.count + $1.tripPages.count } }

  func ask(_ request: FleetRequest, at name: String, slot: UInt32) {
    let question = FleetQuestion(
      session: session(slot), replyTo: nil, request: request, actor: Actor(role: .ops, id: id("desk")),
      audience: .ops, grant: .granted)
    self[name].inputs.append(HubInput(question))
  }
}
