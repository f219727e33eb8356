// The driver index with a city in it: 100,000 drivers, as dense everywhere as one has 1,400 within a kilometre.

import HubCore
import HubGeo

struct IndexBench: ~Copyable {
  static let drivers = 100_000
  private static let center = Coordinate(clampingLatitude: 41.15, wrappingLongitude: -8.61)
  /// Metres: 100,000 drivers at 445 a square kilometre.
  private static let radius = 8_450.0

  private var index = DriverIndex(capacity: IndexBench.drivers)
  private var hits: [DriverHit] = []
  private var places: [Coordinate] = []
  /// A different place each call, the same ones each run.
  private var state: UInt64 = 1

  init() {
    places.reserveCapacity(IndexBench.drivers)
    for driver in 0..<IndexBench.drivers {
      let place = place()
      places.append(place)
      index.move(UInt32(driver), to: place)
    }
  }

  /// 0 ..< 1, by a linear congruence (Knuth, MMIX).
  private mutating func random() -> Double {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Double(state >> 11) * 0x1p-53
  }

  private mutating func place() -> Coordinate {
    let distance = IndexBench.radius * random().squareRoot()
    return IndexBench.center.destination(bearingDegrees: random() * 360, distanceMeters: distance)
  }

  /// Of somewhere in the inner city, where the circle is within the whole.
  private mutating func somewhere() -> Coordinate {
    let old = places[Int(random() * Double(IndexBench.drivers))]
    return Coordinate(
      clampingLatitude: IndexBench.center.latitude + (old.latitude - IndexBench.center.latitude) * 0.8,
      wrappingLongitude: IndexBench.center.longitude + (old.longitude - IndexBench.center.longitude) * 0.8)
  }

  mutating func nearest() -> Int {
    hits.removeAll(keepingCapacity: true)
    let place = somewhere()
    let outcome = index.nearest(to: place, limit: 10, into: &hits)
    precondition(outcome == .complete, "within budget")
    return hits.count
  }

  /// One driver goes some 15 m.
  mutating func move() -> Int {
    let driver = Int(random() * Double(IndexBench.drivers))
    let old = places[driver]
    let new = Coordinate(
      clampingLatitude: old.latitude + (random() - 0.5) * 0.0003,
      wrappingLongitude: old.longitude + (random() - 0.5) * 0.0003)
    places[driver] = new
    index.move(UInt32(driver), to: new)
    return driver
  }
}
