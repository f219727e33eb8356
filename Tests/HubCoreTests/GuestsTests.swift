// Drivers of other hubs in this hub's areas: which word counts where two are known, and how many parts of the map are
// gone through at once.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct GuestsTests {
  private let cell = GeohashCell(at(52.52, 13.405), precision: 5)

  private func update(
    _ names: [String], at place: Coordinate, milliseconds: Int64, isFull: Bool = false, isOnline: Bool = true
  ) -> AreaUpdate {
    var update = AreaUpdate(
      cell: cell, tick: 1, isFull: isFull,
      drivers: names.map {
        AreaUpdate.Driver(
          driverID: id($0), coordinate: place, heading: nil, speed: nil, status: .available,
          timestamp: Timestamp(milliseconds: milliseconds))
      })
    var details = AreaUpdate.Details(tripID: nil, accuracy: 5, confidence: .high, vehicleType: nil)
    details.isOnline = isOnline
    update.details = names.map { _ in details }
    return update
  }

  private func bench() -> (HubBench, AreaWatcher) {
    let bench = HubBench(loops: 2)
    bench.hub.joinCluster(outlet: 1)
    return (bench, bench.map(.ops, .area(cell)))
  }

  private func tick(_ bench: HubBench, _ watcher: AreaWatcher) {
    for _ in 0..<2 {
      bench.advance(seconds: 1)
      bench.settle([watcher])
    }
  }

  @Test("Of a driver that this hub and another one know the newer fix is shown, once; and who is online before all")
  func newest() {
    let (bench, watcher) = bench()
    let session = bench.connect("D1", slot: 1)
    bench.turn(bench.fix(session, at: at(52.52, 13.405), milliseconds: bench.clock))
    let (now, far) = (bench.clock, at(52.521, 13.406))
    func shown() -> Coordinate? { watcher.map.drivers[id("D1")]?.driver.coordinate }
    tick(bench, watcher)
    let own = shown()
    #expect(own != nil && watcher.map.drivers.count == 1)
    bench.turn(.cluster(.area(update(["D1"], at: far, milliseconds: now - 5000), from: 3, endsSnapshot: false)))
    tick(bench, watcher)
    #expect(shown() == own)
    bench.turn(
      .cluster(.area(update(["D1"], at: far, milliseconds: now + 5000, isOnline: false), from: 3, endsSnapshot: false)))
    tick(bench, watcher)
    #expect(shown() == own, "a hub where it is offline does not know it better")
    bench.turn(.cluster(.area(update(["D1"], at: far, milliseconds: now + 5000), from: 3, endsSnapshot: false)))
    tick(bench, watcher)
    #expect(shown() == far && watcher.map.drivers.count == 1)
    // Yet another hub with an older word changes nothing, nor does it that it leaves there.
    var older = update(["D1"], at: at(52.519, 13.404), milliseconds: now + 1000)
    bench.turn(.cluster(.area(older, from: 4, endsSnapshot: false)))
    (older.left, older.drivers, older.details) = ([id("D1")], [], [])
    bench.turn(.cluster(.area(older, from: 4, endsSnapshot: false)))
    tick(bench, watcher)
    #expect(shown() == far)
    bench.turn(.cluster(.area(older, from: 3, endsSnapshot: false)))
    tick(bench, watcher)
    #expect(shown() == own && watcher.map.drivers.count == 1, "it left there, and is known here")
  }

  @Test("A driver of another hub that goes in the last second of an hour is gone once, and its name is not that before")
  func hour() {
    let (bench, _) = bench()
    let rider = bench.map(.rider, .area(cell), slot: 101)
    let place = at(52.52, 13.405)
    var received = update(["D1", "D2", "D3"], at: place, milliseconds: bench.clock)
    bench.turn(.cluster(.area(received, from: 3, endsSnapshot: false)))
    tick(bench, rider)
    #expect(rider.map.drivers.count == 3)
    let names = Set(rider.map.drivers.keys)
    bench.advance(seconds: Double(3_600_000 - bench.clock % 3_600_000) / 1000 - 0.5)
    bench.settle([rider])
    (received.left, received.drivers, received.details) = ([id("D1"), id("D3")], [], [])
    bench.turn(.cluster(.area(received, from: 3, endsSnapshot: false)))
    tick(bench, rider)
    #expect(rider.map.drivers.count == 1 && bench.hub.areas.guestCount == 1)
    #expect(names.isDisjoint(with: rider.map.drivers.keys))
  }

  @Test("A driver that comes to a hub which knows of no trip of it does not get the name back that riders knew before")
  func names() {
    let (bench, _) = bench()
    let rider = bench.map(.rider, .area(cell), slot: 101)
    let place = at(52.52, 13.405)
    func name() -> Identifier? { rider.map.drivers.keys.first }
    var received = update(["D1"], at: place, milliseconds: bench.clock)
    bench.turn(.cluster(.area(received, from: 3, endsSnapshot: false)))
    tick(bench, rider)
    let before = name()
    received.details[0].lastTripEnded = bench.clock
    bench.turn(.cluster(.area(received, from: 3, endsSnapshot: false)))
    tick(bench, rider)
    let after = name()
    #expect(before != nil && after != nil && before != after)
    received = update(["D1"], at: place, milliseconds: bench.clock)
    bench.turn(.cluster(.area(received, from: 4, endsSnapshot: false)))
    tick(bench, rider)
    #expect(name() == after && rider.map.drivers.count == 1)
  }

  @Test("Snapshots of cells that a hub sends at once do not end each other")
  func wholes() {
    let (bench, watcher) = bench()
    let (near, other) = (at(52.52, 13.405), GeohashCell(at(10, 10), precision: 5))
    bench.turn(
      .cluster(.area(update(["D1", "D2"], at: near, milliseconds: bench.clock), from: 3, endsSnapshot: false)))
    tick(bench, watcher)
    #expect(watcher.map.drivers.count == 2)
    var first = update(["D2"], at: near, milliseconds: bench.clock, isFull: true)
    bench.turn(.cluster(.area(first, from: 3, endsSnapshot: false)))
    let nothing = AreaUpdate(cell: other, tick: 0, isFull: true, drivers: [])
    bench.turn(.cluster(.area(nothing, from: 3, endsSnapshot: true)))
    first.isFull = false
    bench.turn(.cluster(.area(first, from: 3, endsSnapshot: true)))
    tick(bench, watcher)
    #expect(Set(watcher.map.drivers.keys) == [id("D2")])
  }

  @Test("Snapshots of cells that arrive faster than they are processed keep no more than their limit waiting")
  func sweeps() {
    let (bench, watcher) = bench()
    let place = at(52.52, 13.405)
    let now = bench.clock
    bench.turn(.cluster(.area(update(["D1", "D2"], at: place, milliseconds: now), from: 3, endsSnapshot: false)))
    tick(bench, watcher)
    #expect(watcher.map.drivers.count == 2)
    let whole = HubInput.cluster(
      .area(update(["D2"], at: place, milliseconds: now, isFull: true), from: 3, endsSnapshot: true))
    bench.hub.handle(Array(repeating: whole, count: HubLimits.guestSweeps + 500), now: bench.now)
    #expect(bench.hub.areas.guests.sweeps.count == HubLimits.guestSweeps)
    tick(bench, watcher)
    #expect(Set(watcher.map.drivers.keys) == [id("D2")])
    #expect(bench.hub.areas.guests.sweeps.isEmpty && bench.hub.areas.guestCount == 1)
  }
}
