// How long queries hold the hub's thread: the longest turn of the worst that the limits allow, in a city of very many
// drivers.
//
// A turn's time is the CPU time of its thread, so that other work on the machine counts little. Each query is asked
// several times, and the round with the shortest longest turn is reported: what is left of chance only ever adds.

import Glibc
import HubBytes
import HubCore
import HubGeo
import HubMessages

enum QueryBench {
  private static let rounds = 5
  private static let middle = Coordinate(clampingLatitude: 41.15, wrappingLongitude: -8.1)

  static func run(drivers: Int) {
    // As dense as 100,000 within 8.5 km: 445 a square kilometre.
    let spread = 0.15 * (Double(drivers) / 100_000).squareRoot()
    var city = City(drivers: drivers, spread: spread)
    print("\(drivers) drivers in a city")
    for (name, search, audience) in cases(spread: spread) { report(name, &city, [search], audience) }
    let nearest = DriverSearch(area: .nearby(middle, radiusMeters: nil), limit: 10)
    report("256 at once, the nearest 10", &city, Array(repeating: nearest, count: 256), .ops)
    let box = DriverSearch(area: .box(box(spread)), limit: 1000)
    report("256 at once, 1,000 in a box of the city", &city, Array(repeating: box, count: 256), .ops)
    city.advance(seconds: 400)
    repeat { city.turn([]) } while city.hub.hasMoreDue
    let stale = DriverFilter(includesStale: true)
    report(
      "all stale: the nearest 1,000", &city,
      [DriverSearch(area: .nearby(middle, radiusMeters: nil), limit: 1000, filter: stale)], .ops)
    var spot = City(drivers: drivers, spread: 0)
    print("\(drivers) drivers on one spot")
    for (name, search, audience) in cases(spread: 1e-3) { report(name, &spot, [search], audience) }
  }

  private static func cases(spread: Double) -> [(String, DriverSearch, Audience)] {
    func text(_ text: String) -> InlineText {
      guard let text = InlineText(text) else { preconditionFailure("it is short") }
      return text
    }
    let around = DriverSearch.Area.nearby(middle, radiusMeters: nil)
    let inBox = DriverSearch.Area.box(box(spread))
    let none = DriverFilter(vehicleType: text("none"))
    let noTag = DriverFilter(tags: City.tags.dropLast() + [text("none")])
    let fresh = DriverFilter(maxAge: 0)
    let pole = DriverSearch.Area.nearby(Coordinate(clampingLatitude: 90, wrappingLongitude: 0), radiusMeters: nil)
    return [
      ("the nearest 10", DriverSearch(area: around, limit: 10), .ops),
      ("the nearest 1,000", DriverSearch(area: around, limit: 1000), .ops),
      ("the nearest 1,000 from a pole", DriverSearch(area: pole, limit: 1000), .ops),
      ("the nearest 100, for a rider", DriverSearch(area: around, limit: 100), .riders),
      ("the nearest of a type that nobody has", DriverSearch(area: around, limit: 1000, filter: none), .ops),
      ("the nearest with tags that nobody has", DriverSearch(area: around, limit: 1000, filter: noTag), .ops),
      ("the nearest of an age that nobody has", DriverSearch(area: around, limit: 1000, filter: fresh), .ops),
      ("1,000 in a box of the city", DriverSearch(area: inBox, limit: 1000), .ops),
      ("100 in the box, for a rider", DriverSearch(area: inBox, limit: 100), .riders),
      ("in the box, of an age that nobody has", DriverSearch(area: inBox, limit: 1000, filter: fresh), .ops),
      ("1,000 in a star of 1,000 positions", DriverSearch(area: .polygons(star(spread)), limit: 1000), .ops),
      ("100 in the star, for a rider", DriverSearch(area: .polygons(star(spread)), limit: 100), .riders),
      ("1,000 in 200 triangles", DriverSearch(area: .polygons(triangles(spread)), limit: 1000), .ops),
    ]
  }

  private static func box(_ spread: Double) -> BoundingBox {
    guard
      let box = BoundingBox(
        south: middle.latitude - spread, west: middle.longitude - spread, north: middle.latitude + spread,
        east: middle.longitude + spread)
    else { preconditionFailure("it is on Earth") }
    return box
  }

  /// A ring of as many positions as there may be, near and far in turn.
  private static func star(_ spread: Double) -> MultiPolygon {
    var ring = (0..<DriverSearch.maximumPositions - 1).map { corner in
      middle.destination(
        bearingDegrees: Double(corner) * 360 / Double(DriverSearch.maximumPositions - 1),
        distanceMeters: spread * 111_195 * (corner % 2 == 0 ? 0.3 : 0.7))
    }
    ring.append(ring[0])
    return polygons([[ring]])
  }

  private static func triangles(_ spread: Double) -> MultiPolygon {
    let rings = (0..<200).map { number in
      let place = middle.destination(
        bearingDegrees: Double(number) * 137.5, distanceMeters: spread * 55_000 * (Double(number) / 200).squareRoot())
      var ring = (0..<4).map {
        place.destination(bearingDegrees: Double($0) * 90, distanceMeters: spread * 2_000)
      }
      ring.append(ring[0])
      return [ring]
    }
    return polygons(rings)
  }

  private static func polygons(_ positions: [[[Coordinate]]]) -> MultiPolygon {
    do throws(MultiPolygonError) {
      return try MultiPolygon(positions, limit: DriverSearch.maximumPositions)
    } catch {
      preconditionFailure("\(error)")
    }
  }

  private static func report(_ name: String, _ city: inout City, _ searches: [DriverSearch], _ audience: Audience) {
    var best = Turns()
    for round in 0..<rounds {
      let turns = city.ask(searches, audience)
      if round == 0 || turns.longest < best.longest { best = turns }
    }
    print("  \(name): \(best)")
    fflush(nil)
  }
}
