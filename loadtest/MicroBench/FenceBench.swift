// A hub with 10,000 fences over a city, or none, and a driver who drives through it: what fences cost a fix.

import Glibc
import HubBytes
import HubCore
import HubGeo
import HubMessages

struct FenceBench: ~Copyable {
  private static let center = Coordinate(clampingLatitude: 48.137, wrappingLongitude: 11.575)
  /// Metres: fences lie within this of the middle, 14 a square kilometre; most places have two or three.
  private static let cityMeters = 15_000.0
  private static let session = SessionRef(outlet: 0, slot: 0, generation: 1)

  private var hub: Hub
  private var inputs = HubInputs()
  private var outputs = HubOutputs()
  private let messageID: MessageID
  private var milliseconds: Int64 = 1_763_680_000_000
  private var second = 0

  init(fences count: Int) {
    guard let driver = Identifier("driver-17"), let messageID = MessageID("d17-123"), let epoch = InlineText("bench")
    else { preconditionFailure("the ids are right") }
    self.messageID = messageID
    let limits = HubLimits(
      drivers: 1000, trips: 1000, channels: 50_000, eventsPerChannel: 16, events: 100_000, queryHits: 10,
      queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 100, profiles: 100)
    hub = Hub(
      limits: limits, timings: HubTimings(), sampling: SamplingRules(), epoch: epoch, seed: 1, outlets: 1,
      now: Moment(uptime: 0, timestamp: Timestamp(milliseconds: milliseconds)))
    inputs.append(.driverConnecting(FenceBench.session, driver))
    var state: UInt64 = 1
    for number in 0..<count {
      let fence = FenceBench.fence(number, &state)
      inputs.append(.fences(FenceBench.session, .put(fence, FenceCovering(fence))))
    }
    turn()
  }

  /// Circles, squares and hexagons of 30 to 500 m.
  private static func fence(_ number: Int, _ state: inout UInt64) -> Fence {
    func random() -> Double {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Double(state >> 11) / 0x1p53
    }
    let place = center.destination(
      bearingDegrees: random() * 360, distanceMeters: cityMeters * random().squareRoot())
    let size = 30 + 470 * random() * random()
    guard let id = Identifier("fence-\(number)"), let circle = Circle(center: place, radiusMeters: size) else {
      preconditionFailure("the id and the circle are right")
    }
    guard number % 2 == 1 else { return Fence(id: id, shape: .area(.circle(circle))) }
    let corners = number % 4 == 1 ? 4 : 6
    var ring = (0..<corners).map {
      place.destination(bearingDegrees: Double($0) * 360 / Double(corners), distanceMeters: size)
    }
    ring.append(ring[0])
    do throws(MultiPolygonError) {
      return Fence(id: id, shape: .area(.polygons(try MultiPolygon([[ring]], limit: 10))))
    } catch {
      preconditionFailure("\(error)")
    }
  }

  private var now: Moment {
    Moment(
      uptime: (milliseconds - 1_763_680_000_000) * 1_000_000 + 1, timestamp: Timestamp(milliseconds: milliseconds))
  }

  private mutating func turn() {
    hub.handle(inputs, now: now)
    hub.endTurn()
    hub.drain(0, into: &outputs)
    outputs.removeAll()
    inputs.removeAll()
  }

  /// Drives round the city at 14 m/s, a fix a second, 8 km from its middle; never over the same place again for a day.
  private mutating func prepareFix() {
    milliseconds += 1000
    second += 1
    let direction = Double(second) * 14 / 8_000 * 180 / .pi
    let place = FenceBench.center.destination(
      bearingDegrees: direction.truncatingRemainder(dividingBy: 360),
      distanceMeters: 8_000 + Double(second % 86_400) * 0.05)
    let fix = Fix(
      coordinate: place, timestamp: Timestamp(milliseconds: milliseconds), accuracy: 5,
      heading: (direction + 90).truncatingRemainder(dividingBy: 360), speed: 14)
    inputs.append(
      common: FixInput(
        session: FenceBench.session, messageID: messageID, sent: now.timestamp, received: now,
        update: LocationUpdate(tripID: nil, fix: fix), tripIsGranted: false))
  }

  private mutating func takeFix() {
    prepareFix()
    turn()
  }

  /// What fences cost most fixes: each is timed by itself, in both cities in turn, and the median is reported.
  static func printMedians(fixes: Int) {
    var bare = FenceBench(fences: 0)
    var fenced = FenceBench(fences: 10_000)
    var times: (bare: [Int64], fenced: [Int64], quiet: [Int64]) = ([], [], [])
    for _ in 0..<fixes {
      times.bare.append(bare.timeFix().nanoseconds)
      let (nanoseconds, events) = fenced.timeFix()
      times.fenced.append(nanoseconds)
      if events == 0 { times.quiet.append(nanoseconds) }
    }
    func middle(_ times: [Int64]) -> Int64 { times.sorted()[times.count / 2] }
    let (without, with) = (middle(times.bare), middle(times.fenced))
    print("a fix in the city, at the median: \(without) ns, among 10,000 fences \(with) ns: \(with - without) ns more")
    let part = Double(times.quiet.count * 1000 / fixes) / 10
    print("\(part) % of the fixes make no event: \(middle(times.quiet) - without) ns more at their median")
    print("on average \((times.fenced.reduce(0, +) - times.bare.reduce(0, +)) / Int64(fixes)) ns more")
  }

  /// What it takes to cover the largest corridor: 1,000 places on 20 km of a winding road.
  static func printCovering() {
    let places = (0..<1000).map { number in
      center.destination(bearingDegrees: 70, distanceMeters: Double(number) * 20)
        .destination(bearingDegrees: 160, distanceMeters: 300 * sin(Double(number) / 25))
    }
    var best = Int64.max
    do {
      let route = try Route(points: places)
      guard let id = Identifier("road") else { preconditionFailure("it is an id") }
      let fence = Fence(id: id, shape: .area(.corridor(try Corridor(route, widthMeters: 60), route)))
      for _ in 0..<20 {
        let began = cpuNanoseconds()
        let covering = FenceCovering(fence)
        best = min(best, cpuNanoseconds() - began)
        precondition(covering == FenceCovering(fence))
      }
    } catch { preconditionFailure("\(error)") }
    print("covering a corridor of 1,000 places on 20 km: \(best / 1000) us")
  }

  private mutating func timeFix() -> (nanoseconds: Int64, events: UInt64) {
    let events = hub.counters.fenceEvents.reduce(0, +)
    prepareFix()
    let began = cpuNanoseconds()
    turn()
    return (cpuNanoseconds() - began, hub.counters.fenceEvents.reduce(0, +) - events)
  }

  /// Takes so many; gives how many events there were so far.
  mutating func takeFixes(_ calls: Int) -> UInt64 {
    for _ in 0..<calls { takeFix() }
    return hub.counters.fenceEvents.reduce(0, +)
  }
}
