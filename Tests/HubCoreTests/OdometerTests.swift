// The way of a trip: what counts, what does not, and what its end says.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

private let start = at(48.1, 11.5)

/// A published position, `east` and `north` metres from the start.
private func position(
  _ seconds: Double, _ east: Double, _ north: Double = 0, speed: Double? = 10, accuracy: Double = 5
) -> Position {
  Position(
    coordinate: LocalPlane(origin: start).coordinate(eastMeters: east, northMeters: north), speed: speed, heading: 90,
    accuracy: accuracy, confidence: .high, timestamp: .test(seconds))
}

private func meters(_ track: [Position]) -> Double {
  var odometer = Odometer()
  var previous: Position?
  for position in track {
    odometer.follow(position, after: previous, maximumSpeed: 90)
    previous = position
  }
  return odometer.meters
}

@Suite struct OdometerTests {
  @Test("a straight way is counted to 1 cm, however often it was measured", arguments: [0.1, 1, 4, 30])
  func straight(interval: Double) {
    let track = (0...Int(600 / interval)).map { position(Double($0) * interval, 20 * Double($0) * interval) }
    // Short of it by less than a step.
    #expect(abs(meters(track) - 12_000) < max(0.01 * 12_000 / 100, Odometer.stepMeters))
  }

  @Test("a way that is made up, half around the globe each day, is never longer than can be stored and read")
  func longest() {
    let track = (0...200).map {
      Position(
        coordinate: at(1, $0 % 2 == 0 ? 0 : 179.9), speed: nil, heading: nil, accuracy: 5, confidence: .high,
        timestamp: .test(Double($0) * 345_600))
    }
    #expect(meters(track) == Odometer.capMeters && Odometer.capMeters < 1e9)
  }

  @Test("a circle is counted to 1 %", arguments: [30.0, 200])
  func circle(radius: Double) {
    let turn = 2 * Double.pi
    let track = (0...100).map { step in
      let angle = turn * Double(step) / 100
      let place = SineCosine(degrees: angle * 180 / .pi)
      return position(Double(step), radius * place.sine, radius * place.cosine, speed: turn * radius / 100)
    }
    #expect(abs(meters(track) / (turn * radius) - 1) < 0.05 * (30 / radius) + 0.01)
  }

  @Test("who stands goes nowhere, whatever the position does; who drives on is counted from where it stood")
  func standing() {
    var random = SplitMix64(seed: 5)
    var track = (0...60).map { position(Double($0), 10 * Double($0)) }
    let before = meters(track)
    for second in 61...3600 {
      let off = random.normals() * 12
      track.append(position(Double(second), 600 + off.x, off.y, speed: Double.random(in: 0...0.99, using: &random)))
    }
    #expect(meters(track) == before)
    for second in 3601...3660 { track.append(position(Double(second), 600 + 10 * Double(second - 3600))) }
    #expect(abs(meters(track) - 1200) < Odometer.stepMeters)
  }

  @Test("without a speed a position counts only when it is further off than it may be wrong")
  func unknownSpeed() {
    var random = SplitMix64(seed: 6)
    let parked = (0...600).map { second -> Position in
      let off = random.normals() * 4
      return position(Double(second), off.x, off.y, speed: nil, accuracy: 25)
    }
    #expect(meters(parked) == 0)
    let drive = (0...600).map { position(Double($0), 12 * Double($0), speed: nil, accuracy: 25) }
    #expect(abs(meters(drive) - 7200) < 25)
  }

  @Test("creeping is counted once it is driving again")
  func creeping() {
    var track = (0...100).map { position(Double($0), 0.8 * Double($0), speed: 0.8) }
    #expect(meters(track) == 0)
    track.append(position(101, 82, speed: 2))
    #expect(abs(meters(track) - 82) < 0.1)
  }

  @Test("a correction of the track is no way; a gap is a straight line")
  func jumps() {
    var track = (0...10).map { position(Double($0), 10 * Double($0)) }
    track.append(position(11, 5000))
    track += (12...20).map { position(Double($0), 5000 + 10 * Double($0 - 11)) }
    #expect(abs(meters(track) - 190) < 0.1)
    track.append(position(140, 7090))  // a tunnel: 2 km in 120 s
    #expect(abs(meters(track) - 2190) < 1)
  }

  @Test("it is right across the antimeridian, and metres are those of the ellipsoid")
  func antimeridian() {
    var odometer = Odometer()
    for (seconds, longitude) in [(0.0, 179.9995), (4, -179.9995), (8, -179.9985)] {
      let next = Position(
        coordinate: Coordinate(latitude: 0, longitude: longitude)!, speed: 28, heading: 90, accuracy: 5,
        confidence: .high, timestamp: .test(seconds))
      odometer.follow(next, after: nil, maximumSpeed: 90)
    }
    #expect(abs(odometer.meters - 0.002 * 111_319.49) < 0.01)
  }

