// Polygons against slow arithmetic that is plainly right, and the forms that GeoJSON gives them.
import HubGeo
import HubTestSupport
import Testing

@testable import HubGeo

/// Positions written as GeoJSON has them: longitude first.
func ring(_ positions: [(Double, Double)]) -> [Coordinate] { positions.map { at($0.1, $0.0) } }

func polygon(_ rings: [(Double, Double)]...) throws(PolygonError) -> Polygon {
  try Polygon(rings: rings.map { ring($0) }, limit: 1000)
}

@Suite struct PolygonTests {
  private let square = [(0.0, 0.0), (10, 0), (10, 10), (0, 10), (0, 0)]

  @Test("A border belongs to a polygon, a hole does not, and the hole's border does")
  func borders() throws {
    let hole = [(4.0, 4.0), (6, 4), (6, 6), (4, 6), (4, 4)]
    let polygon = try polygon(square, hole)
    for inside in [at(0, 0), at(10, 10), at(5, 0), at(10, 5), at(2, 2), at(4, 4), at(5, 4), at(6, 5)] {
      #expect(polygon.contains(inside), "\(inside)")
    }
    for outside in [at(5, 5), at(-0.000_001, 5), at(5, 10.000_001), at(10.000_001, 5), at(-5, -170)] {
      #expect(!polygon.contains(outside), "\(outside)")
    }
    #expect(polygon.edgeCount == 8)
  }

  @Test("Which way round the rings go, where they begin and what stands twice changes nothing")
  func orientation() throws {
    let l = [(0.0, 0.0), (4, 0), (4, 1), (1, 1), (1, 4), (0, 4), (0, 0)]
    let turned = Array(l.reversed())
    let doubled = [(4.0, 1.0), (1, 1), (1, 1), (1, 4), (0, 4), (0, 0), (0, 0), (4, 0), (4, 1)]
    var random = SplitMix64(seed: 1)
    let all = [try polygon(l), try polygon(turned), try polygon(doubled)]
    for _ in 0..<500 {
      let place = at(
        (Double.random(in: -1...5, using: &random) * 4).rounded() / 4, .random(in: -1...5, using: &random))
      #expect(Set(all.map { $0.contains(place) }).count == 1)
    }
    #expect(all.map { $0.areaSquareMeters.rounded() }.allSatisfy { $0 == all[0].areaSquareMeters.rounded() })
  }

  @Test("A polygon may cross the antimeridian, or be cut there")
  func antimeridian() throws {
    let crossing = try polygon([(178, -20), (-178, -20), (-178, -15), (178, -15), (178, -20)])
    #expect(crossing.contains(at(-17, 179)) && crossing.contains(at(-17, -179)))
    #expect(crossing.contains(at(-17, 180)) && crossing.contains(at(-17, -180)))
    #expect(!crossing.contains(at(-17, 177)) && !crossing.contains(at(-17, -177)) && !crossing.contains(at(-17, 0)))
    #expect(crossing.boundingBox.crossesAntimeridian && abs(crossing.boundingBox.widthDegrees - 4) < 1e-6)
    let west = try polygon([(178, -20), (180, -20), (180, -15), (178, -15), (178, -20)])
    let east = try polygon([(-180, -20), (-178, -20), (-178, -15), (-180, -15), (-180, -20)])
    #expect(west.contains(at(-17, -180)) && east.contains(at(-17, 180)), "both names of the antimeridian")
    let sum = west.areaSquareMeters + east.areaSquareMeters
    #expect(abs(crossing.areaSquareMeters / sum - 1) < 1e-12)
    let holed = try polygon(
      [(178, -20), (-178, -20), (-178, -15), (178, -15), (178, -20)],
      [(-179.5, -18), (-179, -18), (-179, -17), (-179.5, -17), (-179.5, -18)])
    #expect(!holed.contains(at(-17.5, -179.2)) && holed.contains(at(-17.5, 179.2)))
    let northOfFiji = try polygon([(-178, 0), (178, 0), (178, 5), (-178, 5), (-178, 0)])
    #expect(northOfFiji.contains(at(1, 179)) && !northOfFiji.contains(at(1, 0)), "the short way, begun in the east")
  }

