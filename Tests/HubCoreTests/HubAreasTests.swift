// Live areas: what those who watch a part of the map are told, against what the hub knows.
import Bytes
import Geo
import Messages
import TestSupport
import Testing

@testable import HubCore

/// What one watcher's map shows, by the protocol's rules.
private struct WatchedMap {
  var drivers: [Identifier: (cell: GeohashCell, driver: AreaUpdate.Driver)] = [:]
  var cells: Set<GeohashCell> = []
  var whole: Set<GeohashCell> = []

  mutating func apply(_ update: AreaUpdate) {
    guard cells.contains(update.cell), update.isFull || whole.contains(update.cell) else { return }
    if update.isFull {
      whole.insert(update.cell)
      let named = Set(update.drivers.map(\.driverID))
      for (id, entry) in drivers where entry.cell == update.cell && !named.contains(id) { drivers[id] = nil }
    }
    for driver in update.drivers { drivers[driver.driverID] = (update.cell, driver) }
    for id in update.left where drivers[id]?.cell == update.cell { drivers[id] = nil }
  }
}

/// One watcher on the bench: asks for whole cells as a loop does.
private final class Watcher {
  let session: SessionRef
  let role: Role
  var map = WatchedMap()
  var handles: [ChannelHandle: GeohashCell] = [:]
  var updates: [AreaUpdate] = []
  var refusals: [ErrorReply] = []

  init(_ role: Role, slot: UInt32) {
    self.role = role
    session = SessionRef(loop: 0, slot: slot, generation: 1)
  }

  func ask(_ channel: Channel, view: String? = nil) -> HubInput {
    .subscribe(
      SubscribeInput(
        session: session, actor: Actor(role: role, id: id("w")), messageID: message("ask"),
        request: Subscribe(channel: channel, viewID: view.map { InlineText($0)! }), grant: .granted))
  }

  /// Takes in what came, and gives what a loop would ask for.
  func look(at turn: Turn) -> [HubInput] {
    var inputs: [HubInput] = []
    for output in turn.all {
      switch output {
      case .watching(session, let answer, let cells):
        let asked = Dictionary(uniqueKeysWithValues: zip(cells, answer.cells!))
        let new = cells.filter { handles[$0] == nil }
        for cell in cells where handles[cell] != nil { inputs.append(.released(loop: 0, cell)) }
        for (handle, cell) in handles where asked[handle] == nil {
          inputs.append(.released(loop: 0, handle))
          for (id, entry) in map.drivers where entry.cell == cell { map.drivers[id] = nil }
          map.whole.remove(cell)
        }
        handles = asked
        map.cells = Set(asked.values)
        inputs.append(.wholeAreas(session, new))
      case .wholeArea(session, let handle, let publication):
        guard handles[handle] != nil, case .areaUpdate(let update) = publication.body else { continue }
        updates.append(update)
        map.apply(update)
      case .areaUpdate(let handle, let publication):
        guard handles[handle] != nil, case .areaUpdate(let update) = publication.body else { continue }
        updates.append(update)
        map.apply(update)
      case .subscriptionRefused(session, let error): refusals.append(error)
      default: break
      }
    }
    return inputs
  }
}

extension SplitMix64 {
  /// 0 ..< 1.
  fileprivate mutating func fraction() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }
}

@Suite struct HubAreasTests {
  /// Gives the hub turns until it has nothing more to do at this moment.
  private func settle(_ bench: HubBench, _ watchers: [Watcher], _ inputs: [HubInput] = []) {
    var inputs = inputs
    repeat {
      let turn = bench.turn(inputs)
      inputs = watchers.flatMap { $0.look(at: turn) }
    } while bench.hub.hasMoreDue || !inputs.isEmpty
  }

