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
}