  @Test("A pole is in a polygon that is cut as RFC 7946 §3.1.9 says; a ring around it is refused")
  func poles() throws {
    let cap = try polygon([(-180, 60), (0, 60), (180, 60), (180, 90), (-180, 90), (-180, 60)])
    #expect(cap.contains(at(90, 12)) && cap.contains(at(75, -180)) && cap.contains(at(60, 33)))
    #expect(!cap.contains(at(59.99, 33)) && cap.boundingBox.widthDegrees == 360)
    let exact = 2 * Double.pi * earthRadiusMeters * earthRadiusMeters * (1 - 3.0.squareRoot() / 2)
    #expect(abs(cap.areaSquareMeters / exact - 1) < 1e-12)
    let south = try polygon([(-180, -90), (180, -90), (180, -70), (-180, -70), (-180, -90)])
    #expect(south.contains(at(-90, 100)) && south.contains(at(-80, 1)) && !south.contains(at(-60, 1)))
    #expect(throws: PolygonError.aroundPole(ring: 0)) {
      try polygon([(0, 60), (120, 60), (-120, 60), (0, 60)])
    }
  }

  @Test("The area of a box is that of the zone between its parallels, wherever it is")
  func area() throws {
    #expect(abs(try polygon(square).areaSquareMeters / 1.233e12 - 1) < 0.01)
    var random = SplitMix64(seed: 3)
    for _ in 0..<200 {
      let south = Double.random(in: -85...80, using: &random)
      let north = south + Double.random(in: 0.001...5, using: &random)
      let west = Double.random(in: -180...170, using: &random)
      let east = west + Double.random(in: 0.001...9, using: &random)
      let box = try polygon([(west, south), (east, south), (east, north), (west, north), (west, south)])
      let sines = SineCosine(degrees: north).sine - SineCosine(degrees: south).sine
      let exact = sines * (east - west) * .pi / 180 * earthRadiusMeters * earthRadiusMeters
      #expect(abs(box.areaSquareMeters / exact - 1) < 1e-5)
    }
  }

  @Test("What is no polygon is refused, and the error says where it is wrong")
  func refused() {
    func error(_ rings: [(Double, Double)]..., limit: Int = 1000) -> PolygonError? {
      do throws(PolygonError) {
        _ = try Polygon(rings: rings.map { ring($0) }, limit: limit)
        return nil
      } catch { return error }
    }
    #expect(error() == .noRing)
    #expect(error([(0, 0), (1, 1), (0, 0)]) == .tooFewPositions(ring: 0))
    #expect(error([(0, 0), (1, 0), (1, 1), (0, 1)]) == .notClosed(ring: 0))
    #expect(
      error([(0, 0), (1, 1), (2, 2), (0, 0)]) == .selfCrossing(ring: 0, edge: 0, and: 1)
        || error([(0, 0), (1, 1), (2, 2), (0, 0)]) == .noArea(ring: 0))
    #expect(error([(3, 3), (3, 3), (3, 3), (3, 3)]) == .noArea(ring: 0))
    #expect(error([(0, 0), (1, 1), (1, 0), (0, 1), (0, 0)]) == .selfCrossing(ring: 0, edge: 0, and: 2))
    #expect(error([(0, 0), (2, 0), (2, 2), (1, 0), (0, 2), (0, 0)]) != nil, "touches its own edge")
    #expect(error([(0, 0), (2, 0), (4, 0), (2, 0), (2, 2), (0, 0)]) != nil, "goes there and back")
    #expect(error(square, [(4, 4), (16, 4), (6, 6), (4, 4)]) == .ringsCross(0, 1))
    #expect(error(square, [(40, 4), (46, 4), (46, 6), (40, 4)]) == .holeOutside(ring: 1))
    #expect(error(square, limit: 4) == .tooManyPositions(limit: 4))
    #expect(error(square, [(1, 1), (2, 1), (1, 1)]) == .tooFewPositions(ring: 1))
  }

  @Test("A hole may touch the border in a point")
  func touching() throws {
    let touching = try polygon(square, [(0, 5), (2, 4), (2, 6), (0, 5)])
    #expect(touching.contains(at(5, 0)) && !touching.contains(at(5, 1)))
  }
}