  /// What a watcher's map should show, by brute force over all drivers.
  private func truth(_ bench: HubBench, _ watcher: Watcher) -> [Identifier: Coordinate] {
    var shown: [Identifier: Coordinate] = [:]
    for driver in 0..<bench.hub.drivers.endIndex {
      guard bench.hub.findDriver(bench.hub.drivers[driver].id) == driver, !bench.hub.drivers[driver].isStale,
        let place = bench.hub.drivers[driver].position?.coordinate
      else { continue }
      let isOps = watcher.role == .ops
      guard isOps || bench.hub.drivers[driver].status == .available else { continue }
      let seen = isOps ? place : PublicGrid.snapped(place)
      guard watcher.map.cells.contains(where: { $0.contains(seen) }) else { continue }
      let name = isOps ? bench.hub.drivers[driver].id : PublicAudience.name(bench.hub.drivers[driver].pseudonym)
      shown[name] = seen
    }
    return shown
  }

  private func check(_ bench: HubBench, _ watchers: [Watcher], _ context: String) {
    for watcher in watchers {
      let expected = truth(bench, watcher)
      let seen = watcher.map.drivers.mapValues(\.driver.coordinate)
      #expect(seen == expected, "\(context), \(watcher.role.name)")
    }
  }

  @Test(
    "Whatever drivers and watchers do, a map shows after each tick what there is",
    arguments: 1...12 as ClosedRange<UInt64>)
  func oracle(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let bench = HubBench(timings: HubTimings(), seed: seed)
    let count = 40
    let center = at(52.52, 13.405)
    var places: [Coordinate] = []
    var sessions: [SessionRef] = []
    for driver in 0..<count {
      sessions.append(bench.connect("D\(driver)", slot: UInt32(driver)))
      places.append(
        at(center.latitude + random.fraction() * 0.02 - 0.01, center.longitude + random.fraction() * 0.03 - 0.015))
    }
    let watchers = (0..<4).map { Watcher($0 % 2 == 0 ? .rider : .ops, slot: UInt32(100 + $0)) }
    var trips = 0
    for second in 0..<90 {
      var inputs: [HubInput] = []
      for driver in 0..<count {
        switch random.next() % 20 {
        case 0..<12:
          places[driver] = at(
            places[driver].latitude + (random.fraction() - 0.5) * 4e-4,
            places[driver].longitude + (random.fraction() - 0.5) * 6e-4)
          inputs.append(bench.fix(sessions[driver], at: places[driver], accuracy: 3))
        case 12:
          let status = [DriverStatus.available, .available, .unavailable, .background][Int(random.next() % 4)]
          inputs.append(.driverStatus(sessions[driver], bench.freshMessage(), DriverStatusReport(status: status)))
        case 13 where second % 5 == 0:
          trips += 1
          inputs.append(bench.fix(sessions[driver], trip: "T\(trips)", at: places[driver], accuracy: 3))
        case 14: inputs.append(bench.move(.ops, "o", "T\(1 + random.next() % UInt64(trips + 1))", .cancelled))
        default: break
        }
      }
      for watcher in watchers where random.next() % 6 == 0 {
        let place = at(
          center.latitude + random.fraction() * 0.02 - 0.01, center.longitude + random.fraction() * 0.03 - 0.015)
        let precision = watcher.role == .ops ? 3 + Int(random.next() % 6) : 5 + Int(random.next() % 4)
        let channel: Channel =
          random.next() % 2 == 0
          ? .area(GeohashCell(place, precision: precision))
          : .nearby(place, radiusMeters: [40, 150, 400, 1000, 4000][Int(random.next() % 5)])
        inputs.append(watcher.ask(channel, view: "map"))
      }
      // Some before the tick, and the tick with the rest.
      let cut = inputs.isEmpty ? 0 : Int(random.next() % UInt64(inputs.count))
      settle(bench, watchers, Array(inputs[..<cut]))
      bench.advance(seconds: 0.5)
      settle(bench, watchers, Array(inputs[cut...]))
      bench.advance(seconds: second % 7 == 0 ? 2.2 : 0.5)
      // What came behind the beginning of a tick is in the next one: two of them, in a quiet moment.
      settle(bench, watchers)
      bench.advance(seconds: 1)
      settle(bench, watchers)
      check(bench, watchers, "seed \(seed), second \(second)")
    }
    #expect(watchers.allSatisfy { $0.updates.count > 20 }, "they saw something")
  }

