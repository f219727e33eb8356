// What the hub does not believe, and that it does not refuse a driver for ever.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubPlausibilityTests {
  private let start = at(52.5, 13.4)
  private func east(_ meters: Double) -> Coordinate {
    LocalPlane(origin: at(52.5, 13.4)).coordinate(eastMeters: meters, northMeters: 0)
  }

  /// A hub with a driver that has driven east at 10 m/s for 30 s.
  private func driving(_ limits: HubLimits = .roomy) -> (HubBench, SessionRef) {
    let bench = HubBench(limits: limits)
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    for step in 0..<30 {
      bench.pass(seconds: 1)
      bench.turn(bench.fix(session, at: east(Double(step) * 10), speed: 10, heading: 90))
    }
    bench.pass(seconds: 1)
    return (bench, session)
  }

  @Test("an accuracy over the limit is refused, at the limit it is taken", arguments: [40.0, 100, 500])
  func accuracy(limit: Double) {
    var limits = HubLimits.roomy
    limits.tracking.maximumAccuracyMeters = limit
    let (bench, session) = driving(limits)
    let refused = bench.turn(bench.fix(session, at: east(300), accuracy: limit + 0.1))
    #expect(refused.codes == [.implausibleLocation] && refused.positions.isEmpty)
    #expect(bench.hub.counters.fixesRefused[Int(Tracker.Refusal.inaccurate.rawValue)] == 1)
    bench.pass(seconds: 1)
    #expect(bench.turn(bench.fix(session, at: east(310), accuracy: limit)).positions.count == 1)
  }

  @Test("0, 0 is no place, nor is what is that to four digits", arguments: [0, 1e-12, -0.000_04])
  func nullIsland(degrees: Double) {
    let (bench, session) = driving()
    let turn = bench.turn(bench.fix(session, at: at(degrees, -degrees)))
    #expect(turn.codes == [.implausibleLocation] && turn.positions.isEmpty)
    #expect(bench.hub.counters.fixesRefused[Int(Tracker.Refusal.nullIsland.rawValue)] == 1)
    let fresh = HubBench()
    let other = fresh.connect("e")
    fresh.turn(fresh.subscribe(fresh.driver("e")))
    #expect(fresh.turn(fresh.fix(other, at: at(0.0001, 0))).positions.count == 1, "11 m off one may be")
  }

  @Test("a speed that no vehicle has is taken as none and counted; the place counts all the same")
  func wildSpeed() {
    let (bench, session) = driving()
    let turn = bench.turn(bench.fix(session, at: east(300), speed: 90.5, heading: 270))
    #expect(turn.positions.count == 1 && turn.errors.isEmpty)
    #expect((turn.positions.first?.speed ?? 0) < 15)
    #expect(bench.hub.counters.speedsIgnored == 1)
    bench.pass(seconds: 1)
    bench.turn(bench.fix(session, at: east(310), speed: 89, heading: 90))
    #expect(bench.hub.counters.speedsIgnored == 1)
  }

  @Test("nobody is shown a teleport, and the driver continues from where it was", arguments: [300.0, 5000, 2_000_000])
  func teleport(meters: Double) {
    let (bench, session) = driving()
    let turn = bench.turn(bench.fix(session, at: east(300 + meters), speed: 10, heading: 90))
    // Refused, or taken for its time only.
    #expect(turn.codes == [.implausibleLocation] || turn.positions.count == 1)
    for position in turn.positions { #expect(position.coordinate.distance(to: east(300)) < 20) }
    bench.pass(seconds: 1)
    let back = bench.turn(bench.fix(session, at: east(310), speed: 10, heading: 90))
    #expect(back.positions.count == 1)
    #expect((back.positions.first?.coordinate.distance(to: east(310)) ?? .infinity) < 10)
  }

  @Test(
    "a driver who really is elsewhere is believed after 20 s, however seldom it sends",
    arguments: [1.0, 2, 4, 8, 30], [300.0, 5000, 800_000])
  func reacquired(interval: Double, meters: Double) {
    let (bench, session) = driving()
    let moved = bench.uptime
    var driven = 300 + meters
    while bench.uptime - moved < 200_000_000_000 {
      let turn = bench.turn(bench.fix(session, at: east(driven), speed: 10, heading: 90))
      if let position = turn.positions.first, position.coordinate.distance(to: east(driven)) < 100 { break }
      bench.pass(seconds: interval)
      driven += 10 * interval
    }
    let seconds = Double(bench.uptime - moved) / 1e9
    #expect(seconds <= 20 + interval, "after \(seconds) s")
  }

  @Test("every fix ends in exactly one counter, whatever it is", arguments: 1...4 as ClosedRange<UInt64>)
  func accounting(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let (bench, session) = driving()
    for _ in 0..<500 {
      bench.pass(seconds: 1)
      let place =
        Int.random(in: 0..<5, using: &random) == 0 ? at(Double.random(in: -80...80, using: &random), 7) : start
      bench.turn(
        bench.fix(
          session, at: Int.random(in: 0..<9, using: &random) == 0 ? at(0, 0) : place,
          accuracy: Double.random(in: 1...130, using: &random), speed: Double.random(in: 0...120, using: &random),
          milliseconds: bench.clock + Int64.random(in: -5000...5000, using: &random)))
    }
    let counters = bench.hub.counters
    let ends =
      counters.fixesAccepted - counters.fixesReleased + counters.fixesHistory + counters.fixesDuplicate
      + counters.fixesHeld + counters.fixesRefused.reduce(0, +) + counters.fixesForbidden + counters.fixesOrphaned
      + counters.fixesUnreadable
    #expect(counters.fixesReceived == ends)
  }
}
