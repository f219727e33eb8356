// Whether riders can infer who became whom when drivers' names change: three crowds of 40, and an adversary that uses
// every field that it is shown (LinkingAdversary.swift). The same adversary on what ops see, with ids that it may not
// use, shows that it would find a link where there is one.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

/// Drivers who each have habits of their own: when they send, where they head, how fast they are.
private final class Crowd {
  static let size = 40
  /// Milliseconds between the fixes of a driver: of one who is followed, and of one who stands and was advised 120 s,
  /// with what its timer and its way to the hub add.
  static let often: Int64 = 4000
  static let seldom: Int64 = 120_200
  private var period = Crowd.often
  let bench: HubBench
  var random: SplitMix64
  let rider: AreaWatcher
  let ops: AreaWatcher
  private var sessions: [SessionRef] = []
  /// Milliseconds after each full period; degrees; metres a second.
  private var phases: [Int64] = []
  var headings: [Double] = []
  var speeds: [Double] = []
  var places: [Coordinate] = []
  private var drivers: [Identifier: Int] = [:]
  private var seen = (rider: 0, ops: 0)
  private static let center = PublicGrid.snapped(at(52.52, 13.405))

  /// - Parameter lead: seconds before a full hour.
  init(seed: UInt64, standing: Bool, lead: Double = 20, sampling: SamplingRules = .fixed(seconds: 4)) {
    bench = HubBench(seed: seed, sampling: sampling)
    random = SplitMix64(seed: seed)
    rider = AreaWatcher(.rider, slot: 900)
    ops = AreaWatcher(.ops, slot: 901)
    let hour: Int64 = 3_600_000
    bench.advance(seconds: Double(hour - bench.clock % hour) / 1000 - lead)
    for driver in 0..<Crowd.size {
      sessions.append(bench.connect("D\(driver)", slot: UInt32(driver)))
      phases.append(Int64.random(in: 0..<Crowd.often, using: &random))
      headings.append(.random(in: 0..<360, using: &random))
      speeds.append(standing ? .random(in: 0..<0.3, using: &random) : .random(in: 3..<15, using: &random))
      places.append(Crowd.center)
    }
    if !standing { scatter() }
  }

  /// Puts everybody somewhere else within a kilometre.
  func scatter() {
    for driver in places.indices {
      places[driver] = Crowd.center.destination(
        bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: .random(in: 0..<1000, using: &random))
    }
  }

  /// From now on all send as seldom as drivers who stand, each at moments of its own.
  func slowDown() {
    period = Crowd.seldom
    for driver in phases.indices { phases[driver] = .random(in: 0..<period, using: &random) }
  }

  func watch() {
    let channel = Channel.nearby(Crowd.center, radiusMeters: 3000)
    bench.settle([rider, ops], [rider.ask(channel), ops.ask(channel)])
  }

  /// Drives on, each driver sending at its own moments, and gives what was seen meanwhile.
  func run(
    seconds: Int, trips: Bool = false, behind: (rider: Sightings, ops: Sightings) = (Sightings(), Sightings())
  ) -> (rider: Sightings, ops: Sightings) {
    var sightings = behind
    let start = bench.clock
    for step in 0..<seconds * 20 {
      let due = places.indices.filter { (start + Int64(step) * 50 - phases[$0]) % period / 50 == 0 }
      let inputs = due.map { driver in
        places[driver] = places[driver].destination(
          bearingDegrees: headings[driver], distanceMeters: speeds[driver] >= 1 ? speeds[driver] * 4 : 0)
        let moment = bench.clock - 3 + (phases[driver] - start % 50) % 50
        return bench.fix(
          sessions[driver], trip: trips ? "T\(driver)" : nil, at: places[driver], accuracy: 4, speed: speeds[driver],
          heading: headings[driver], milliseconds: moment, sent: moment)
      }
      bench.settle([rider, ops], inputs)
      if period == Crowd.seldom {
        if step % 2 == 0 { ask(&sightings, limit: Crowd.size) }
      } else if step % 23 == 0 {
        ask(&sightings, limit: .random(in: 1...Crowd.size, using: &random))
      }
      note(&sightings)
      bench.advance(seconds: 0.05)
    }
    return sightings
  }

  private func note(_ sightings: inout (rider: Sightings, ops: Sightings)) {
    for update in rider.updates[seen.rider...] { sightings.rider.see(update) }
    for update in ops.updates[seen.ops...] { sightings.ops.see(update) }
    seen = (rider.updates.count, ops.updates.count)
    for driver in 0..<bench.hub.drivers.endIndex {
      drivers[PublicAudience.name(bench.hub.areas.area(of: UInt32(driver)).pseudonym)] = driver
      drivers[bench.hub.drivers[driver].id] = driver
    }
  }

  private func ask(_ sightings: inout (rider: Sightings, ops: Sightings), limit: Int) {
    for audience in [Audience.riders, .ops] {
      let search = DriverSearch(area: .nearby(Crowd.center, radiusMeters: 4000), limit: limit)
      guard let list = bench.ask(search, for: audience) else { continue }
      switch audience {
      case .riders: sightings.rider.see(list, limit: limit, now: bench.clock)
      case .ops: sightings.ops.see(list, limit: limit, now: bench.clock)
      }
    }
  }

