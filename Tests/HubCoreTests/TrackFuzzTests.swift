import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite("A tracker against hostile fixes")
struct TrackFuzzTests {
  /// A fix of the kind that nobody should send.
  private func hostile(_ random: inout SplitMix64, near: Coordinate, after time: inout Double) -> Fix {
    let steps = [0, 0.001, 0.1, 1, 1, 1, 5, 30, 200, 400, 5000, 1e8, -1, -1e6]
    time = min(max(time + steps.randomElement(using: &random)!, -1e9), 2e11)
    var place = near
    switch random.next() % 8 {
    case 0:
      place = Coordinate(
        latitude: .random(in: -90...90, using: &random), longitude: .random(in: -180...180, using: &random))!
    case 1:
      place = Coordinate(latitude: [-90, 90, 0, 89.9999999].randomElement(using: &random)!, longitude: 180)!
    case 2: place = Coordinate(latitude: 0, longitude: -180)!
    default:
      let meters = [0.0, 1, 30, 1000, 10_000].randomElement(using: &random)!
      place = Globe.place(from: near, bearing: .random(in: 0..<360, using: &random), meters: meters).place
    }
    let odd: [Double?] = [
      nil, 0, -1, 1e-300, 5, 5, 99.99, 1e9, 1e300, .nan, .infinity, -.infinity, .leastNonzeroMagnitude, 359.999, 360,
    ]
    return .at(
      time, place, accuracy: odd.randomElement(using: &random)!, speed: odd.randomElement(using: &random)!,
      heading: odd.randomElement(using: &random)!)
  }

