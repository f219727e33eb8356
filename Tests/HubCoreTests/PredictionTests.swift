import Foundation
import HubGeo
import HubMessages
import Testing

@testable import HubCore

private let munich = Coordinate(latitude: 48.137, longitude: 11.575)!

private func position(
  at place: Coordinate = munich, speed: Double? = 12, heading: Double? = 45, turnRate: Double = 0
) -> Position {
  Position(
    coordinate: place, speed: speed, heading: heading, accuracy: 5, confidence: .high, timestamp: .test(0),
    turnRate: turnRate)
}

@Suite("Where a driver is by now")
struct PredictionTests {
  @Test("It goes straight on for ten seconds and no more", arguments: [0.0, 45, 133, 270])
  func straight(heading: Double) {
    let start = position(heading: heading)
    for (ahead, expected) in [(-5.0, 0.0), (0, 0), (4, 4), (10, 10), (60, 10), (1e14, 10)] {
      let truth = Globe.place(from: munich, bearing: heading, meters: 12 * expected).place
      // The test's sphere and the ellipsoid differ by up to 0.56 %.
      #expect(Globe.distance(start.predicted(at: .test(ahead)), truth) < 0.7, "\(ahead) s ahead")
    }
  }

  @Test("It stays where it is at a standstill, and without a speed or a heading")
  func stays() {
    for start in [position(speed: nil), position(heading: nil), position(speed: 0), position(speed: 0.2)] {
      #expect(start.predicted(at: .test(5)) == munich)
    }
  }

  @Test(
    "A turn that dies away is driven about as short steps would drive it, to the right and to the left",
    arguments: [1.0, 8, -8, 30, -30])
  func turns(rate: Double) {
    var (place, heading) = (munich, 80.0)
    for step in 0..<1000 {
      (place, _) = Globe.place(from: place, bearing: heading, meters: 0.12)
      heading += rate / 100 * exp(-Double(step) / 300)
      guard (step + 1) % 100 == 0 else { continue }
      let predicted = position(heading: 80, turnRate: rate).predicted(at: .test(Double(step + 1) / 100))
      // Three arcs stand for the whole curve.
      #expect(Globe.distance(predicted, place) < 0.8 + 0.15 * abs(rate), "\(step + 1)")
    }
  }

  @Test(
    "It crosses the antimeridian and the poles",
    arguments: [(0.0, 179.9999), (-17, -179.9999), (89.9999, 3), (-89.9999, 77)])
  func places(latitude: Double, longitude: Double) throws {
    let start = try #require(Coordinate(latitude: latitude, longitude: longitude))
    for heading in [0.0, 90, 180, 270] {
      let predicted = position(at: start, heading: heading).predicted(at: .test(10))
      #expect(Globe.distance(predicted, Globe.place(from: start, bearing: heading, meters: 120).place) < 0.8)
    }
  }

  @Test("The tracker finds the rate of a steady turn, and none on a straight or at a standstill")
  func turnRate() throws {
    var tracker = Tracker()
    var (place, heading) = (munich, 10.0)
    var last: Position?
    for second in 0..<120 {
      let rate = second < 40 ? 0.0 : second < 80 ? 6 : 0
      let fix = Fix.at(Double(second), place, speed: 12, heading: heading.truncatingRemainder(dividingBy: 360))
      last = tracker.update(fix).position
      if second == 39 || second == 119 { #expect(abs(try #require(last).turnRate) < 0.2) }
      if second == 79 { #expect(abs(try #require(last).turnRate - 6) < 0.8) }
      for _ in 0..<100 {
        (place, _) = Globe.place(from: place, bearing: heading, meters: 0.12)
        heading += rate / 100
      }
    }
    for second in 120..<130 { last = tracker.update(.at(Double(second), place, speed: 0)).position }
    #expect(try #require(last).turnRate == 0)
  }
}
