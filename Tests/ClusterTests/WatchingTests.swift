// Areas over several hubs: a map shows what it would if all drivers were at one hub.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

/// Drivers who drive about, change hubs and take breaks, over three hubs and at one that has all of them; and people
/// who watch the same parts of the map at each.
private final class Town {
  static let names = ["a", "b", "c"]
  let many: ClusterWorld
  let one: ClusterWorld
  var random: SplitMix64
  private var places: [Coordinate] = []
  private var homes: [String] = []
  private var slots: [UInt32] = []
  private var statuses: [DriverStatus] = []
  /// When each driver's newest fixes were, by the wall clock.
  private var times: [[Int64]] = []
  private var lastSlot: UInt32 = 1000
  /// Each view as it is at `one` and at each hub.
  var maps: [(expected: MapClient, seen: [MapClient])] = []

  init(seed: UInt64, drivers: Int, limits: ClusterLimits = ClusterLimits(), hubLimits: HubLimits = HubLimits()) {
    random = SplitMix64(seed: seed)
    many = ClusterWorld(seed: seed, limits: limits, hubLimits: hubLimits)
    one = ClusterWorld(["z"], hubLimits: hubLimits)
    for driver in 0..<drivers {
      places.append(somewhere())
      homes.append(Town.names.randomElement(using: &random) ?? "a")
      slots.append(0)
      statuses.append(.available)
      times.append([])
      connect(driver, at: homes[driver])
      fix(driver)
    }
    run(seconds: 1)
  }

  func somewhere() -> Coordinate {
    Coordinate(
      latitude: 48.1 + Double.random(in: -0.04...0.04, using: &random),
      longitude: 11.5 + Double.random(in: -0.06...0.06, using: &random))!
  }

  func step() {
    many.step()
    one.step()
  }

  func run(seconds: Double) { for _ in 0..<Int(seconds * 100) { step() } }

  // MARK: Drivers

  func connect(_ driver: Int, at name: String) {
    homes[driver] = name
    lastSlot += 1
    slots[driver] = lastSlot
    many.connect("d\(driver)", at: name, slot: lastSlot)
    one.connect("d\(driver)", at: "z", slot: lastSlot)
    say(statuses[driver], driver)  // as an app does that connects
  }

  func fix(_ driver: Int) {
    many.fix(at: places[driver], at: homes[driver], slot: slots[driver])
    one.fix(at: places[driver], at: "z", slot: slots[driver])
    times[driver].append(many.now.timestamp.milliseconds)
  }

  func drive(_ driver: Int) {
    places[driver] = Coordinate(
      latitude: places[driver].latitude + Double.random(in: -1e-4...1e-4, using: &random),
      longitude: places[driver].longitude + Double.random(in: -1.5e-4...1.5e-4, using: &random))!
    fix(driver)
  }

  func say(_ status: DriverStatus, _ driver: Int) {
    statuses[driver] = status
    let report = DriverStatusReport(status: status)
    for (world, name) in [(many, homes[driver]), (one, "z")] {
      world[name].inputs.append(.driverStatus(world.session(slots[driver]), message(5), report))
    }
  }

  /// A second in which most drivers move, some say that they are free or not, and some come to another hub.
  func second(moves: Bool) {
    for driver in places.indices {
      switch random.next() % 20 {
      case 0..<12: drive(driver)
      case 12: say([.available, .unavailable, .background].randomElement(using: &random) ?? .available, driver)
      case 13 where moves && random.next() % 4 == 0:
        connect(driver, at: Town.names.randomElement(using: &random) ?? "a")
        drive(driver)
      case _: break
      }
      if random.next() % 8 == 0 { step() }
    }
  }

  // MARK: Maps

  func watch(_ role: Role, _ channel: Channel, precision: Int? = nil) {
    let slot = UInt32(5000 + maps.count)
    maps.append(
      (
        one.map(role, channel, precision: precision, at: "z", slot: slot),
        Town.names.map { many.map(role, channel, precision: precision, at: $0, slot: slot) }
      ))
  }

