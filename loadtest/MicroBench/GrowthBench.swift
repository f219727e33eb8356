// What a message costs the hub as everything round it grows: a fix and a move of the index by how many drivers there
// are, a position's publication by how many channels.
//
// The table is in nanoseconds of CPU, all drivers in turn at random, so that what grows with it is mostly memory that
// is not in cache. Instructions are the other half of it: `loadtest/growth.sh`, by callgrind, which counts `step`
// alone.

import Glibc
import HubBytes
import HubCore
import HubGeo
import HubMessages

enum GrowthBench {
  enum Piece: String, CaseIterable {
    /// Among so many drivers.
    case fix, move
    /// On one of so many channels that somebody follows, of 100,000 drivers.
    case publish

    var sizes: [Int] {
      switch self {
      case .fix, .move: [1_000, 10_000, 100_000, 1_000_000]
      case .publish: [1, 10, 100, 1_000, 10_000, 100_000]
      }
    }
  }

  private static let batches = 400
  private static let callsPerBatch = 250

  static func printTable() {
    for piece in Piece.allCases {
      for size in piece.sizes {
        let name = "\(piece.rawValue) \(size)"
        switch piece {
        case .fix:
          var growing = GrowingHub(drivers: size, followed: 0, active: size)
          print(name, median { growing.step($0) }, "ns")
        case .move:
          var growing = GrowingIndex(drivers: size)
          print(name, median { growing.step($0) }, "ns")
        case .publish:
          var growing = GrowingHub(drivers: 100_000, followed: size, active: size)
          print(name, median { growing.step($0) }, "ns")
        }
      }
    }
  }

  /// A call's time: of many small batches the one in the middle.
  private static func median(_ step: (Int) -> Void) -> Int64 {
    step(callsPerBatch * 10)  // warm
    let times = (0..<batches).map { _ in
      let began = cpuNanoseconds()
      step(callsPerBatch)
      return (cpuNanoseconds() - began) / Int64(callsPerBatch)
    }
    return times.sorted()[batches / 2]
  }

  /// For callgrind: the same thousand drivers in turn, whatever the size, so that each has had as many fixes.
  static func run(_ piece: Piece, size: Int, calls: Int) {
    switch piece {
    case .fix:
      var growing = GrowingHub(drivers: size, followed: 0, active: min(size, 1000))
      growing.step(calls)
    case .move:
      var growing = GrowingIndex(drivers: size)
      growing.step(calls)
    case .publish:
      var growing = GrowingHub(drivers: 100_000, followed: size, active: min(size, 1000))
      growing.step(calls)
    }
  }
}

/// Numbers that look random, the same ones each run; a linear congruence (Knuth, MMIX).
private struct Chance {
  private var state: UInt64 = 1

  /// 0 ..< 1.
  mutating func next() -> Double {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Double(state >> 11) * 0x1p-53
  }

  /// In a city that is as dense as 100,000 within 8.5 km, however large.
  mutating func place(among drivers: Int) -> Coordinate {
    let radius = 8_450 * (Double(drivers) / 100_000).squareRoot()
    return Coordinate(clampingLatitude: 41.15, wrappingLongitude: -8.1)
      .destination(bearingDegrees: next() * 360, distanceMeters: radius * next().squareRoot())
  }
}

/// A hub with drivers who go north at 11 m/s, a fix a second each, a fix a turn.
struct GrowingHub: ~Copyable {
  private var hub: Hub
  private var inputs = HubInputs()
  private var outputs = HubOutputs()
  private let message: MessageID
  private var chance = Chance()
  private var places: [Coordinate] = []
  private var seconds: [Int32]
  /// Numbers of the drivers that send, far from each other.
  private let active: [Int32]
  private var uptime: Int64 = 0

  init(drivers: Int, followed: Int, active count: Int) {
    guard let message = MessageID("m"), let epoch = InlineText("bench") else { preconditionFailure("short texts") }
    self.message = message
    let limits = HubLimits(
      drivers: drivers, trips: 1000, channels: followed + 1, eventsPerChannel: 16, events: 1000, queryHits: 1000,
      queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 1000, profiles: 1000)
    hub = Hub(
      limits: limits, timings: HubTimings(), sampling: .fixed(seconds: 4), epoch: epoch, seed: 1, outlets: 1,
      now: Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_763_680_000_000)))
    seconds = Array(repeating: 0, count: drivers)
    active = (0..<count).map { Int32($0 * (followed > 0 ? followed : drivers) / count) }
    for number in 0..<drivers {
      guard let id = Identifier("driver-\(number)") else { preconditionFailure("it is an id") }
      places.append(chance.place(among: drivers))
      inputs.append(.driverConnecting(session(number), id))
      if number < followed {
        inputs.append(
          .subscribe(
            SubscribeInput(
              session: SessionRef(outlet: 0, slot: UInt32(drivers), generation: 1),
              actor: Actor(role: .ops, id: id), messageID: message, request: Subscribe(channel: .driver(id)),
              grant: .granted)))
      }
      send(number)
      if number % 64 == 63 || number == drivers - 1 { turn() }
    }
    // Each filter's first steps differ from those that follow.
    for _ in 0..<3 {
      for number in self.active {
        send(Int(number))
        turn()
      }
    }
  }

  private func session(_ number: Int) -> SessionRef { SessionRef(outlet: 0, slot: UInt32(number), generation: 1) }

  /// Each driver's fixes are a second apart by its own clock, whatever the hub's, so that nobody is stale in between.
  private mutating func send(_ number: Int) {
    seconds[number] += 1
    let place = places[number]
    let fix = Fix(
      coordinate: Coordinate(
        clampingLatitude: place.latitude + Double(seconds[number]) * 1e-4, wrappingLongitude: place.longitude),
      timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(seconds[number]) * 1000), accuracy: 5, heading: 0,
      speed: 11.1)
    inputs.append(
      common: FixInput(
        session: session(number), messageID: message, sent: fix.timestamp, received: now,
        update: LocationUpdate(fix: fix), tripIsGranted: false))
  }

  private var now: Moment { Moment(uptime: uptime, timestamp: Timestamp(milliseconds: 1_763_680_000_000)) }

  private mutating func turn() {
    uptime += 1000
    hub.handle(inputs, now: now)
    hub.endTurn()
    hub.drain(0, into: &outputs)
    inputs.removeAll()
  }

  /// So many fixes, each of another driver.
  @inline(never)
  mutating func step(_ calls: Int) {
    for _ in 0..<calls {
      send(Int(active[Int(chance.next() * Double(active.count))]))
      turn()
    }
  }
}

/// A driver index by itself.
struct GrowingIndex: ~Copyable {
  private var index: DriverIndex
  private var chance = Chance()
  private var places: [Coordinate] = []

  init(drivers: Int) {
    index = DriverIndex(capacity: drivers)
    places.reserveCapacity(drivers)
    for driver in 0..<drivers {
      places.append(chance.place(among: drivers))
      index.move(UInt32(driver), to: places[driver])
    }
  }

  /// So many drivers go some 15 m.
  @inline(never)
  mutating func step(_ calls: Int) {
    for _ in 0..<calls {
      let driver = Int(chance.next() * Double(places.count))
      places[driver] = Coordinate(
        clampingLatitude: places[driver].latitude + (chance.next() - 0.5) * 0.0003,
        wrappingLongitude: places[driver].longitude + (chance.next() - 0.5) * 0.0003)
      index.move(UInt32(driver), to: places[driver])
    }
  }
}