  @Test(
    "on a real drive the way is the true one's",
    arguments: ["phone_hwy_20200514_pixel4", "spp_mixed_20210428_pixel5_a"])
  func realDrive(name: String) throws {
    guard let trace = TruthTrace(name) else {
      print("skipped: ../shared/data/traces/\(name).csv is not there")
      return
    }
    var tracker = Tracker()
    var odometer = Odometer()
    var previous: Position?
    for fix in trace.fixes {
      guard let position = tracker.update(fix).position else { continue }
      odometer.follow(position, after: previous, maximumSpeed: 90)
      previous = position
    }
    var truth = 0.0
    for (from, to) in zip(trace.truth, trace.truth.dropFirst()) { truth += LocalPlane(origin: from).distance(to: to) }
    #expect(abs(odometer.meters / truth - 1) < 0.03, "\(odometer.meters) of \(truth)")
  }

  // MARK: In the hub

  /// Drives north at 20 m/s, a fix a second.
  private func drive(_ bench: HubBench, _ session: SessionRef, _ latitude: inout Double, trip: String?, seconds: Int) {
    for _ in 0..<seconds {
      bench.pass(seconds: 1)
      latitude += 20 / 111_195.0
      bench.turn(bench.fix(session, trip: trip, at: at(latitude, 11.5), speed: 20, heading: 0))
    }
  }

  @Test("the end of a trip says how far it was, from its start on and before it")
  func summary() throws {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")))
    let session = bench.connect("d")
    var latitude = 48.0
    bench.turn(bench.move(.ops, "o", "t", .requested, driver: "d"))
    drive(bench, session, &latitude, trip: nil, seconds: 20)
    bench.turn(bench.move(.driver, "d", "t", .accepted), bench.move(.driver, "d", "t", .driverEnRoute))
    drive(bench, session, &latitude, trip: "t", seconds: 31)
    bench.turn(bench.move(.driver, "d", "t", .arrivedPickup))
    let started = bench.turn(bench.move(.driver, "d", "t", .tripStarted))
    #expect(started.moves.allSatisfy { $0.summary == nil })
    drive(bench, session, &latitude, trip: "t", seconds: 100)
    bench.turn(bench.move(.driver, "d", "t", .arrivedDestination))
    drive(bench, session, &latitude, trip: "t", seconds: 50)
    let completed = bench.turn(bench.move(.driver, "d", "t", .completed))
    let summary = try #require(completed.moves.first?.summary)
    // On the ellipsoid a degree of latitude is 111,200 m here, and the filter takes a few metres to settle.
    #expect(abs(summary.distance - 2000) < 10)
    #expect(abs(summary.approach - 600) < 10, "what was not of the trip does not count")
    // The same to who comes later.
    let later = bench.turn(bench.subscribe(bench.trip("t"), since: 0))
    #expect(later.subscribed.first?.missed.compactMap(\.move).last?.summary == summary)
  }

  @Test("a trip that was cancelled before it started was approach only; one that nobody drove was nothing")
  func cancelled() throws {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")), bench.subscribe(bench.trip("u")))
    let session = bench.connect("d")
    var latitude = 48.0
    drive(bench, session, &latitude, trip: "t", seconds: 51)
    let summary = try #require(bench.turn(bench.move(.driver, "d", "t", .cancelled)).moves.first?.summary)
    #expect(summary.distance == 0 && abs(summary.approach - 1000) < 10)
    bench.turn(bench.move(.ops, "o", "u", .requested))
    let unused = bench.turn(bench.move(.ops, "o", "u", .cancelled)).moves.first?.summary
    #expect(
      unused
        == TripSummary(
          distance: 0, approach: 0, track: 0, duration: 0, waiting: 0, fixes: 0, gaps: 0, gapDuration: 0))
  }

  @Test("the way in the minute in which a clock is set back counts as over missing fixes", arguments: [15, 33])
  func clockSetBack(speed: Double) throws {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")))
    let session = bench.connect("d")
    for second in 0..<180 {
      bench.advance(seconds: 1)
      let clock = bench.clock + (second < 60 ? 3_600_000 : 0)
      bench.turn(
        bench.fix(
          session, trip: "t", at: start.moved(90, speed * Double(second)), speed: speed, heading: 90,
          milliseconds: clock, sent: clock))
    }
    #expect(bench.hub.counters.clocksBelieved == 1)
    let summary = try #require(bench.turn(bench.move(.driver, "d", "t", .cancelled)).moves.first?.summary)
    #expect(abs(summary.track - speed * 179) < speed * 179 * 0.01)
  }

  @Test("an hour at the kerb with a phone that wanders makes no way")
  func parked() throws {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")))
    let session = bench.connect("d")
    var random = SplitMix64(seed: 9)
    var drift = SIMD2<Double>.zero
    for _ in 0..<3600 {
      bench.pass(seconds: 1)
      drift = drift * 0.99 + random.normals() * 0.7  // 5 m, correlated over minutes: what phones in streets do
      let place = LocalPlane(origin: start).coordinate(eastMeters: drift.x, northMeters: drift.y)
      bench.turn(bench.fix(session, trip: "t", at: place, accuracy: 8, speed: 0))
    }
    let summary = try #require(bench.turn(bench.move(.driver, "d", "t", .cancelled)).moves.first?.summary)
    #expect(summary.approach == 0)
  }
}
