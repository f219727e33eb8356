import Foundation
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

private let munich = Coordinate(latitude: 48.137, longitude: 11.575)!

/// Drives along a great circle and returns the largest error after the first `settled` fixes, in metres, and the
/// largest errors of speed (m/s) and heading (degrees).
private func drive(
  from start: Coordinate, bearing: Double, speed: Double = 15, seconds: Int = 120, hz: Double = 1,
  gives: (speed: Bool, heading: Bool) = (true, true), settled: Int = 30
) throws -> (meters: Double, speed: Double, heading: Double) {
  var tracker = Tracker()
  var worst = (meters: 0.0, speed: 0.0, heading: 0.0)
  for step in 0..<Int(Double(seconds) * hz) {
    let time = Double(step) / hz
    let (place, heading) = Globe.place(from: start, bearing: bearing, meters: speed * time)
    let fix = Fix.at(
      time, place, speed: gives.speed ? speed : nil,
      heading: gives.heading ? heading.truncatingRemainder(dividingBy: 360) : nil)
    let position = try #require(tracker.update(fix).position, "fix \(step) was not published")
    #expect(position.timestamp == fix.timestamp)
    if step < settled { continue }
    worst.meters = max(worst.meters, Globe.distance(place, position.coordinate))
    worst.speed = max(worst.speed, abs(try #require(position.speed) - speed))
    let turned = abs(try #require(position.heading) - heading)
    worst.heading = max(worst.heading, min(turned, 360 - turned))
  }
  return worst
}

@Suite("Tracker")
struct TrackerTests {
  @Test("A tracker and what it keeps for a driver fit into 400 bytes")
  func size() {
    #expect(MemoryLayout<Tracker>.stride <= 400)
    #expect(MemoryLayout<FixOrder>.size <= 112)
  }

  @Test(
    "A straight drive is followed exactly, with the right units and signs, in every direction",
    arguments: (0..<16).map { Double($0) * 22.5 })
  func directions(bearing: Double) throws {
    let worst = try drive(from: munich, bearing: bearing)
    #expect(worst.meters < 0.2)
    #expect(worst.speed < 0.1)
    #expect(worst.heading < 0.3)
  }

  @Test(
    "Without speed and heading of the phone, they are found from the positions",
    arguments: [(true, false), (false, true), (false, false)])
  func positionsOnly(speed: Bool, heading: Bool) throws {
    let worst = try drive(from: munich, bearing: 70, gives: (speed, heading), settled: 40)
    #expect(worst.meters < 0.2)
    #expect(worst.speed < 0.1)
    #expect(worst.heading < 0.3)
  }

  @Test("Ten fixes a second are followed like one", arguments: [0.2, 1, 5, 10])
  func rates(hz: Double) throws {
    let worst = try drive(from: munich, bearing: 200, speed: 30, seconds: 200, hz: hz)
    #expect(worst.meters < 0.5)
    #expect(worst.speed < 0.1)
  }

  @Test(
    "It works the same wherever on Earth, across the antimeridian and over the poles",
    arguments: [
      (0.0, 0.001), (0, 179.99), (-17, -179.995), (65, 179.99), (84.9, 20), (87.99, -60), (88.01, 100), (-89, 0),
      (89.99, 45), (-89.995, 179), (90, 0), (-90, 12),
    ])
  func places(latitude: Double, longitude: Double) throws {
    let start = try #require(Coordinate(latitude: latitude, longitude: longitude))
    for bearing in [1.0, 89, 180, 271] {
      let worst = try drive(from: start, bearing: bearing, speed: 20)
      // The sphere of the test and the ellipsoid of the tracker differ by 0.7 %, so the given speed does, too.
      #expect(worst.meters < 0.6, "bearing \(bearing)")
      #expect(worst.speed < 0.2, "bearing \(bearing)")
      let passesPole = abs(latitude) > 89.9
      #expect(worst.heading < (passesPole ? 180 : 0.5), "bearing \(bearing)")
    }
  }

  @Test("East and north are treated alike")
  func symmetry() throws {
    let place = try #require(Coordinate(latitude: 0, longitude: 10))
    let east = try drive(from: place, bearing: 90)
    let north = try drive(from: place, bearing: 0)
    // At the equator the sphere of the test is 0.56 % off the tracker's ellipsoid northwards, and so is the given
    // speed.
    #expect(abs(east.meters - north.meters) < 0.3)
    #expect(abs(east.speed - north.speed) < 0.1)
  }

  @Test("Noise is taken off: the error of a noisy drive is well below that of its fixes")
  func noise() throws {
    var random = SplitMix64(seed: 42)
    var tracker = Tracker()
    var (raw, filtered) = (0.0, 0.0)
    for second in 0..<600 {
      let truth = Globe.place(from: munich, bearing: 30, meters: 14 * Double(second)).place
      let noise = random.normals() * (8 / AccuracyRadius.sigmas)
      let off = (noise * noise).sum().squareRoot()
      let seen = Globe.place(from: truth, bearing: atan2(noise.x, noise.y) * 180 / .pi, meters: off).place
      let speed = 14 + random.normals().x * 0.3
      let fix = Fix.at(Double(second), seen, accuracy: 8, speed: speed, heading: 30 + random.normals().x)
      guard let position = tracker.update(fix).position else { continue }
      raw += Globe.distance(truth, seen)
      filtered += Globe.distance(truth, position.coordinate)
    }
    #expect(filtered / raw < 0.35, "ratio \(filtered / raw)")
  }

  @Test("A gap of two minutes does not throw it off")
  func gap() throws {
    var tracker = Tracker()
    for second in Array(0..<60) + Array(180..<300) {
      let truth = Globe.place(from: munich, bearing: 120, meters: 25 * Double(second)).place
      let outcome = tracker.update(.at(Double(second), truth, speed: 25, heading: 120))
      let position = try #require(outcome.position, "second \(second): \(outcome)")
      #expect(Globe.distance(truth, position.coordinate) < 3)
    }
  }

  @Test("After an hour's pause the driver is followed from wherever it is")
  func longPause() throws {
    var tracker = Tracker()
    _ = tracker.update(.at(0, munich, speed: 20, heading: 90))
    let there = Globe.place(from: munich, bearing: 10, meters: 50_000).place
    let position = try #require(tracker.update(.at(3600, there)).position)
    #expect(Globe.distance(there, position.coordinate) < 1)
  }

  @Test("A parked car stays where it is, keeps its heading, and has speed 0")
  func standstill() throws {
    var random = SplitMix64(seed: 3)
    var tracker = Tracker()
    for second in 0..<60 {
      let truth = Globe.place(from: munich, bearing: 75, meters: 10 * Double(second)).place
      _ = tracker.update(.at(Double(second), truth, speed: 10, heading: 75))
    }
    let parked = Globe.place(from: munich, bearing: 75, meters: 595).place
    var last: Coordinate?
    var way = 0.0
    for second in 60..<360 {
      let noise = random.normals()
      let off = (noise * noise).sum().squareRoot() * 4
      let seen = Globe.place(from: parked, bearing: atan2(noise.x, noise.y) * 180 / .pi, meters: off).place
      let position = try #require(tracker.update(.at(Double(second), seen, accuracy: 6, speed: 0)).position)
      #expect(abs(try #require(position.heading) - 75) < 1)
      if second > 70 { #expect(try #require(position.speed) < 0.1) }
      if second > 70, let last { way += Globe.distance(last, position.coordinate) }
      last = position.coordinate
    }
    // The fixes themselves wander 2 km.
    #expect(way < 60, "wandered \(way) m in 5 minutes")
  }

  @Test("What is published is rounded: 1e-7° and 0.01 m, m/s and °")
  func rounding() throws {
    var tracker = Tracker()
    for second in 0..<200 {
      let truth = Globe.place(from: munich, bearing: 359.99, meters: 7.7 * Double(second)).place
      let fix = Fix.at(Double(second), truth, accuracy: 7.123, speed: 7.7, heading: 359.99)
      let position = try #require(tracker.update(fix).position)
      let latitude = position.coordinate.latitude
      let longitude = position.coordinate.longitude
      #expect((latitude * 1e7).rounded() / 1e7 == latitude && (longitude * 1e7).rounded() / 1e7 == longitude)
      for value in [position.accuracy, position.speed ?? 0, position.heading ?? 0] {
        #expect((value * 100).rounded() / 100 == value)
      }
      #expect(try #require(position.heading) < 360)
    }
  }

  @Test("Accuracy follows the phone's, and confidence the accuracy")
  func confidence() throws {
    for (accuracy, confidence) in [(5.0, Confidence.high), (60, .medium), (100, .low)] {
      var tracker = Tracker()
      var last: Position?
      for second in 0..<30 { last = tracker.update(.at(Double(second), munich, accuracy: accuracy)).position }
      #expect(try #require(last).confidence == confidence)
      #expect(try #require(last).accuracy >= accuracy / 2)
    }
    var tracker = Tracker()
    #expect(tracker.update(.at(0, munich, accuracy: 95)).position?.confidence == .low)
  }
}
