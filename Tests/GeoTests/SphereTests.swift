import Foundation
import HubGeo
import HubTestSupport
import Testing

@Suite struct SphereTests {
  /// The textbook formula, as an oracle.
  private func haversine(_ a: Coordinate, _ b: Coordinate) -> Double {
    func radians(_ degrees: Double) -> Double { degrees * .pi / 180 }
    let latitude = sin(radians(b.latitude - a.latitude) / 2)
    let longitude = sin(radians(b.longitude - a.longitude) / 2)
    let h =
      latitude * latitude + cos(radians(a.latitude)) * cos(radians(b.latitude)) * longitude * longitude
    return 2 * earthRadiusMeters * atan2(h.squareRoot(), max(0, 1 - h).squareRoot())
  }

  @Test("Sine and cosine of degrees agree with the C library's to 1e-15 and are exact at right angles")
  func sineCosine() {
    for step in -7_300...7_300 {
      let degrees = Double(step) * 0.0987
      let mine = SineCosine(degrees: degrees)
      #expect(abs(mine.sine - sin(degrees * .pi / 180)) < 3e-15)
      #expect(abs(mine.cosine - cos(degrees * .pi / 180)) < 3e-15)
      #expect(abs(mine.sine * mine.sine + mine.cosine * mine.cosine - 1) < 5e-16)
    }
    let exact: [(Double, Double, Double)] = [
      (0, 0, 1), (90, 1, 0), (180, 0, -1), (270, -1, 0), (-90, -1, 0), (-180, 0, -1), (450, 1, 0), (360, 0, 1),
    ]
    for (degrees, sine, cosine) in exact {
      let mine = SineCosine(degrees: degrees)
      #expect(mine.sine == sine && mine.cosine == cosine)
    }
    #expect(abs(SineCosine(degrees: 30).sine - 0.5) < 1e-16 && abs(SineCosine(degrees: 60).cosine - 0.5) < 2e-16)
  }