  private func map(_ bench: HubBench, _ role: Role, _ channel: Channel, slot: UInt32 = 100) -> Watcher {
    let watcher = Watcher(role, slot: slot)
    settle(bench, [watcher], [watcher.ask(channel, view: "map")])
    return watcher
  }

  @Test("Who begins to watch gets all that is there at once, and then what moved, once a second")
  func beginning() {
    let bench = HubBench()
    let driver = bench.connect("D1")
    bench.turn(bench.fix(driver))
    let watcher = map(bench, .ops, .area(GeohashCell(at(52.52, 13.405), precision: 5)))
    #expect(watcher.updates.count == 1)
    #expect(watcher.updates.first?.isFull == true && watcher.updates.first?.drivers.map(\.driverID) == [id("D1")])
    bench.advance(seconds: 1)
    settle(bench, [watcher])
    #expect(watcher.updates.count == 1, "nothing moved")
    for _ in 0..<3 { settle(bench, [watcher], [bench.fix(driver, milliseconds: bench.clock + 1)]) }
    bench.advance(seconds: 1)
    settle(bench, [watcher], [bench.fix(driver, milliseconds: bench.clock + 10)])
    #expect(watcher.updates.count == 2)
    #expect(watcher.updates.last?.isFull == false && watcher.updates.last?.drivers.count == 1)
    #expect(watcher.updates.last!.tick > watcher.updates.first!.tick)
  }

