// Places for tests: written ones, and ones at random.

import Glibc  // asin
public import HubGeo

/// A coordinate written in a test.
public func at(_ latitude: Double, _ longitude: Double) -> Coordinate {
  Coordinate(latitude: latitude, longitude: longitude)!
}

extension SplitMix64 {
  /// Evenly spread over the sphere, with the corners of the map thrown in.
  public mutating func coordinate() -> Coordinate {
    if Int.random(in: 0..<16, using: &self) == 0 {
      return at(
        [-90.0, -45, 0, 45, 90].randomElement(using: &self)!, [-180.0, -90, 0, 90, 180].randomElement(using: &self)!)
    }
    let sine = Double.random(in: -1...1, using: &self)
    return Coordinate(
      clampingLatitude: asin(sine) * 180 / .pi, wrappingLongitude: .random(in: -180...180, using: &self))
  }
}