  private func check(_ position: Position, of fix: Timestamp) {
    let (latitude, longitude) = (position.coordinate.latitude, position.coordinate.longitude)
    #expect((-90...90).contains(latitude) && (-180...180).contains(longitude))
    #expect(position.accuracy.isFinite && position.accuracy > 0)
    if let speed = position.speed { #expect(speed >= 0 && speed <= 90.01) }
    if let heading = position.heading { #expect(heading >= 0 && heading < 360) }
    #expect(position.timestamp == fix)
    #expect(position.turnRate.isFinite)
    let ahead = position.predicted(at: Timestamp(milliseconds: fix.milliseconds + 60_000))
    #expect(Globe.distance(ahead, position.coordinate) <= 10.1 * (position.speed ?? 0))
  }

  @Test("Whatever comes, what is published is finite and valid", arguments: 0..<40)
  func fuzz(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var tracker = Tracker()
    var time = 0.0
    var place = try #require(Coordinate(latitude: [48, 89.99, -90, 0][Int(seed % 4)], longitude: 179.99))
    var published = 0
    for step in 0..<3000 {
      let fix = hostile(&random, near: place, after: &time)
      switch tracker.update(fix, receivedAt: Int64(step) * 1_000_000_000) {
      case .accepted(let position), .clockBelieved(let position, _):
        check(position, of: fix.timestamp)
        place = position.coordinate
        published += 1
      case .acceptedTwo(let held, let position):
        check(held, of: held.timestamp)
        check(position, of: fix.timestamp)
        published += 2
      case .acceptedHeld(let held, refused: _): check(held, of: held.timestamp)
      case .history, .duplicate, .held, .clockDoubted, .refused: break
      }
      if let filter = tracker.filter {
        let p = filter.covariance
        #expect(p.p00 > 0 && p.p11 > 0 && p.p22 > 0)
        #expect(p.p00.isFinite && p.p11.isFinite && p.p22.isFinite)
        #expect(p.p00 * p.p11 > p.p01 * p.p01 && p.p00 * p.p22 > p.p02 * p.p02 && p.p11 * p.p22 > p.p12 * p.p12)
        #expect(MotionFilter.noiseRange.contains(filter.noiseScale) && (0...1).contains(filter.latency.speed.seconds))
      }
    }
    #expect(published > 0)
    // After all that, an honest driver is heard again.
    let start = tracker.newest.map { Double($0.milliseconds - 1_700_000_000_000) / 1000 } ?? 0
    let home = try #require(Coordinate(latitude: 52.5, longitude: 13.4))
    var last: Position?
    for step in 1...30 {
      let fix = Fix.at(start + Double(step), home, speed: 0)
      last = tracker.update(fix, receivedAt: Int64(3000 + step) * 1_000_000_000).position ?? last
    }
    #expect(Globe.distance(try #require(last).coordinate, home) < 20)
  }

  /// Takes fixes as (seconds, place, accuracy), and checks what comes of each, and that it can be stored and read.
  private func feed(_ fixes: [(Double, Coordinate, Double)]) {
    var tracker = Tracker()
    for (step, (seconds, place, accuracy)) in fixes.enumerated() {
      let fix = Fix.at(seconds, place, accuracy: accuracy)
      if case .accepted(let position) = tracker.update(fix, receivedAt: Int64(step) * 1_000_000_000) {
        check(position, of: fix.timestamp)
      }
      var bytes = [UInt8](repeating: 0, count: StoredTracking.size)
      bytes.withUnsafeMutableBytes {
        StoredTracking(clockOffset: nil, sendingInterval: 1, motion: tracker.storedMotion).write(into: $0)
      }
      #expect(bytes.withUnsafeBytes { StoredTracking($0) }?.motion != nil, "fix \(step)")
    }
  }

  /// A driver that stands, and then is elsewhere in four fixes a millisecond apart. The velocity between them has an
  /// error of kilometres a second.
  private func jump(from home: Coordinate, to place: Coordinate) -> [(Double, Coordinate, Double)] {
    (0...10).map { (Double($0), home, 5) } + (0..<4).map { (11 + Double($0) * 0.001, place, 100) }
  }

  @Test("Fixes that agree a millisecond apart never lead off the globe", arguments: 0..<3)
  func milliseconds(way: Int) throws {
    func at(_ latitude: Double, _ longitude: Double) throws -> Coordinate {
      try #require(Coordinate(latitude: latitude, longitude: longitude))
    }
    switch way {
    case 0:
      let there = try at(84.009, 0.05)
      feed(
        jump(from: try at(84, 0.05), to: there) + [
          (17.003, try at(84.009, 179.95), 5), (77.003, try at(84.009, -90), 5), (78.003, try at(84.009, 1.513), 5),
        ])
    case 1:
      feed(
        jump(from: try at(87.7, 81), to: try at(87.709, 81)) + [
          (14.003, try at(87.509, -100), 5), (20.003, try at(87.509, 81), 5),
        ])
    default:
      feed(
        jump(from: try at(10, 10), to: try at(10.009, 10)) + [
          (14.003, try at(10.018, 10), 5), (44.003, try at(10.1, 10), 5), (45.003, try at(10.1, 10), 5),
        ])
    }
  }

  @Test("Fixes that agree, anywhere and at any interval, give positions that can be stored", arguments: 0..<40)
  func clusters(seed: UInt64) throws {
    var random = SplitMix64(seed: 1000 + seed)
    var (time, fixes): (Double, [(Double, Coordinate, Double)]) = (0, [])
    var place = try #require(
      Coordinate(latitude: [10, 84, 87.7, -89.9][Int(seed % 4)], longitude: .random(in: -180...180, using: &random)))
    for _ in 0..<300 {
      let accuracy = [1.0, 5, 100].randomElement(using: &random)!
      let interval = [0.001, 0.001, 0.01, 1, 5].randomElement(using: &random)!
      time += [0.001, 1, 3, 30, 60, 290].randomElement(using: &random)!
      for _ in 0..<Int.random(in: 1...12, using: &random) {
        fixes.append((time, place, accuracy))
        time += interval
      }
      place =
        Int.random(in: 0..<4, using: &random) == 0
        ? Coordinate(latitude: place.latitude, longitude: .random(in: -180...180, using: &random))!
        : Globe.place(
          from: place, bearing: .random(in: 0..<360, using: &random),
          meters: [10.0, 300, 1000, 4900, 9000].randomElement(using: &random)!
        ).place
    }
    feed(fixes)
  }
}
