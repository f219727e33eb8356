// Simplified lines, against a search along each kept arc for the place nearest to what was left out.
import Glibc
import HubGeo
import HubTestSupport
import Testing

@Suite struct SimplifyTests {
  /// The distance to the shorter great-circle arc, by thirds: along it the distance falls and then rises.
  private func distance(_ place: Coordinate, _ start: Coordinate, _ end: Coordinate) -> Double {
    let length = start.distance(to: end)
    let bearing = start.bearing(to: end)
    func at(_ share: Double) -> Double {
      place.distance(to: start.destination(bearingDegrees: bearing, distanceMeters: length * share))
    }
    var (low, high) = (0.0, 1.0)
    for _ in 0..<100 {
      let (a, b) = (low + (high - low) / 3, high - (high - low) / 3)
      if at(a) < at(b) { high = b } else { low = a }
    }
    return min(at((low + high) / 2), place.distance(to: start), place.distance(to: end))
  }

  private func check(_ points: [Coordinate], _ tolerance: Double, _ comment: Comment) -> Int {
    let kept = Polyline.simplify(points, toleranceMeters: tolerance)
    #expect(kept.first == points.indices.first && kept.last == points.indices.last, comment)
    #expect(zip(kept, kept.dropFirst()).allSatisfy { $0 < $1 }, comment)
    for (start, end) in zip(kept, kept.dropFirst()) {
      for index in (start + 1)..<max(end, start + 1) {
        let off = distance(points[index], points[start], points[end])
        #expect(off <= tolerance + 0.001, "\(comment): \(index) is \(off) m off")
      }
    }
    return kept.count
  }

  /// A drive: a random walk in direction, `step` metres at a time.
  private func drive(from start: Coordinate, count: Int, step: Double, _ random: inout SplitMix64) -> [Coordinate] {
    var points = [start]
    var heading = Double.random(in: 0..<360, using: &random)
    for _ in 1..<count {
      heading += Double.random(in: -25...25, using: &random)
      let way = Double.random(in: 0...(2 * step), using: &random)
      points.append(points[points.count - 1].destination(bearingDegrees: heading, distanceMeters: way))
    }
    return points
  }

  @Test("nothing that is left out is further off than the tolerance", arguments: 1...6 as ClosedRange<UInt64>)
  func deviation(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let starts = [
      at(48, 11), at(0, 0), at(12, 179.9995), at(-40, -179.9999), at(89.9999, 40), at(-89.9995, -100), at(90, 0),
    ]
    for start in starts + [random.coordinate()] {
      let step = [0.5, 10, 1000].randomElement(using: &random)!
      let points = drive(from: start, count: 300, step: step, &random)
      let tolerance = step * [0.01, 1, 10].randomElement(using: &random)!
      let kept = check(points, tolerance, "seed \(seed), from \(start), step \(step), tolerance \(tolerance)")
      #expect(kept <= 300)
    }
  }

  @Test("a straight drive over the antimeridian, and one past the pole, become two places")
  func straight() {
    for (start, bearing) in [(at(10, 179.99), 90.0), (at(-10, -179.99), 270), (at(89.99, 0), 0), (at(-89.99, 70), 180)]
    {
      let points = (0..<200).map { start.destination(bearingDegrees: bearing, distanceMeters: Double($0) * 15) }
      #expect(Polyline.simplify(points, toleranceMeters: 0.01) == [0, 199], "\(start)")
      var bent = points
      bent[100] = points[100].destination(bearingDegrees: bearing + 90, distanceMeters: 5)
      #expect(Polyline.simplify(bent, toleranceMeters: 4).contains(100), "\(start)")
      #expect(Polyline.simplify(bent, toleranceMeters: 5.1) == [0, 199], "\(start)")
    }
  }

  @Test("short lines, standing still, and there and back")
  func special() {
    #expect(Polyline.simplify([], toleranceMeters: 1).isEmpty)
    #expect(Polyline.simplify([at(1, 1)], toleranceMeters: 1) == [0])
    #expect(Polyline.simplify([at(1, 1), at(1, 1)], toleranceMeters: 1) == [0, 1])
    #expect(Polyline.simplify(Array(repeating: at(1, 1), count: 50), toleranceMeters: 0) == [0, 49])
    #expect(Polyline.simplify([at(0, 0), at(0, 1), at(0, 0)], toleranceMeters: 100) == [0, 1, 2])
    // A place beyond an end is as far as from that end.
    #expect(Polyline.simplify([at(0, 0), at(0, 0.01), at(0, 0.005)], toleranceMeters: 500) == [0, 1, 2])
    #expect(Polyline.simplify([at(0, 0), at(0, 0.01), at(0, 0.005)], toleranceMeters: 600) == [0, 2])
    // Antipodes have no one arc: only the ends count.
    #expect(Polyline.simplify([at(0, 0), at(45, 90), at(0, 180)], toleranceMeters: 1000) == [0, 1, 2])
  }

  @Test("the worst of lines costs no more than its bound")
  func worst() {
    // Each split takes off one place at an end: the furthest is always the next one.
    let points = (0..<20_000).map { at(60 * pow(0.9995, Double($0)), Double($0) * 0.001) }
    let began = uptime()
    let kept = Polyline.simplify(points, toleranceMeters: 0.001)
    #expect(kept.count > 10_000)
    #expect(uptime() - began < 30, "a quadratic one takes minutes here, in a debug build")
  }

  private func uptime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
