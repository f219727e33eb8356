// Live areas against brute force: at random, with as much as a turn can do at once and in slices of some drivers, so
// that a tick takes many turns and fixes, trips, names and watchers come and go between any two of them.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubAreaOracleTests {
  private static let center = at(52.52, 13.405)

  /// Drivers of a town, who drive about, take trips and come back from them, and are free or not.
  private struct Town {
    var random: SplitMix64
    let bench: HubBench
    var places: [Coordinate] = []
    var sessions: [SessionRef] = []
    var trips = 0

    init(seed: UInt64, drivers: Int, perTurn: Int) {
      random = SplitMix64(seed: seed)
      var limits = HubLimits.roomy
      limits.areaDriversPerTurn = perTurn
      bench = HubBench(limits: limits, timings: HubTimings(), seed: seed)
      for driver in 0..<drivers {
        sessions.append(bench.connect("D\(driver)", slot: UInt32(driver)))
        places.append(somewhere())
      }
    }

    mutating func somewhere() -> Coordinate {
      at(center.latitude + random.fraction() * 0.02 - 0.01, center.longitude + random.fraction() * 0.03 - 0.015)
    }

    /// What happens in a second.
    mutating func inputs(_ second: Int) -> [HubInput] {
      var inputs: [HubInput] = []
      for driver in sessions.indices {
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
      return inputs
    }

    /// Watchers look elsewhere, and now and then do not read what they are sent.
    mutating func inputs(of watchers: [AreaWatcher]) -> [HubInput] {
      var inputs: [HubInput] = []
      for watcher in watchers where random.next() % 6 == 0 {
        let precision = watcher.role == .ops ? 3 + Int(random.next() % 6) : 5 + Int(random.next() % 4)
        let place = somewhere()
        let channel: Channel =
          random.next() % 2 == 0
          ? .area(GeohashCell(place, precision: precision))
          : .nearby(place, radiusMeters: [40, 150, 400, 1000, 4000][Int(random.next() % 5)])
        inputs.append(watcher.ask(channel, view: "map"))
      }
      return inputs
    }
  }

  @Test(
    "Whatever drivers and watchers do, a map shows after each tick what there is",
    arguments: 1...12 as ClosedRange<UInt64>, [128, 7, 1])
  func oracle(seed: UInt64, perTurn: Int) {
    var town = Town(seed: seed, drivers: 40, perTurn: perTurn)
    let bench = town.bench
    let watchers = (0..<4).map { AreaWatcher($0 % 2 == 0 ? .rider : .ops, slot: UInt32(100 + $0)) }
    for second in 0..<(perTurn == 128 ? 90 : 40) {
      var inputs = town.inputs(second) + town.inputs(of: watchers)
      if perTurn < 128 { inputs.shuffle(using: &town.random) }
      // Some before the tick, and the tick with the rest: at once, or one after the other between its slices.
      let cut = inputs.isEmpty ? 0 : Int(town.random.next() % UInt64(inputs.count))
      bench.settle(watchers, Array(inputs[..<cut]))
      bench.advance(seconds: 0.5)
      bench.trickle(watchers, Array(inputs[cut...]), perTurn: perTurn == 128 ? inputs.count + 1 : 1)
      bench.advance(seconds: second % 7 == 0 ? 2.2 : 0.5)
      if perTurn < 128 { bench.trickle(watchers, town.inputs(second + 1), perTurn: 2) }
      if town.random.next() % 4 == 0 { bench.settle(watchers, watchers.map { $0.fallBehind() }) }
      // What came behind the beginning of a tick is in the next one: two of them, in a quiet moment.
      bench.settle(watchers)
      for _ in 0..<2 {
        bench.advance(seconds: 1)
        bench.settle(watchers)
      }
      bench.check(watchers, "seed \(seed), second \(second)")
    }
    #expect(watchers.allSatisfy { $0.updates.count > (perTurn == 128 ? 20 : 5) }, "they saw something")
    let seen = watchers.filter { $0.role == .rider }.flatMap(\.updates).flatMap(\.drivers)
    #expect(seen.allSatisfy { $0.status == .available }, "whatever happens before a driver is named")
  }

  @Test(
    "Whoever comes and goes in a crowded cell, a map shows what somebody who looks now is shown",
    arguments: [128, 5])
  func crowdsThatChange(perTurn: Int) {
    var limits = HubLimits.roomy
    limits.areaDriversPerTurn = perTurn
    let bench = HubBench(limits: limits)
    var random = SplitMix64(seed: 8)
    var sessions: [SessionRef] = []
    for driver in 0..<130 { sessions.append(bench.connect("D\(driver)", slot: UInt32(driver))) }
    let cell = Channel.area(GeohashCell(at(52.52, 13.405), precision: 6))
    let watcher = bench.map(.rider, cell)
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
      if second % 3 == 0 { inputs.insert(watcher.fallBehind(), at: inputs.count / 2) }
      bench.trickle([watcher], inputs, perTurn: perTurn)
      for _ in 0..<2 {
        bench.advance(seconds: 1)
        bench.settle([watcher])
      }
      let fresh = bench.map(.rider, cell, slot: 200 + UInt32(second))
      let (shown, now) = (watcher.map.drivers.mapValues(\.driver), fresh.map.drivers.mapValues(\.driver))
      #expect(shown.mapValues(\.coordinate) == now.mapValues(\.coordinate), "second \(second)")
      #expect(Set(now.values.map(\.timestamp)).count <= 1, "whoever looks now sees the last tick's time")
      most = max(most, fresh.map.drivers.count + (fresh.updates.last?.more ?? 0))
    }
    #expect(most > 100, "\(most)")
  }

  @Test("A crowd is looked at and named over as many turns as its drivers need, and its update is sent once")
  func slices() {
    var limits = HubLimits.roomy
    limits.areaDriversPerTurn = 16
    let bench = HubBench(limits: limits)
    let sessions = (0..<300).map { bench.connect("D\($0)", slot: UInt32($0)) }
    bench.turn(sessions.map { bench.fix($0) })
    let watcher = bench.map(.ops, .area(GeohashCell(at(52.52, 13.405), precision: 5)), slot: 900)
    #expect(watcher.map.drivers.count == 300 && watcher.updates.count == 1)
    bench.settle([watcher], sessions.map { bench.fix($0, milliseconds: bench.clock + 1) })
    bench.advance(seconds: 1)
    var turns = 0
    repeat {
      _ = watcher.look(at: bench.turn())
      turns += 1
    } while bench.hub.hasMoreDue
    #expect((600 / 16...600 / 8).contains(turns), "\(turns)")
    #expect(watcher.updates.count == 2 && watcher.updates.last?.drivers.count == 300)
  }

  @Test("Where more than a thousand leave a cell at once it is sent as a snapshot")
  func exodus() {
    var limits = HubLimits.roomy
    limits.drivers = 1200
    let bench = HubBench(limits: limits)
    for driver in 0..<1200 { bench.turn(bench.fix(bench.connect("D\(driver)", slot: UInt32(driver)))) }
    let watcher = bench.map(.ops, .area(GeohashCell(at(52.52, 13.405), precision: 5)), slot: 2000)
    #expect(watcher.map.drivers.count == 1200)
    // Nobody sends anything: they become stale in the turns of one second, and an hour later they go.
    for seconds in [200.0, 1, 3500, 1] {
      if seconds != 1 { #expect(watcher.map.drivers.count == 1200) }
      bench.advance(seconds: seconds)
      bench.settle([watcher])
    }
    #expect(watcher.map.drivers.isEmpty && watcher.updates.last?.isFull == true)
    #expect(watcher.updates.allSatisfy { $0.left.count <= AreaCell.publishedDepartures })
  }
}