  @Test("Distances equal the textbook haversine to a micrometre, near and far")
  func distances() {
    var random = SplitMix64(seed: 1)
    for _ in 0..<20_000 {
      let a = random.coordinate()
      let far = random.coordinate()
      let expected = haversine(a, far)
      // The textbook formula itself is good to centimetres only towards the antipode.
      if expected < 19_000_000 { #expect(abs(a.distance(to: far) - expected) < 1e-6) }
      let step = pow(10, Double.random(in: -3...6, using: &random))
      let near = a.destination(bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: step)
      #expect(abs(a.distance(to: near) - step) < 2e-8)
      #expect(a.distance(to: near) == near.distance(to: a))
    }
  }

  @Test("Distances are right where they are hard")
  func edges() {
    let half = Double.pi * earthRadiusMeters
    #expect(at(0, 0).distance(to: at(0, 0)) == 0)
    #expect(at(10, 180).distance(to: at(10, -180)) == 0)
    #expect(at(90, 12).distance(to: at(90, -77)) == 0)
    #expect(abs(at(90, 0).distance(to: at(-90, 0)) - half) < 1e-8)
    #expect(abs(at(0, 0).distance(to: at(0, 180)) - half) < 1e-8)
    #expect(abs(at(0, 0).distance(to: at(0, 179.999_999)) - half * (1 - 1e-6 / 180)) < 1e-6)
    #expect(abs(at(0, 179.9).distance(to: at(0, -179.9)) - 0.2 * half / 180) < 1e-7)
    #expect(abs(at(0, 0).distance(to: at(0, 90)) - half / 2) < 1e-8)
  }

  @Test("Bearings of the four directions, over the antimeridian and at a pole")
  func bearings() {
    #expect(at(10, 20).bearing(to: at(11, 20)) == 0)
    #expect(abs(at(0, 20).bearing(to: at(0, 21)) - 90) < 1e-12)
    #expect(at(10, 20).bearing(to: at(9, 20)) == 180)
    #expect(abs(at(0, -179.9).bearing(to: at(0, 179.9)) - 270) < 1e-12)
    #expect(at(10, 20).bearing(to: at(10, 20)) == 0)
    // From the pole everything is south: along its own meridian, or to one side of it.
    #expect(abs(at(90, 0).bearing(to: at(0, 0)) - 180) < 1e-12)
    #expect(abs(at(90, 0).bearing(to: at(0, 90)) - 90) < 1e-12)
  }

  @Test("Bearing and distance lead to the destination, everywhere")
  func roundTrip() {
    var random = SplitMix64(seed: 2)
    for _ in 0..<20_000 {
      let from = random.coordinate()
      let bearing = Double.random(in: 0..<360, using: &random)
      let distance = pow(10, Double.random(in: -1...7.2, using: &random))
      let to = from.destination(bearingDegrees: bearing, distanceMeters: distance)
      #expect(abs(from.distance(to: to) - distance) < 3e-8)
      let back = from.bearing(to: to)
      #expect(back >= 0 && back < 360)
      let turn = abs(Coordinate.wrappedLongitude(back - bearing)) * .pi / 180
      let offset = turn * earthRadiusMeters * sin(distance / earthRadiusMeters)  // metres aside at the far end
      #expect(offset < 1e-7)
      let again = from.destination(bearingDegrees: bearing + 180, distanceMeters: -distance)
      #expect(again.distance(to: to) < 1e-7)
    }
  }

  @Test("A way over the pole comes down on the other side")
  func overThePole() {
    let there = at(89, 10).destination(bearingDegrees: 0, distanceMeters: 2 * .pi / 180 * earthRadiusMeters)
    #expect(abs(there.latitude - 89) < 1e-12 && abs(there.longitude + 170) < 1e-9)
    let pole = at(89, 10).destination(bearingDegrees: 0, distanceMeters: .pi / 180 * earthRadiusMeters)
    #expect(pole.distance(to: at(90, 0)) < 1e-8)
  }

  @Test("Longitudes wrap into −180…180 and differences go the short way round")
  func wrapping() {
    #expect(Coordinate.wrappedLongitude(180) == 180 && Coordinate.wrappedLongitude(-180) == -180)
    #expect(Coordinate.wrappedLongitude(181) == -179 && Coordinate.wrappedLongitude(-190) == 170)
    #expect(Coordinate.wrappedLongitude(720.5) == 0.5 && abs(Coordinate.wrappedLongitude(1e300)) <= 180)
    #expect(at(0, 179).longitudeDifference(to: at(0, -179)) == 2)
    #expect(at(0, -179).longitudeDifference(to: at(0, 179)) == -2)
    let clamped = Coordinate(clampingLatitude: 90.1, wrappingLongitude: 200)
    #expect(clamped == at(90, -160))
  }

  @Test("Distances and bearings agree with geodesic vectors as well as a sphere can")
  func vectors() throws {
    guard let rows = Vectors.rows("geodesic.csv") else { return }
    for row in rows {
      let numbers = try row.dropFirst().map { try #require(Double($0)) }
      let a = Coordinate(clampingLatitude: numbers[0], wrappingLongitude: numbers[1])
      let b = Coordinate(clampingLatitude: numbers[2], wrappingLongitude: numbers[3])
      let (geodesic, azimuth, sphere) = (numbers[4], numbers[5], numbers[6])
      #expect(abs(a.distance(to: b) - sphere) < 2e-6)
      #expect(abs(a.distance(to: b) - geodesic) <= 0.0057 * geodesic)
      if geodesic < 50_000 {
        #expect(abs(Coordinate.wrappedLongitude(a.bearing(to: b) - azimuth)) < 0.25)
        // The plane is the ellipsoid's: far better than the sphere.
        let plane = LocalPlane(
          origin: Coordinate(
            clampingLatitude: (a.latitude + b.latitude) / 2, wrappingLongitude: a.longitude))
        let east = plane.east(of: b) - plane.east(of: a)
        let north = plane.north(of: b) - plane.north(of: a)
        #expect(abs((east * east + north * north).squareRoot() - geodesic) < 2e-5 * geodesic + 1e-3)
      }
    }
    #expect(rows.count == 320)
  }
}
