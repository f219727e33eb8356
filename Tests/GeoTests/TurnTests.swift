import HubGeo
import Testing

@Suite("Turns")
struct TurnTests {
  @Test("Straight on, it is the great circle's end, but for the ellipsoid", arguments: [0.0, 48, -84, 86, 89.999, -90])
  func straight(latitude: Double) throws {
    let start = try #require(Coordinate(latitude: latitude, longitude: 179.999))
    for bearing in [0.0, 90, 200, 359] {
      let arrival = start.arrival(bearingDegrees: bearing, distanceMeters: 300)
      #expect(arrival.distance(to: start.destination(bearingDegrees: bearing, distanceMeters: 300)) < 300 * 0.006)
    }
    #expect(start.arrival(bearingDegrees: 90, distanceMeters: 0).distance(to: start) < 0.001)
  }

  @Test("A quarter of a circle ends a radius ahead and a radius to its side", arguments: [1.0, -1])
  func quarter(side: Double) throws {
    let start = try #require(Coordinate(latitude: 48, longitude: 11))
    let arrival = start.arrival(
      bearingDegrees: 0, distanceMeters: 100 * .pi / 2, turnDegrees: 90 * side)
    let plane = LocalPlane(origin: start)
    #expect(abs(plane.north(of: arrival) - 100) < 0.01 && abs(plane.east(of: arrival) - 100 * side) < 0.01)
  }

  @Test("A whole circle ends where it began; a hardly noticeable turn is a straight line")
  func limits() throws {
    let start = try #require(Coordinate(latitude: 48, longitude: 11))
    #expect(start.arrival(bearingDegrees: 30, distanceMeters: 500, turnDegrees: 360).distance(to: start) < 0.001)
    let straight = start.arrival(bearingDegrees: 30, distanceMeters: 500)
    for turn in [1e-12, 0.01, 0.02] {
      let bent = start.arrival(bearingDegrees: 30, distanceMeters: 500, turnDegrees: turn)
      #expect(bent.distance(to: straight) < 0.1)
    }
  }
}