  /// Lets a tick pass, and gives what it shows.
  @discardableResult
  func pass() -> (rider: Sightings, ops: Sightings) {
    bench.advance(seconds: 1)
    bench.settle([rider, ops])
    var sightings = (rider: Sightings(), ops: Sightings())
    note(&sightings)
    return sightings
  }

  /// Looks once: at all cells, and at the answers to queries with every limit.
  func look() -> (rider: Sightings, ops: Sightings) {
    pass()
    var sightings = (rider: Sightings(), ops: Sightings())
    bench.settle([rider, ops], [rider.fallBehind(), ops.fallBehind()])
    note(&sightings)
    for limit in 1...Crowd.size { ask(&sightings, limit: limit) }
    return sightings
  }

  func endTrips() {
    bench.settle([rider, ops], places.indices.map { bench.move(.ops, "o", "T\($0)", .cancelled) })
  }

  func driver(_ name: Identifier) -> Int? { drivers[name] }
}

@Suite struct LinkingTests {
  private static let seeds: ClosedRange<UInt64> = 1...24

  /// The share of drivers that are linked by each trait, over all seeds.
  private func rates(
    _ seeds: ClosedRange<UInt64> = seeds,
    _ scene: (UInt64) -> (Crowd, before: (rider: Sightings, ops: Sightings), after: (rider: Sightings, ops: Sightings))
  ) -> (rider: [String: Double], ops: [String: Double]) {
    var counts = (rider: [String: Int](), ops: [String: Int]())
    for seed in seeds {
      var random = SplitMix64(seed: seed &* 7919)
      let (crowd, before, after) = scene(seed)
      #expect(before.rider.names.count == Crowd.size && after.rider.names.count == Crowd.size)
      #expect(Set(before.rider.names.keys).isDisjoint(with: after.rider.names.keys), "all names have changed")
      let linked = LinkingAdversary.linked(before.rider, after.rider, random: &random) { crowd.driver($0) }
      counts.rider.merge(linked, uniquingKeysWith: +)
      counts.ops.merge(
        LinkingAdversary.linked(before.ops, after.ops, random: &random) { crowd.driver($0) }, uniquingKeysWith: +)
    }
    let all = Double(Crowd.size * seeds.count)
    return (counts.rider.mapValues { Double($0) / all }, counts.ops.mapValues { Double($0) / all })
  }

  @Test("Of 40 drivers who stand together nobody can be followed over the change of names, by whatever riders see")
  func standing() {
    let rates = rates { seed in
      let crowd = Crowd(seed: seed, standing: true)
      crowd.bench.advance(seconds: 2)
      _ = crowd.run(seconds: 5)
      crowd.watch()
      let before = crowd.run(seconds: 12)
      return (crowd, before, crowd.run(seconds: 12, behind: crowd.pass()))
    }
    for (trait, rate) in rates.rider { #expect(rate <= 0.05, "\(trait): \(rate)") }
    #expect(rates.ops["area time mod 1000.0 ms"] ?? 0 > 0.9, "the adversary links where it is shown the time")
    #expect(rates.ops["answer time mod 4000.0 ms"] ?? 0 > 0.5, "and the age")
  }

  @Test("Of 40 drivers who stand together and send every two minutes nobody can be followed by when it sends")
  func seldom() {
    let rates = rates(1...3) { seed in
      let crowd = Crowd(seed: seed, standing: true, lead: 277, sampling: SamplingRules())
      crowd.bench.advance(seconds: 2)
      _ = crowd.run(seconds: 30)
      crowd.slowDown()
      _ = crowd.run(seconds: 122)
      crowd.watch()
      let before = crowd.run(seconds: 122)
      return (crowd, before, crowd.run(seconds: 122, behind: crowd.pass()))
    }
    for (trait, rate) in rates.rider { #expect(rate <= 0.1, "\(trait): \(rate)") }
    #expect(rates.ops["answer time mod 120200.0 ms"] ?? 0 > 0.9, "the adversary links where it is shown the age")
  }

  @Test("Of 40 drivers who come back from trips nobody can be known again by its habits, whatever riders see")
  func driving() {
    let rates = rates { seed in
      let crowd = Crowd(seed: seed, standing: false)
      _ = crowd.run(seconds: 5)
      crowd.watch()
      let before = crowd.look()
      _ = crowd.run(seconds: 5, trips: true)
      crowd.bench.advance(seconds: 400)
      crowd.scatter()
      _ = crowd.run(seconds: 25, trips: true)
      crowd.endTrips()
      _ = crowd.run(seconds: 5)
      return (crowd, before, crowd.look())
    }
    for (trait, rate) in rates.rider { #expect(rate <= 0.05, "\(trait): \(rate)") }
    for trait in ["area time mod 1000.0 ms", "heading", "speed", "all traits"] {
      #expect(rates.ops[trait] ?? 0 > 0.5, "the adversary links by what ops see: \(trait), \(rates.ops[trait] ?? 0)")
    }
  }
}
