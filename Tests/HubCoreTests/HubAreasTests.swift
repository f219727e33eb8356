// Live areas: what watchers of a part of the map are sent, against the hub's state.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubAreasTests {
  @Test("Who begins to watch gets all that is there at once, and then what moved, once a second")
  func beginning() {
    let bench = HubBench()
    let driver = bench.connect("D1")
    bench.turn(bench.fix(driver))
    let watcher = bench.map(.ops, .area(GeohashCell(at(52.52, 13.405), precision: 5)))
    #expect(watcher.updates.count == 1)
    #expect(watcher.updates.first?.isFull == true && watcher.updates.first?.drivers.map(\.driverID) == [id("D1")])
    bench.advance(seconds: 1)
    bench.settle([watcher])
    #expect(watcher.updates.count == 1, "nothing moved")
    for _ in 0..<3 { bench.settle([watcher], [bench.fix(driver, milliseconds: bench.clock + 1)]) }
    bench.advance(seconds: 1)
    bench.settle([watcher], [bench.fix(driver, milliseconds: bench.clock + 10)])
    #expect(watcher.updates.count == 2)
    #expect(watcher.updates.last?.isFull == false && watcher.updates.last?.drivers.count == 1)
    #expect(watcher.updates.last!.tick > watcher.updates.first!.tick)
  }

  @Test("A driver that is stale and due to be forgotten before a tick leaves the areas first")
  func forgotten() {
    var timings = HubTimings()
    (timings.offlineShown, timings.tripGrace, timings.retention) = (1, 10, 30)
    let bench = HubBench(timings: timings)
    let session = bench.connect("D1")
    bench.turn(bench.fix(session), .driverDisconnected(session))
    // Ticks come half a second behind deadlines.
    bench.advance(seconds: 0.5)
    let watcher = bench.map(.ops, .area(GeohashCell(at(52.52, 13.405), precision: 5)))
    for _ in 0..<200 where !bench.hub.drivers[0].isStale {
      bench.advance(seconds: 0.1)
      bench.settle([watcher])
      bench.advance(seconds: 0.4)
      bench.settle([watcher])
      if !bench.hub.drivers[0].isStale { bench.advance(seconds: 0.5) }
    }
    #expect(bench.hub.drivers[0].isStale && !watcher.map.drivers.isEmpty)
    bench.advance(seconds: 1)
    bench.settle([watcher])
    #expect(bench.hub.drivers.find(id("D1")) == 0 && watcher.map.drivers.isEmpty)
    for _ in 0..<3 {
      bench.advance(seconds: 1)
      bench.settle([watcher])
    }
    #expect(bench.hub.drivers.find(id("D1")) == nil)
  }

  @Test("A move between two cells is in the same tick of both")
  func crossing() {
    let bench = HubBench()
    let driver = bench.connect("D1")
    // On both sides of the meridian of 13.359375, a border of cells of five characters and more.
    bench.turn(bench.fix(driver, at: at(52.52, 13.3590), accuracy: 3, speed: 20, heading: 90))
    let watcher = bench.map(.ops, .nearby(at(52.52, 13.359375), radiusMeters: 500))
    var crossed = false
    for step in 1...6 {
      bench.advance(seconds: 1)
      let place = at(52.52, 13.3590 + Double(step) * 0.0003)
      bench.settle([watcher], [bench.fix(driver, at: place, accuracy: 3, speed: 20, heading: 90)])
      let ticks = Dictionary(grouping: watcher.updates.filter { !$0.isFull }, by: \.tick)
      for updates in ticks.values where updates.contains(where: { !$0.left.isEmpty }) {
        crossed = true
        #expect(updates.count == 2 && updates.flatMap(\.drivers).count == 1)
      }
    }
    #expect(crossed)
  }

  @Test("Riders see available drivers only, under another name, on a grid")
  func riders() {
    let bench = HubBench()
    let driver = bench.connect("D1")
    bench.turn(bench.fix(driver))
    let watcher = bench.map(.rider, .nearby(at(52.52, 13.405), radiusMeters: 300))
    let shown = watcher.map.drivers.values.first?.driver
    #expect(shown != nil && shown?.driverID != id("D1") && shown?.coordinate != at(52.52, 13.405))
    #expect(shown!.coordinate.distance(to: at(52.52, 13.405)) < 20)
    bench.advance(seconds: 1)
    bench.settle([watcher], [bench.fix(driver, trip: "T1", milliseconds: bench.clock)])
    #expect(watcher.map.drivers.isEmpty && watcher.updates.last?.left == [shown!.driverID], "it is on a trip")
    bench.advance(seconds: 1)
    bench.settle([watcher], [bench.move(.ops, "o", "T1", .cancelled)])
    #expect(watcher.map.drivers.count == 1)
    #expect(watcher.map.drivers[shown!.driverID] == nil, "after a trip it has another name")
  }

  @Test("Ops see a driver's trip while it continues, accuracy, confidence and vehicle type; riders see none of these")
  func details() {
    let bench = HubBench()
    let driver = bench.connect("D1")
    let van = DriverStatusReport(status: .available, vehicleType: InlineText("van"))
    bench.turn(.driverStatus(driver, message("s"), van), bench.fix(driver))
    let cell = Channel.area(GeohashCell(at(52.52, 13.405), precision: 5))
    let (ops, rider) = (AreaWatcher(.ops, slot: 100), AreaWatcher(.rider, slot: 101))
    bench.settle([ops, rider], [ops.ask(cell), rider.ask(cell)])
    let shown = bench.hub.drivers[0].position
    func details(trip: String?) -> AreaUpdate.Details {
      let position = bench.hub.drivers[0].position!
      return AreaUpdate.Details(
        tripID: trip.map { id($0) }, accuracy: position.accuracy, confidence: position.confidence,
        vehicleType: InlineText("van"))
    }
    #expect(shown != nil && ops.updates.last?.details == [details(trip: nil)])
    bench.advance(seconds: 1)
    bench.settle([ops, rider], [bench.fix(driver, trip: "T1", milliseconds: bench.clock)])
    #expect(ops.updates.last?.details == [details(trip: "T1")] && ops.updates.last?.isFull == false)
    bench.advance(seconds: 1)
    bench.settle([ops, rider], [bench.move(.ops, "o", "T1", .cancelled)])
    #expect(ops.updates.last?.details == [details(trip: nil)], "the trip is over")
    #expect(rider.updates.count == 3 && rider.updates.allSatisfy { $0.details.isEmpty })
  }

  @Test("Ops go on seeing a driver that is offline until an hour after its last fix, riders do not")
  func offline() {
    let bench = HubBench()
    let driver = bench.connect("D1")
    bench.turn(bench.fix(driver))
    let cell = Channel.area(GeohashCell(at(52.52, 13.405), precision: 5))
    let (ops, rider) = (AreaWatcher(.ops, slot: 100), AreaWatcher(.rider, slot: 101))
    bench.settle([ops, rider], [ops.ask(cell), rider.ask(cell)])
    func pass(_ seconds: Int) {
      for _ in 0..<seconds {
        bench.advance(seconds: 1)
        bench.settle([ops, rider])
      }
      bench.check([ops, rider], "after \(seconds) s more")
    }
    pass(90)
    #expect(ops.updates.last?.details.map(\.isOnline) == [false] && ops.updates.last?.drivers.count == 1)
    #expect(rider.map.drivers.isEmpty && rider.updates.last?.left.count == 1)
    let late = bench.map(.ops, .area(GeohashCell(at(52.52, 13.405), precision: 4)), slot: 102)
    #expect(late.updates.last?.details.map(\.isOnline) == [false], "whoever begins to watch sees it, too")
    let received = ops.updates.count
    pass(3500)
    #expect(ops.updates.count == received && ops.map.drivers.count == 1)
    pass(15)
    #expect(ops.updates.last?.left == [id("D1")] && ops.map.drivers.isEmpty)
    // Back, and gone again: an hour from its last fix.
    bench.settle([ops, rider], [bench.fix(driver, milliseconds: bench.clock)])
    pass(2)
    #expect(ops.updates.last?.details.map(\.isOnline) == [true] && rider.map.drivers.count == 1)
    pass(3000)
    bench.settle([ops, rider], [bench.fix(driver, milliseconds: bench.clock)])
    pass(3500)
    #expect(ops.map.drivers.count == 1)
    pass(110)
    #expect(ops.map.drivers.isEmpty)
  }

  @Test("A cell shows ops 5,000 drivers, in messages of 1,000, and says how many there are besides")
  func crowded() {
    var limits = HubLimits.roomy
    limits.drivers = 5_100
    limits.channels = 20_000
    let bench = HubBench(limits: limits)
    let sessions = (0..<5_050).map { bench.connect("D\($0)", slot: UInt32($0)) }
    let cell = Channel.area(GeohashCell(at(52.52, 13.405), precision: 3))
    bench.turn(sessions.map { bench.fix($0) })
    let watcher = bench.map(.ops, cell, slot: 6_000)
    #expect(
      watcher.updates.map(\.drivers.count) == [1000, 1000, 1000, 1000, 1000] && watcher.map.drivers.count == 5000)
    #expect(watcher.updates.map(\.isFull) == [true, false, false, false, false])
    #expect(watcher.updates.allSatisfy { $0.more == 50 && $0.details.count == 1000 })
    bench.advance(seconds: 1)
    bench.settle([watcher], sessions.map { bench.fix($0, milliseconds: bench.clock) })
    bench.settle([watcher])
    #expect(watcher.updates.dropFirst(5).map(\.drivers.count) == [1000, 1000, 1000, 1000, 1000], "all moved")
    #expect(watcher.updates.dropFirst(5).allSatisfy { !$0.isFull } && watcher.map.drivers.count == 5000)
  }

  @Test("A name changes with the hour: the old one leaves and the new one comes in the same tick")
  func renaming() {
    let bench = HubBench()
    let driver = bench.connect("D1")
    bench.turn(bench.fix(driver))
    let watcher = bench.map(.rider, .nearby(at(52.52, 13.405), radiusMeters: 300))
    var names: Set<Identifier> = Set(watcher.map.drivers.keys)
    for _ in 0..<130 {
      bench.advance(seconds: 60)
      let before = Set(watcher.map.drivers.keys)
      let seen = watcher.updates.count
      bench.settle([watcher], [bench.fix(driver, milliseconds: bench.clock)])
      #expect(watcher.map.drivers.count == 1)
      let after = Set(watcher.map.drivers.keys)
      names.formUnion(after)
      if before != after { #expect(watcher.updates[seen...].flatMap(\.left).map { $0 } == Array(before)) }
    }
    #expect((3...4).contains(names.count), "\(names.count) names in 2 h 10 min")
  }

  @Test(
    "All names change in the same tick, also of drivers from whom nothing comes, and however many turns that takes",
    arguments: [128, 5])
  func renamingTogether(perTurn: Int) {
    var limits = HubLimits.roomy
    limits.areaDriversPerTurn = perTurn
    let bench = HubBench(limits: limits)
    let hour: Int64 = 3_600_000
    bench.advance(seconds: Double(hour - bench.clock % hour) / 1000 - 3.5)
    for driver in 0..<60 { bench.turn(bench.fix(bench.connect("D\(driver)", slot: UInt32(driver)))) }
    let cells = [5, 6].map { Channel.area(GeohashCell(at(52.52, 13.405), precision: $0)) }
    let watchers = [AreaWatcher(.rider, slot: 900), AreaWatcher(.rider, slot: 901)]
    for (watcher, cell) in zip(watchers, cells) { bench.settle(watchers, [watcher.ask(cell)]) }
    let before = Set(watchers[0].map.drivers.keys)
    #expect(before.count == 60)
    for _ in 0..<6 {
      bench.advance(seconds: 1)
      bench.settle(watchers)
    }
    for watcher in watchers {
      #expect(watcher.updates.count == 2, "nothing but the change of names")
      #expect(Set(watcher.updates.last?.left ?? []) == before && watcher.updates.last?.drivers.count == 60)
      #expect(Set(watcher.map.drivers.keys).isDisjoint(with: before) && watcher.map.drivers.count == 60)
    }
    #expect(watchers[0].updates.last?.tick == watchers[1].updates.last?.tick)
    #expect(
      watchers[0].map.drivers.keys.sorted { $0.description < $1.description }
        == watchers[0].updates.last?.drivers.map(\.driverID))
    bench.check(watchers, "after the hour")
  }

  @Test("Whoever asks again and again while names change gets the new ones of all, once all have changed")
  func snapshotsWhileRenaming() {
    var limits = HubLimits.roomy
    limits.areaDriversPerTurn = 6
    let bench = HubBench(limits: limits)
    let hour: Int64 = 3_600_000
    bench.advance(seconds: Double(hour - bench.clock % hour) / 1000 - 1.5)
    // Every eighth driver is in the cell, so they are renamed in different turns.
    let places = [at(52.52, 13.405), at(52.52, 13.405).moved(90, 3000)]
    func stand(_ driver: Int) {
      bench.turn(bench.fix(bench.connect("D\(driver)", slot: UInt32(driver)), at: places[driver % 8 == 0 ? 0 : 1]))
    }
    for driver in 0..<64 { stand(driver) }
    let watchers = [AreaWatcher(.rider, slot: 900), AreaWatcher(.rider, slot: 901)]
    for (watcher, place) in zip(watchers, places) {
      bench.settle(watchers, [watcher.ask(.area(GeohashCell(place, precision: 6)))])
    }
    stand(64)  // so that no snapshot is kept
    bench.advance(seconds: 1.1)
    bench.settle(watchers)
    let before = Set(watchers[0].map.drivers.keys)
    #expect(before.count == 9)
    func shown() -> [[Identifier]] {
      bench.turn(watchers[0].fallBehind()).all.compactMap { output in
        guard case .areaSnapshot(_, _, let parts) = output, case .areaUpdate(let update)? = parts.first?.body
        else { return nil }
        return update.drivers.map(\.driverID)
      }
    }
    #expect(shown().isEmpty, "a snapshot is begun under the old names")
    bench.advance(seconds: 1)
    var (seen, turns, isRenaming) = ([[Identifier]](), 0, true)
    while isRenaming {
      seen += shown()
      isRenaming = bench.hub.areas.renamed != nil
      turns += 1
    }
    #expect(turns > 4)
    for _ in 0..<100 where seen.isEmpty { seen += shown() }
    #expect(!seen.isEmpty && seen.allSatisfy { $0.count == 9 && before.isDisjoint(with: $0) })
  }

  @Test("Riders see neither when a fix was measured nor heading and speed, and nothing of a fix within the same field")
  func nothingOfTheFix() {
    let bench = HubBench()
    bench.advance(seconds: 0.37)
    let drivers = (0..<3).map { bench.connect("D\($0)", slot: UInt32($0)) }
    func fixes(_ place: Coordinate) -> [HubInput] {
      drivers.enumerated().map {
        bench.fix($1, at: place, accuracy: 3, speed: 9, heading: 45, milliseconds: bench.clock - 100 * Int64($0))
      }
    }
    let middle = PublicGrid.snapped(at(52.52, 13.405))
    bench.turn(fixes(middle))
    let watcher = bench.map(.rider, .area(GeohashCell(middle, precision: 6)))
    bench.advance(seconds: 1)
    bench.settle([watcher], fixes(middle.destination(bearingDegrees: 45, distanceMeters: 2)))
    #expect(watcher.updates.count == 1, "they are where they were")
    for _ in 0..<4 {
      bench.advance(seconds: 1)
      bench.settle([watcher], fixes(middle.destination(bearingDegrees: 45, distanceMeters: 40)))
    }
    #expect(watcher.updates.count > 1)
    for update in watcher.updates {
      #expect(Set(update.drivers.map(\.timestamp)).count <= 1)
      #expect(update.drivers.allSatisfy { $0.timestamp.milliseconds % 1000 == 0 })
      #expect(update.drivers.allSatisfy { $0.heading == nil && $0.speed == nil })
    }
  }

  @Test("A crowded cell shows the same hundred to riders, and says how many more there are")
  func crowd() {
    let bench = HubBench()
    var sessions: [SessionRef] = []
    for driver in 0..<130 {
      sessions.append(bench.connect("D\(driver)", slot: UInt32(driver)))
      bench.turn(bench.fix(sessions[driver]))
    }
    let watcher = bench.map(.rider, .area(GeohashCell(at(52.52, 13.405), precision: 5)))
    let shown = Set(watcher.map.drivers.keys)
    #expect(shown.count == 100 && watcher.updates.last?.more == 30)
    bench.advance(seconds: 1)
    bench.settle([watcher], sessions.map { bench.fix($0, milliseconds: bench.clock) })
    #expect(Set(watcher.map.drivers.keys) == shown, "moving changes nothing")
    // One of those shown goes, and another is shown instead; when it comes back, so does the order.
    let end = bench.hub.drivers.endIndex
    let gone = (0..<end).first { shown.contains(PublicAudience.name(bench.hub.areas.area(of: UInt32($0)).pseudonym)) }!
    for status in [DriverStatus.unavailable, .available] {
      bench.advance(seconds: 1)
      bench.settle(
        [watcher], [.driverStatus(sessions[gone], bench.freshMessage(), DriverStatusReport(status: status))])
      #expect(watcher.map.drivers.count == 100)
      #expect((Set(watcher.map.drivers.keys) == shown) == (status == .available))
    }
  }

  @Test("The last watcher leaves nothing behind, and the table of cells has a limit")
  func limits() {
    var limits = HubLimits.roomy
    limits.areas = 3
    let bench = HubBench(limits: limits)
    let driver = bench.connect("D1")
    bench.turn(bench.fix(driver))
    let first = bench.map(.ops, .area(GeohashCell(at(52.52, 13.405), precision: 5)))
    let second = bench.map(.ops, .nearby(at(52.52, 13.405), radiusMeters: 5000), slot: 101)
    #expect(second.refusals.map(\.code) == [.rateLimited], "that takes more than two cells")
    let watched = bench.hub.areas.cells.count - bench.hub.areas.ending.count
    #expect(watched == 1 && bench.hub.channels.count == 1, "what was taken is given back")
    bench.settle([first], first.handles.keys.map { .released(outlet: 0, $0) })
    bench.advance(seconds: 2)
    bench.settle([])
    #expect(bench.hub.areas.cells.count == 0 && bench.hub.channels.count == 0)
    #expect(bench.hub.areas.area(of: 0).first == DriverArea.none && bench.hub.nextAreaTick == .max)
  }

  @Test("Cells that are left while their drivers are looked up leave nothing behind, and hold up none that come later")
  func leftEarly() {
    var limits = HubLimits.roomy
    limits.areaDriversPerTurn = 5
    let bench = HubBench(limits: limits)
    for driver in 0..<60 { bench.turn(bench.fix(bench.connect("D\(driver)", slot: UInt32(driver)))) }
    func cell(_ precision: Int) -> Channel { .area(GeohashCell(at(52.52, 13.405), precision: precision)) }
    let watchers = (3...7).map { precision in
      let watcher = AreaWatcher(.ops, slot: 900 + UInt32(precision))
      _ = watcher.look(at: bench.turn(watcher.ask(cell(precision))))
      return watcher
    }
    #expect(bench.hub.areas.filling.count == 5)
    for watcher in watchers[1...] {
      bench.turn(watcher.handles.keys.map { .released(outlet: 0, $0) })
      #expect(bench.hub.areas.filling.count <= 5)
    }
    let late = AreaWatcher(.ops, slot: 950)
    bench.settle([late], [late.ask(cell(5))])
    #expect(late.map.drivers.count == 60)
    bench.settle([], (Array(watchers[0].handles.keys) + Array(late.handles.keys)).map { .released(outlet: 0, $0) })
    bench.advance(seconds: 2)
    bench.settle([])
    #expect(bench.hub.areas.cells.count == 0 && bench.hub.areas.overInFilling == 0)
    #expect(bench.hub.nextAreaTick == .max)
  }

  @Test("A place and the middle of its field are in the same cell of 8 characters, and some 20 m apart at most")
  func grid() {
    var random = SplitMix64(seed: 4)
    for _ in 0..<2000 {
      let place = at(random.fraction() * 180 - 90, random.fraction() * 360 - 180)
      let rounded = PublicGrid.snapped(place)
      #expect(GeohashCell(place, precision: 8) == GeohashCell(rounded, precision: 8))
      #expect(place.distance(to: rounded) < 18)
      #expect(PublicGrid.snapped(rounded) == rounded)
    }
  }
}