  /// Somebody moves the map, alike at all hubs.
  func look(_ channel: Channel, map index: Int) {
    one["z"].inputs.append(maps[index].expected.ask(channel))
    for (map, name) in zip(maps[index].seen, Town.names) { many[name].inputs.append(map.ask(channel)) }
  }

  /// Whether all maps are as at the one hub.
  func check(_ context: String) {
    for (expected, seen) in maps {
      for (map, name) in zip(seen, Town.names) { compare(map, expected, "\(context), \(map.role) at \(name)") }
    }
  }

  /// Whether maps are alike at all hubs, and the first one shows the drivers that the one hub shows. (Where a driver
  /// has changed hubs a filter has begun anew, so that places differ from those of the one hub.)
  func checkAlike(_ context: String) {
    for (index, (expected, seen)) in maps.enumerated() {
      for (map, name) in zip(seen, Town.names) { compare(map, seen[0], "\(context), map \(index) at \(name)") }
      if index > 0 { continue }
      #expect(Set(seen[0].drivers.keys) == Set(expected.drivers.keys), "\(context)")
      for (id, shown) in expected.drivers {
        #expect(seen[0].drivers[id]?.driver.status == shown.driver.status, "\(context): \(id)")
        #expect(seen[0].drivers[id]?.driver.timestamp == shown.driver.timestamp, "\(context): \(id)")
      }
    }
  }

  private func compare(_ map: MapClient, _ expected: MapClient, _ context: String) {
    #expect(map.cells == expected.cells, "\(context)")
    #expect(map.counts == expected.counts, "\(context)")
    let (found, wanted) = (Set(map.drivers.keys), Set(expected.drivers.keys))
    #expect(found == wanted, "\(context): lacks \(wanted.subtracting(found)), has \(found.subtracting(wanted)) besides")
    for (id, shown) in expected.drivers {
      guard var found = map.drivers[id] else { continue }
      // Riders are shown the second of the tick in which a driver came into its field.
      if map.role == .rider { found.driver.timestamp = shown.driver.timestamp }
      #expect(found.driver == shown.driver && found.details == shown.details, "\(context): \(id)")
    }
  }

  /// Whether each place that ops see is none that was over so many seconds ago.
  func checkAges(seconds: Int64) {
    let limit = many.now.timestamp.milliseconds - seconds * 1000
    for map in maps.flatMap(\.seen) where map.role == .ops {
      for (id, shown) in map.drivers {
        guard let driver = Int(id.description.dropFirst()), let due = times[driver].last(where: { $0 <= limit }) else {
          continue
        }
        #expect(shown.driver.timestamp.milliseconds >= due, "\(id) is shown where it was")
      }
    }
  }
}

@Suite struct WatchingTests {
  private let center = Coordinate(latitude: 48.1, longitude: 11.5)!
  private let box = BoundingBox(south: 48.07, west: 11.45, north: 48.13, east: 11.55)!

  private func watchAll(_ town: Town) {
    town.watch(.ops, .box(box))
    town.watch(.rider, .nearby(center, radiusMeters: 800))
    town.watch(.rider, .nearby(center, radiusMeters: 4000))
    town.watch(.ops, .counts(box))
    town.watch(.ops, .area(GeohashCell(center, precision: 4)))
    town.watch(.ops, .area(GeohashCell(center, precision: 6)))
  }