@Suite struct PolygonOracleTests {
  /// A ring of so many corners around a centre, in the order of their directions: it never crosses itself.
  static func star(_ center: Coordinate, corners: Int, degrees: Double, _ random: inout SplitMix64) -> [Coordinate] {
    var positions: [Coordinate] = []
    for corner in 0..<corners {
      let direction = (Double(corner) + .random(in: 0.1...0.9, using: &random)) * 360 / Double(corners)
      let reach = Double.random(in: 0.2...1, using: &random) * degrees
      let sides = SineCosine(degrees: direction)
      positions.append(
        Coordinate(
          clampingLatitude: center.latitude + (reach * sides.sine * 1e7).rounded() / 1e7,
          wrappingLongitude: center.longitude + (reach * sides.cosine * 1e7).rounded() / 1e7))
    }
    return positions + [positions[0]]
  }

  /// By the old rule of crossings of a ray to the east, with 128-bit integers, a vertex at a time.
  private func isInside(_ place: Coordinate, _ ring: [Coordinate], around center: Coordinate) -> Bool {
    func units(_ degrees: Double) -> Int128 { Int128((degrees * 1e9).rounded()) }
    func x(_ coordinate: Coordinate) -> Int128 { units(center.longitudeDifference(to: coordinate)) }
    let (px, py) = (x(place), units(place.latitude))
    var isInside = false
    for (a, b) in zip(ring, ring.dropFirst()) {
      let (ax, ay, bx, by) = (x(a), units(a.latitude), x(b), units(b.latitude))
      let cross = (bx - ax) * (py - ay) - (by - ay) * (px - ax)
      if cross == 0, px >= min(ax, bx), px <= max(ax, bx), py >= min(ay, by), py <= max(ay, by) { return true }
      guard (ay > py) != (by > py) else { continue }
      if (cross > 0) == (by > ay) { isInside.toggle() }
    }
    return isInside
  }

  @Test(
    "A star anywhere on Earth has the places that counting crossings gives it",
    arguments: [at(41.15, -8.61), at(-16.8, 180), at(70, -179.9), at(0, 0), at(-33, 151)])
  func stars(center: Coordinate) throws {
    var random = SplitMix64(seed: 7)
    for degrees in [0.01, 0.5, 15] {
      for corners in [3, 5, 40, 400] {
        let ring = Self.star(center, corners: corners, degrees: degrees, &random)
        let polygon = try Polygon(rings: [ring], limit: 1000)
        var inside = 0
        for _ in 0..<300 {
          let place = Coordinate(
            clampingLatitude: center.latitude + .random(in: -1.1...1.1, using: &random) * degrees,
            wrappingLongitude: center.longitude + .random(in: -1.1...1.1, using: &random) * degrees)
          let expected = isInside(place, ring, around: center)
          #expect(polygon.contains(place) == expected)
          if expected { inside += 1 }
          if expected { #expect(polygon.boundingBox.contains(place)) }
        }
        for vertex in ring { #expect(polygon.contains(vertex)) }
        #expect(inside > 5)
      }
    }
  }

  @Test("Rings are refused for crossing themselves exactly if two edges of all pairs cross")
  func crossings() {
    var random = SplitMix64(seed: 11)
    var refused = 0
    for _ in 0..<3_000 {
      let count = Int.random(in: 3...7, using: &random)
      // A coarse grid, so that touching and lying on one line happen often.
      var positions = (0..<count).map { _ in
        at(Double(Int.random(in: 0...4, using: &random)), Double(Int.random(in: 0...4, using: &random)))
      }
      positions.append(positions[0])
      var distinct: [Coordinate] = []
      for position in positions where distinct.last != position { distinct.append(position) }
      var isSimple = distinct.count >= 4
      if isSimple {
        let points = distinct.map { PlanePoint($0) }
        let edges = points.count - 1
        for i in 0..<edges {
          for j in 0..<edges where i < j {
            let isNext = j == i + 1 || i == 0 && j == edges - 1
            let relation = EdgeRelation(points[i], points[i + 1], and: points[j], points[j + 1])
            if relation != (isNext ? .touching : .apart) { isSimple = false }
          }
        }
      }
      do throws(PolygonError) {
        _ = try Polygon(rings: [positions], limit: 10)
        #expect(isSimple, "\(positions)")
      } catch {
        #expect(!isSimple, "\(positions) \(error)")
        refused += 1
      }
    }
    #expect(refused > 500 && refused < 2_900)
  }
}
