import HubGeo
import HubTestSupport
import Testing

@Suite struct LocalPlaneTests {
  @Test(
    "A degree has the lengths of the WGS 84 tables",
    arguments: [
      (0.0, 110_574.28, 111_319.49), (45, 111_131.78, 78_846.81), (60, 111_412.24, 55_799.98),
      (-45, 111_131.78, 78_846.81),
    ])
  func degrees(latitude: Double, north: Double, east: Double) {
    let plane = LocalPlane(origin: at(latitude, 7))
    #expect(abs(plane.metersPerDegreeNorth - north) < 0.5)
    #expect(abs(plane.metersPerDegreeEast - east) < 0.5)
  }

  @Test("To the map and back gives the same place, at the antimeridian and at the poles too")
  func roundTrip() {
    var random = SplitMix64(seed: 3)
    for _ in 0..<20_000 {
      let origin = random.coordinate()
      let plane = LocalPlane(origin: origin)
      let (e, n) = (
        Double.random(in: -30_000...30_000, using: &random), Double.random(in: -30_000...30_000, using: &random)
      )
      let place = plane.coordinate(eastMeters: e, northMeters: n)
      guard abs(origin.latitude) < 89 else { continue }  // there the map ends at the pole
      #expect(abs(plane.east(of: place) - e) < 1e-8 && abs(plane.north(of: place) - n) < 2e-9)
    }
  }

  @Test("East is positive over the antimeridian")
  func antimeridian() {
    let plane = LocalPlane(origin: at(-16, 179.999))
    #expect(plane.east(of: at(-16, -179.999)) > 200 && plane.east(of: at(-16, -179.999)) < 220)
    let there = plane.coordinate(eastMeters: 1_000, northMeters: 0)
    #expect(there.longitude < -179.99 && there.longitude > -180)
  }

  @Test("At and near a pole every point of the map is still a place")
  func poles() {
    for latitude in [90.0, -90, 89.9999, -89.9999, 89.98] {
      let plane = LocalPlane(origin: at(latitude, 170))
      #expect(plane.metersPerDegreeEast > 19)
      for e in [-1e6, -10, 0, 10, 1e6] {
        for n in [-1e8, -10, 0, 10, 1e8] {
          let place = plane.coordinate(eastMeters: e, northMeters: n)
          #expect(Coordinate(latitude: place.latitude, longitude: place.longitude) == place)
        }
      }
    }
  }

  @Test("Short distances agree with the sphere's to its own 0.6 %")
  func againstSphere() {
    var random = SplitMix64(seed: 4)
    for _ in 0..<5_000 {
      let origin = random.coordinate()
      if abs(origin.latitude) > 80 { continue }
      let there = origin.destination(bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: 500)
      #expect(abs(LocalPlane(origin: origin).distance(to: there) - 500) < 3)
    }
  }
}
