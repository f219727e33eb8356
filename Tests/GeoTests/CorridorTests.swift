// Distances to borders and paths against dense sampling, and what is within them.
import HubGeo
import HubTestSupport
import Testing

@testable import HubGeo

@Suite struct CorridorTests {
  /// The nearest of many points on each edge, which are straight in longitude and latitude.
  private func sampledDistance(from place: Coordinate, to line: [Coordinate], samples: Int) -> Double {
    zip(line, line.dropFirst()).map { a, b in
      let width = a.longitudeDifference(to: b)
      func distance(_ step: Int) -> Double {
        let part = Double(step) / Double(samples)
        return place.distance(
          to: Coordinate(
            clampingLatitude: a.latitude + part * (b.latitude - a.latitude),
            wrappingLongitude: a.longitude + part * width))
      }
      // The distance to an edge falls, then rises: every fiftieth sample shows round which all of them are looked at.
      let coarse = stride(from: 0, through: samples, by: 50).min { distance($0) < distance($1) }!
      return (max(0, coarse - 50)...min(samples, coarse + 50)).map(distance).min()!
    }.min()!
  }

  @Test(
    "The distance to a border is never too short and at most 0.01 % too long",
    arguments: [at(48.1, 11.5), at(-16.8, 179.99), at(0, 0), at(-79.5, -40), at(79.9, 100)])
  func distances(center: Coordinate) throws {
    var random = SplitMix64(seed: 5)
    for degrees in [0.001, 0.01, 0.1] {
      let ring = PolygonOracleTests.star(center, corners: 12, degrees: degrees, &random)
      let polygon = try Polygon(rings: [ring], limit: 100)
      let path = try Path(ring, limit: 100)
      for _ in 0..<20 {
        let place = Coordinate(
          clampingLatitude: center.latitude + .random(in: -1.5...1.5, using: &random) * degrees,
          wrappingLongitude: center.longitude + .random(in: -1.5...1.5, using: &random) * degrees)
        let sampled = sampledDistance(from: place, to: ring, samples: 4_000)
        guard sampled < 10_000 else { continue }
        let distance = polygon.distanceToBorder(from: place)
        // The samples lie up to 1/8000 of an edge from the nearest point.
        let coarse = degrees * 111_195 * 2 / 8_000
        #expect(distance <= sampled * 1.0001 + 0.001)
        #expect(distance >= (max(0, sampled * sampled - coarse * coarse)).squareRoot() - 0.001)
        #expect(path.distance(from: place) == distance)
      }
    }
  }

  @Test("A corridor has what is within half its width, with round ends, over the antimeridian too")
  func corridor() throws {
    let path = try Path([at(-17, 179.9), at(-17, -179.9), at(-16.9, -179.9)], limit: 10)
    let corridor = try #require(Corridor(path, widthMeters: 200))
    for inside in [at(-17, 180), at(-17.0008, 179.95), at(-16.95, -179.9), at(-17, 179.8995)] {
      #expect(corridor.contains(inside), "\(inside)")
      #expect(corridor.boundingBox.contains(inside))
    }
    for outside in [at(-17.001, 179.95), at(-16.95, -179.898), at(-17, 179.898), at(17, 0)] {
      #expect(!corridor.contains(outside), "\(outside)")
    }
    #expect(abs(corridor.distanceToBorder(from: at(-17, 180)) - 100) < 0.02)
    #expect(Corridor(path, widthMeters: 0) == nil && Corridor(path, widthMeters: .infinity) == nil)
  }

  @Test("A corridor that goes round the earth has what is near its end, which is drawn more than a turn away")
  func aroundTheEarth() throws {
    let path = try Path([at(10, 180), at(10, -90), at(10, 0), at(0, 90), at(0, 180)], limit: 10)
    let corridor = try #require(Corridor(path, widthMeters: 20_000))
    for inside in [at(0, -179.99), at(0, 179.99), at(10, -179.99), at(5, 45)] { #expect(corridor.contains(inside)) }
    #expect(!corridor.contains(at(0, -179.8)) && !corridor.contains(at(5, 180)))
  }

  @Test("A corridor's box leaves nothing of it out", arguments: [at(52, 13), at(-84, 179.95), at(89.95, 10)])
  func corridorBox(center: Coordinate) throws {
    var random = SplitMix64(seed: 9)
    let line = (0..<6).map { _ in
      center.destination(
        bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: .random(in: 0...4_000, using: &random))
    }
    let path = try Path(line, limit: 10)
    let corridor = try #require(Corridor(path, widthMeters: 1_000))
    for _ in 0..<2_000 {
      let place = center.destination(
        bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: .random(in: 0...6_000, using: &random))
      if path.distance(from: place) <= 500 { #expect(corridor.contains(place)) }
    }
  }

  @Test("What is no path is refused")
  func refused() {
    #expect(throws: PathError.tooFewPositions) { try Path([], limit: 10) }
    #expect(throws: PathError.tooFewPositions) { try Path([at(1, 1), at(1, 1)], limit: 10) }
    #expect(throws: PathError.tooManyPositions(limit: 2)) { try Path([at(1, 1), at(1, 2), at(1, 3)], limit: 2) }
    let round = (0..<9).map { at(0, Coordinate.wrappedLongitude(Double($0) * 60)) }
    #expect(throws: PathError.tooLong) { try Path(round, limit: 10) }
  }

  @Test("A circle has what is at its radius, at the antimeridian and at a pole")
  func circle() throws {
    for center in [at(48, 11), at(-16, 180), at(90, 0), at(-89.99, 100)] {
      let circle = try #require(Circle(center: center, radiusMeters: 5_000))
      for bearing in stride(from: 0.0, to: 360, by: 15) {
        #expect(circle.contains(center.destination(bearingDegrees: bearing, distanceMeters: 4_999.99)))
        let outside = center.destination(bearingDegrees: bearing, distanceMeters: 5_000.01)
        #expect(!circle.contains(outside))
        #expect(abs(circle.distanceToBorder(from: outside) - 0.01) < 1e-6)
      }
    }
    #expect(Circle(center: at(0, 0), radiusMeters: 0) == nil && Circle(center: at(0, 0), radiusMeters: .nan) == nil)
  }

  @Test("The box around boxes is the narrowest that has them all")
  func boxes() throws {
    func box(_ west: Double, _ east: Double) -> BoundingBox { BoundingBox(south: 0, west: west, north: 1, east: east)! }
    #expect(BoundingBox(around: []) == nil)
    #expect(BoundingBox(around: [box(178, 180), box(-180, -178)]) == box(178, -178))
    #expect(BoundingBox(around: [box(10, 20), box(5, 6), box(18, 30)]) == box(5, 30))
    #expect(BoundingBox(around: [box(170, -170), box(175, 178)]) == box(170, -170))
    #expect(BoundingBox(around: [box(-180, 180), box(3, 4)])?.widthDegrees == 360)
    #expect(BoundingBox(around: [box(-120, -110), box(100, 110), box(-10, 0)]) == box(-120, 110))
    var random = SplitMix64(seed: 2)
    for _ in 0..<500 {
      let boxes = (0..<Int.random(in: 1...4, using: &random)).map { _ in
        box(
          Double.random(in: -180...180, using: &random),
          Coordinate.wrappedLongitude(Double.random(in: -180...540, using: &random)))
      }
      let around = try #require(BoundingBox(around: boxes))
      for box in boxes { #expect(around.contains(box) || around.widthDegrees > 359.9) }
    }
  }
}
