// A marker between positions: where it should be, without a jump, and never backwards on a straight.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubClientCore

private let origin = Coordinate(latitude: 48, longitude: 11)!
private let plane = LocalPlane(origin: origin)

/// A position `seconds` after the start, `age` old when it comes.
private func location(
  _ seconds: Double, _ place: SIMD2<Double>, heading: Double? = 90, speed: Double? = 15, age: Double = 0,
  accuracy: Double = 5, around plane: LocalPlane = plane
) -> DriverLocation {
  DriverLocation(
    driverID: Identifier("d")!, tripID: nil, coordinate: plane.coordinate(eastMeters: place.x, northMeters: place.y),
    heading: heading, speed: speed, accuracy: accuracy, confidence: .high,
    timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64((seconds * 1000).rounded())), age: age, after: 0)
}

private func nanoseconds(_ seconds: Double) -> Int64 { 7_000_000_000 + Int64(seconds * 1e9) }

extension MarkerInterpolator {
  fileprivate mutating func take(_ location: DriverLocation, atSeconds seconds: Double) {
    take(location, at: nanoseconds(seconds))
  }
  /// Metres east and north.
  fileprivate func place(_ seconds: Double, around plane: LocalPlane = plane) -> SIMD2<Double> {
    let shown = marker(at: nanoseconds(seconds))!.coordinate
    return SIMD2(plane.east(of: shown), plane.north(of: shown))
  }
}

private func length(_ v: SIMD2<Double>) -> Double { (v * v).sum().squareRoot() }

@Suite struct MarkerInterpolatorTests {
  @Test("before the first position there is nothing to draw; the first is drawn where it is by now")
  func first() {
    var marker = MarkerInterpolator()
    #expect(marker.marker(at: 0) == nil)
    marker.take(location(0, [0, 0], age: 0.4), atSeconds: 0.4)
    #expect(length(marker.place(0.4) - [6, 0]) < 0.01)
    #expect(marker.marker(at: nanoseconds(1))?.age == 1)
    #expect(marker.marker(at: nanoseconds(1))?.heading == 90)
  }

  @Test(
    "on a straight at constant speed the marker is where the car is, however old and rare the positions are",
    arguments: [0.5, 1, 4, 8], [0, 0.3, 1.7])
  func straight(interval: Double, age: Double) {
    var marker = MarkerInterpolator()
    var next = 0.0
    for frame in 0..<3600 {
      let time = Double(frame) / 60
      while next + age <= time {
        marker.take(location(next, [15 * next, 0], age: age), atSeconds: next + age)
        next += interval
      }
      guard frame > 180 else { continue }
      #expect(length(marker.place(time) - [15 * time, 0]) < 0.05)
    }
  }

  @Test("it continues for 10 s after the fix, and then stands", arguments: [0, 2.5, 30])
  func stops(age: Double) {
    var marker = MarkerInterpolator()
    marker.take(location(0, [0, 0], age: age), atSeconds: age)
    #expect(abs(marker.place(age + 100).x - 150) < 0.05)
    #expect(marker.place(age + 100) == marker.place(age + 1000))
    #expect(abs(marker.place(max(age, 9.9)).x - min(150, 15 * max(age, 9.9))) < 0.05)
  }

  @Test(
    "it never runs backwards on a straight, whatever is wrong with positions, speeds and ages",
    arguments: 1...40 as ClosedRange<UInt64>)
  func neverBackwards(seed: UInt64) {
    var chance = SplitMix64(seed: seed)
    var marker = MarkerInterpolator()
    var (next, east, speed) = (0.0, 0.0, 15.0)
    var time = 0.0
    var last = -Double.infinity
    for _ in 0..<6000 {
      time += Double.random(in: 0.001...0.03, using: &chance)
      if time >= next {
        // The car speeds up and slows down, and stops now and then; the position is off along the road, by less than
        // it says.
        let wanted = Int.random(in: 0..<6, using: &chance) == 0 ? 0 : Double.random(in: 0...30, using: &chance)
        speed = max(0, max(speed - 3, min(speed + 2, wanted)))
        let interval = Double.random(in: 0.5...3, using: &chance)
        east += speed * interval
        let off = Double.random(in: -4...4, using: &chance)
        marker.take(
          location(
            next, [east + off, 0], speed: max(0, speed + Double.random(in: -0.5...0.5, using: &chance)),
            age: Double.random(in: 0...1, using: &chance), accuracy: 60),
          atSeconds: time)
        next += interval
      }
      guard marker.marker(at: nanoseconds(time)) != nil else { continue }
      let shown = marker.place(time).x
      #expect(shown >= last - 1e-3, "at \(time) s it went back by \(last - shown) m")
      last = shown
    }
    #expect(last > 500)
  }