  @Test(
    "Maps and counts are the same over three hubs as over one, places at most 3 s old",
    arguments: [1, 2, 3] as [UInt64], [128, 5])
  func oracle(seed: UInt64, perTurn: Int) {
    var hubLimits = HubLimits()
    hubLimits.areaDriversPerTurn = perTurn
    let town = Town(seed: seed, drivers: 40, hubLimits: hubLimits)
    watchAll(town)
    for round in 0..<3 {
      for second in 0..<5 {
        town.second(moves: false)
        town.run(seconds: 0.8)
        if round > 0 || second > 2 { town.checkAges(seconds: 3) }
      }
      town.run(seconds: 3)
      town.check("round \(round)")
      town.look(.nearby(town.somewhere(), radiusMeters: 1500), map: 1)
    }
    #expect(town.maps.count { !$0.expected.drivers.isEmpty || !$0.expected.counts.isEmpty } >= 4)
    #expect(town.many.members.allSatisfy { $0.node.node.counters.framesMissed == 0 })
    // Nobody watches: nothing is sent any more.
    town.run(seconds: 0.1)
    for name in Town.names { for map in town.many[name].maps { town.many[name].inputs += map.leave() } }
    town.run(seconds: 2)
    let before = town.many.members.map { $0.node.node.counters.areaDriversOut }
    for _ in 0..<3 {
      town.second(moves: false)
      town.run(seconds: 1)
    }
    #expect(town.many.members.allSatisfy { $0.node.node.counters.cellsWatched == 0 })
    #expect(town.many.members.map { $0.node.node.counters.areaDriversOut } == before)
    #expect(
      town.many.members.allSatisfy { $0.hub.hub.shownCounters().entries(.guests) == 0 })
  }

  @Test(
    "With frames lost, doubled and late, links cut, and drivers who change hubs, all maps are right 4 s after that",
    arguments: 1...6 as ClosedRange<UInt64>)
  func faults(seed: UInt64) {
    let town = Town(seed: seed, drivers: 30)
    town.watch(.ops, .box(BoundingBox(south: 47.8, west: 11.1, north: 48.4, east: 11.9)!))
    watchAll(town)
    for round in 0..<3 {
      let engine = town.many.engine
      (engine.faults.lost, engine.faults.doubled, engine.faults.delayed) = (0.03, 0.05, 0.1)
      engine.faults.unknown = 0.1
      for second in 0..<6 {
        if second == 2 { engine.cuts = ["a>b", "c>a"] }
        if second == 4 { (engine.cuts, engine.isolated) = ([], ["c"]) }
        town.second(moves: true)
        town.run(seconds: 0.7)
        if second % 3 == 1 { town.look(.nearby(town.somewhere(), radiusMeters: 1500), map: 2) }
      }
      (engine.cuts, engine.isolated, engine.faults) = ([], [], EngineFaults())
      for driver in 0..<30 { town.fix(driver) }
      town.run(seconds: 4)
      town.checkAlike("seed \(seed), round \(round)")
    }
    #expect(town.many.members.contains { $0.node.node.counters.framesMissed > 0 })
  }

  @Test("A driver that changes hubs is shown once, and not gone in between, to ops and to riders")
  func changesHubs() {
    let world = ClusterWorld()
    let ops = world.map(.ops, .nearby(center, radiusMeters: 3000), at: "c", slot: 50)
    let rider = world.map(.rider, .nearby(center, radiusMeters: 3000), at: "c", slot: 51)
    var random = SplitMix64(seed: 4)
    var counts: Set<Int> = []
    for slot in 1...20 as ClosedRange<UInt32> {
      let home = ["a", "b", "c"].randomElement(using: &random) ?? "a"
      world.connect("d1", at: home, slot: slot)
      for step in 0..<3 {
        world.fix(Int(slot) * 3 + step, trip: nil, at: home, slot: slot)
        for _ in 0..<120 {
          world.step()
          counts.formUnion([ops.drivers.count, rider.drivers.count])
        }
        if slot == 1, step == 0 { world.run(seconds: 1) }
        #expect(ops.drivers.count == 1 && rider.drivers.count == 1, "\(slot) at \(home)")
        if slot == 1 { counts = [] }
      }
    }
    #expect(counts == [1])
    #expect(ops.drivers[id("d1")]?.driver.coordinate.latitude ?? 0 > 48.104)
  }

  @Test("Where a hub is cut off its drivers are gone from others' maps within 4 s, and come back with it")
  func lostHub() {
    let world = ClusterWorld()
    for (slot, name) in [(1, "a"), (2, "b"), (3, "c")] as [(UInt32, String)] {
      world.connect("d-\(name)", at: name, slot: slot)
      world.fix(Int(slot), trip: nil, at: name, slot: slot)
    }
    let maps = ["a", "b"].map { world.map(.ops, .box(box), at: $0, slot: 60) }
    world.run(seconds: 3)
    #expect(maps.allSatisfy { $0.drivers.count == 3 })
    world.engine.isolated = ["c"]
    world.run(seconds: 1.5)
    #expect(maps.allSatisfy { $0.drivers.count == 3 })
    world.run(seconds: 2.5)
    #expect(maps.allSatisfy { Set($0.drivers.keys) == [id("d-a"), id("d-b")] })
    world.engine.isolated = []
    world.run(seconds: 4)
    #expect(maps.allSatisfy { $0.drivers.count == 3 })
    // Another process of its name knows nobody.
    world.restart("c")
    world.run(seconds: 4)
    #expect(maps.allSatisfy { Set($0.drivers.keys) == [id("d-a"), id("d-b")] })
    // The engine itself: each hub shows its own.
    world.engine.isolated = ["a", "b", "c"]
    world.run(seconds: 5)
    #expect(zip(maps, ["a", "b"]).allSatisfy { Set($0.drivers.keys) == [id("d-\($1)")] })
    world.engine.isolated = []
    world.engine.forget()
    world.run(seconds: 5)
    #expect(maps.allSatisfy { Set($0.drivers.keys) == [id("d-a"), id("d-b")] })
  }

  @Test("A last frame that is lost is noticed though none follows")
  func lastFrame() {
    let world = ClusterWorld()
    world.connect("d1", at: "a", slot: 1)
    world.fix(0, trip: nil, at: "a", slot: 1)
    let map = world.map(.ops, .box(box), at: "b", slot: 60)
    world.run(seconds: 3)
    world.fix(9, trip: nil, at: "a", slot: 1)
    let before = map.drivers[id("d1")]?.driver.coordinate
    world.engine.cuts = ["a>b"]
    world.run(seconds: 0.9)  // a tick is within it, and its frame is lost
    world.engine.cuts = []
    world.run(seconds: 3)
    #expect(before != nil && map.drivers[id("d1")]?.driver.coordinate != before)
    #expect(world["b"].node.node.counters.framesMissed > 0)
  }

  @Test("A hub that stalls for ten seconds delays nobody else, and is right 4 s later")
  func stall() {
    let town = Town(seed: 9, drivers: 20)
    watchAll(town)
    town.run(seconds: 2)
    town.many.stalled = ["b"]
    for _ in 0..<10 {
      town.second(moves: false)
      town.run(seconds: 0.8)
    }
    let others = town.maps.filter { $0.expected.role == .ops }.flatMap { [$0.seen[0], $0.seen[2]] }
    #expect(others.allSatisfy { map in map.drivers.allSatisfy { $0.value.driver.timestamp.milliseconds > 0 } })
    #expect(town.many["a"].node.node.counters.framesMissed == 0)
    town.many.stalled = []
    town.run(seconds: 4)
    town.check("after the stall")
  }

  @Test("At a full hour all drivers have their new names, also those of other hubs")
  func names() {
    let town = Town(seed: 3, drivers: 20)
    town.watch(.rider, .nearby(center, radiusMeters: 5000))
    town.run(seconds: 3)
    let old = Set(town.maps[0].expected.drivers.keys)
    for world in [town.many, town.one] { world.step(milliseconds: 3_600_000 - 5000) }
    for driver in 0..<20 { town.fix(driver) }
    town.run(seconds: 8)
    for driver in 0..<20 { town.fix(driver) }
    town.run(seconds: 4)
    #expect(!old.isEmpty && old.isDisjoint(with: town.maps[0].expected.drivers.keys))
    town.check("a new hour")
  }
}