  @Test("A move between two cells is in the same tick of both")
  func crossing() {
    let bench = HubBench()
    let driver = bench.connect("D1")
    // On both sides of the meridian of 13.359375, a border of cells of five characters and more.
    bench.turn(bench.fix(driver, at: at(52.52, 13.3590), accuracy: 3, speed: 20, heading: 90))
    let watcher = map(bench, .ops, .nearby(at(52.52, 13.359375), radiusMeters: 500))
    var crossed = false
    for step in 1...6 {
      bench.advance(seconds: 1)
      let place = at(52.52, 13.3590 + Double(step) * 0.0003)
      settle(bench, [watcher], [bench.fix(driver, at: place, accuracy: 3, speed: 20, heading: 90)])
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
    let watcher = map(bench, .rider, .nearby(at(52.52, 13.405), radiusMeters: 300))
    let shown = watcher.map.drivers.values.first?.driver
    #expect(shown != nil && shown?.driverID != id("D1") && shown?.coordinate != at(52.52, 13.405))
    #expect(shown!.coordinate.distance(to: at(52.52, 13.405)) < 20)
    bench.advance(seconds: 1)
    settle(bench, [watcher], [bench.fix(driver, trip: "T1", milliseconds: bench.clock)])
    #expect(watcher.map.drivers.isEmpty && watcher.updates.last?.left == [shown!.driverID], "it is on a trip")
    bench.advance(seconds: 1)
    settle(bench, [watcher], [bench.move(.ops, "o", "T1", .cancelled)])
    #expect(watcher.map.drivers.count == 1)
    #expect(watcher.map.drivers[shown!.driverID] == nil, "after a trip it has another name")
  }

  @Test("A name changes with the hour: the old one leaves and the new one comes in the same tick")
  func renaming() {
    let bench = HubBench()
    let driver = bench.connect("D1")
    bench.turn(bench.fix(driver))
    let watcher = map(bench, .rider, .nearby(at(52.52, 13.405), radiusMeters: 300))
    var names: Set<Identifier> = Set(watcher.map.drivers.keys)
    for _ in 0..<130 {
      bench.advance(seconds: 60)
      let before = Set(watcher.map.drivers.keys)
      let seen = watcher.updates.count
      settle(bench, [watcher], [bench.fix(driver, milliseconds: bench.clock)])
      #expect(watcher.map.drivers.count == 1)
      let after = Set(watcher.map.drivers.keys)
      names.formUnion(after)
      if before != after { #expect(watcher.updates[seen...].flatMap(\.left).map { $0 } == Array(before)) }
    }
    #expect((3...4).contains(names.count), "\(names.count) names in 2 h 10 min")
  }

  @Test("A crowded cell shows the same hundred to riders, and says how many more there are")
  func crowd() {
    let bench = HubBench()
    var sessions: [SessionRef] = []
    for driver in 0..<130 {
      sessions.append(bench.connect("D\(driver)", slot: UInt32(driver)))
      bench.turn(bench.fix(sessions[driver]))
    }
    let watcher = map(bench, .rider, .area(GeohashCell(at(52.52, 13.405), precision: 5)))
    let shown = Set(watcher.map.drivers.keys)
    #expect(shown.count == 100 && watcher.updates.last?.more == 30)
    bench.advance(seconds: 1)
    settle(bench, [watcher], sessions.map { bench.fix($0, milliseconds: bench.clock) })
    #expect(Set(watcher.map.drivers.keys) == shown, "moving changes nothing")
    // One of those shown goes, and another takes its place; when it comes back, so does the order.
    let place = bench.hub.drivers.endIndex
    let gone = (0..<place).first { shown.contains(PublicAudience.name(bench.hub.drivers[$0].pseudonym)) }!
    for status in [DriverStatus.unavailable, .available] {
      bench.advance(seconds: 1)
      settle(
        bench, [watcher], [.driverStatus(sessions[gone], bench.freshMessage(), DriverStatusReport(status: status))])
      #expect(watcher.map.drivers.count == 100)
      #expect((Set(watcher.map.drivers.keys) == shown) == (status == .available))
    }
  }

  @Test("Whoever comes and goes in a crowded cell, a map shows what somebody who looks now is shown")
  func crowdsThatChange() {
    let bench = HubBench()
    var random = SplitMix64(seed: 8)
    var sessions: [SessionRef] = []
    for driver in 0..<130 { sessions.append(bench.connect("D\(driver)", slot: UInt32(driver))) }
    let cell = Channel.area(GeohashCell(at(52.52, 13.405), precision: 6))
    let watcher = map(bench, .rider, cell)
    var most = 0
    for second in 0..<40 {
      // Nearly all are free in the first five of ten seconds, and half of them in the others.
      let free: UInt64 = second % 10 < 5 ? 19 : 10
      var inputs: [HubInput] = []
      for session in sessions where random.next() % 3 == 0 {
        let place = at(52.52 + random.fraction() * 1e-4, 13.405)
        inputs.append(bench.fix(session, at: place, milliseconds: bench.clock))
        let status = random.next() % 20 < free ? DriverStatus.available : .unavailable
        inputs.append(.driverStatus(session, bench.freshMessage(), DriverStatusReport(status: status)))
      }
      settle(bench, [watcher], inputs)
      for _ in 0..<2 {
        bench.advance(seconds: 1)
        settle(bench, [watcher])
      }
      let fresh = map(bench, .rider, cell, slot: 200 + UInt32(second))
      #expect(watcher.map.drivers.mapValues(\.driver) == fresh.map.drivers.mapValues(\.driver), "second \(second)")
      most = max(most, fresh.map.drivers.count + (fresh.updates.last?.more ?? 0))
    }
    #expect(most > 100, "\(most)")
  }

  @Test("The last watcher leaves nothing behind, and the table of cells has a limit")
  func limits() {
    var limits = HubLimits.roomy
    limits.areas = 3
    let bench = HubBench(limits: limits)
    let driver = bench.connect("D1")
    bench.turn(bench.fix(driver))
    let first = map(bench, .ops, .area(GeohashCell(at(52.52, 13.405), precision: 5)))
    let second = map(bench, .ops, .nearby(at(52.52, 13.405), radiusMeters: 5000), slot: 101)
    #expect(second.refusals.map(\.code) == [.rateLimited], "that takes more than two cells")
    #expect(bench.hub.areas.watchedCount == 1 && bench.hub.channels.count == 1, "what was taken is given back")
    settle(bench, [first], first.handles.keys.map { .released(loop: 0, $0) })
    bench.advance(seconds: 2)
    settle(bench, [])
    #expect(bench.hub.areas.cells.count == 0 && bench.hub.channels.count == 0)
    #expect(bench.hub.drivers[0].firstArea == AreaTable.none && bench.hub.nextAreaTick == .max)
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