  @Test(
    "nothing jumps: from frame to frame it moves no faster than the car and the correction together",
    arguments: 1...20 as ClosedRange<UInt64>)
  func smooth(seed: UInt64) {
    var chance = SplitMix64(seed: seed)
    var marker = MarkerInterpolator()
    var (next, place, heading) = (0.0, SIMD2(0.0, 0.0), 0.0)
    var last: SIMD2<Double>?
    for frame in 0..<6000 {
      let time = Double(frame) / 60
      if time >= next {
        heading = (heading + Double.random(in: 0...40, using: &chance)).truncatingRemainder(dividingBy: 360)
        let direction = SineCosine(degrees: heading)
        place += SIMD2(direction.sine, direction.cosine) * 20
        let off = SIMD2(Double.random(in: -8...8, using: &chance), Double.random(in: -8...8, using: &chance))
        marker.take(location(next, place + off, heading: heading, speed: 20), atSeconds: time)
        next += 1
      }
      let shown = marker.place(time)
      // 20 m/s, and corrections of up to 60 m within a second, at their steepest 1.5 times as fast.
      if let last { #expect(length(shown - last) < (20 + 1.5 * 60) / 60, "at \(time) s") }
      last = shown
    }
  }

  @Test("a correction to the side or forwards is over after a second")
  func easing() {
    var marker = MarkerInterpolator()
    marker.take(location(0, [0, 0]), atSeconds: 0)
    marker.take(location(2, [50, 12]), atSeconds: 2)  // 20 m further and 12 m to the left
    #expect(length(marker.place(2) - [30, 0]) < 0.01, "no jump")
    let middle = marker.place(2.5)
    #expect(abs(middle.y - 6) < 0.01 && abs(middle.x - (57.5 - 10)) < 0.01)
    #expect(length(marker.place(3) - [65, 12]) < 0.01)
  }

  @Test("a marker that is ahead waits for the car as long as that takes, and is then where it is")
  func ahead() {
    var marker = MarkerInterpolator()
    marker.take(location(0, [0, 0], speed: 20), atSeconds: 0)
    marker.take(location(2, [20, 0], speed: 10), atSeconds: 2)  // it had slowed down: 20 m less
    var last = 40.0
    for step in 0...300 {
      let shown = marker.place(2 + Double(step) / 100).x
      #expect(shown >= last - 1e-3)
      last = shown
    }
    #expect(abs(last - 50) < 0.01, "3 s later it is on time")
  }

  @Test("ahead of a car that stopped it stays while that may be true, and goes back where it can't be")
  func overshoot() {
    for (accuracy, expected) in [(25.0, 30.0), (8, 20)] {
      var marker = MarkerInterpolator()
      marker.take(location(0, [0, 0]), atSeconds: 0)
      marker.take(location(2, [20, 0], speed: 0, accuracy: accuracy), atSeconds: 2)
      #expect(abs(marker.place(2).x - 30) < 0.01)
      #expect(abs(marker.place(3).x - expected) < 0.01)
      #expect(abs(marker.place(8).x - expected) < 0.01)
    }
  }

  @Test("in a circle it keeps to the circle, either way round", arguments: [8.0, -8, 30])
  func circle(rate: Double) {
    let radius = 10 / (abs(rate) * .pi / 180)
    func truth(_ time: Double) -> SIMD2<Double> {
      let angle = SineCosine(degrees: rate * time)
      return SIMD2((1 - angle.cosine) * (rate > 0 ? 1 : -1), abs(angle.sine) * (angle.sine * rate >= 0 ? 1 : -1))
        * radius
    }
    var marker = MarkerInterpolator()
    for step in 0..<40 {
      let heading = (rate * Double(step)).truncatingRemainder(dividingBy: 360)
      marker.take(
        location(Double(step), truth(Double(step)), heading: heading < 0 ? heading + 360 : heading, speed: 10),
        atSeconds: Double(step))
      guard step > 3 else { continue }
      for part in 0..<10 {
        let time = Double(step) + Double(part) / 10
        #expect(length(marker.place(time) - truth(time)) < 0.1, "at \(time) s")
      }
    }
  }

  @Test("a turn is over after a quarter of a circle")
  func longTurn() {
    var marker = MarkerInterpolator()
    marker.take(location(0, [0, 0], heading: 350, speed: 10), atSeconds: 0)
    marker.take(location(1, [0, 10], heading: 20, speed: 10), atSeconds: 1)  // 30° a second, over north
    #expect(marker.marker(at: nanoseconds(2))?.heading.map { abs($0 - 50) < 1e-9 } == true)
    #expect(marker.marker(at: nanoseconds(9))?.heading.map { abs($0 - 110) < 1e-9 } == true)
  }

  @Test("a position that is not newer is passed over; a far one is not eased to")
  func oldAndFar() {
    var marker = MarkerInterpolator()
    marker.take(location(5, [0, 0]), atSeconds: 5)
    let before = marker.place(6)
    marker.take(location(5, [500, 0]), atSeconds: 5.5)
    marker.take(location(4, [500, 0]), atSeconds: 5.5)
    #expect(marker.place(6) == before)
    marker.take(location(-3600, [0, 0]), atSeconds: 6)
    #expect(marker.place(6) == before, "however old")
    marker.take(location(7, [9000, 0]), atSeconds: 7)
    #expect(length(marker.place(7) - [9000, 0]) < 1)
  }

  @Test(
    "a heading or a speed that nobody has is passed over, and the place is drawn all the same",
    arguments: [
      (1e9, 15), (-1e9, 15), (.nan, 15), (.infinity, 15), (360.01, 15), (90, 1e308), (90, .infinity), (90, .nan),
      (90, 1000.01),
    ] as [(Double, Double)], [48.0, 89.5])
  func impossible(motion: (heading: Double, speed: Double), latitude: Double) {
    let plane = LocalPlane(origin: Coordinate(latitude: latitude, longitude: 11)!)
    var marker = MarkerInterpolator()
    marker.take(location(0, [0, 0], around: plane), atSeconds: 0)
    marker.take(
      location(1, [900, 0], heading: motion.heading, speed: motion.speed, around: plane), atSeconds: 1)
    #expect(length(marker.place(1, around: plane) - [900, 0]) < 0.01)
    #expect(length(marker.place(8, around: plane) - [900, 0]) < 0.01, "it stands")
    #expect(marker.marker(at: nanoseconds(1))?.heading == nil)
    marker.take(location(9, [2000, 0], around: plane), atSeconds: 9)
    #expect(length(marker.place(10, around: plane) - [2015, 0]) < (latitude > 89 ? 20 : 0.01))
  }

  @Test(
    "it works across the antimeridian and near a pole",
    arguments: [(0.0, 179.9999), (-60, -179.9999), (84.99, 20), (89.5, 10)])
  func globe(latitude: Double, longitude: Double) {
    let plane = LocalPlane(origin: Coordinate(latitude: latitude, longitude: longitude)!)
    var marker = MarkerInterpolator()
    for step in 0..<20 {
      let time = Double(step)
      marker.take(location(time, [15 * time, 0], around: plane), atSeconds: time)
      let shown = marker.place(time + 0.5, around: plane)
      #expect(length(shown - [15 * time + 7.5, 0]) < (abs(latitude) > 89 ? 2 : 0.1))
    }
  }

  @Test("random positions never make it lose itself", arguments: 1...10 as ClosedRange<UInt64>)
  func random(seed: UInt64) {
    var chance = SplitMix64(seed: seed)
    var marker = MarkerInterpolator()
    var time = 0.0
    for _ in 0..<2000 {
      time += Double.random(in: 0...20, using: &chance)
      let wild = DriverLocation(
        driverID: Identifier("d")!, tripID: nil,
        coordinate: Coordinate(
          latitude: Double.random(in: -90...90, using: &chance),
          longitude: Double.random(in: -180...180, using: &chance))!,
        heading: Bool.random(using: &chance) ? Double.random(in: 0..<360, using: &chance) : nil,
        speed: Bool.random(using: &chance) ? Double.random(in: 0...90, using: &chance) : nil,
        accuracy: Double.random(in: 0...100, using: &chance), confidence: .low,
        timestamp: Timestamp(milliseconds: Int64.random(in: 0...4_000_000_000_000, using: &chance)),
        age: Double.random(in: 0...100_000, using: &chance), after: 0)
      marker.take(wild, atSeconds: time)
      let shown = marker.marker(at: nanoseconds(time + Double.random(in: -5...30, using: &chance)))!
      #expect((-90...90).contains(shown.coordinate.latitude) && (-180...180).contains(shown.coordinate.longitude))
      if let heading = shown.heading { #expect(heading >= 0 && heading < 360) }
    }
  }
}
