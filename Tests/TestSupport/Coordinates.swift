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

extension GeohashCell {
  /// The cell with this text.
  public init?(_ text: String) { self.init(utf8: text.utf8) }
}

extension BoundingBox {
  /// The whole Earth.
  public static var world: BoundingBox { BoundingBox(south: -90, west: -180, north: 90, east: 180)! }

  /// Whether the two have at least a point in common.
  public func intersects(_ other: BoundingBox) -> Bool {
    guard south <= other.north, other.south <= north else { return false }
    return contains(longitude: other.west) || contains(longitude: other.east) || other.contains(longitude: west)
  }

  /// Whether every point of the other is in this one.
  public func contains(_ other: BoundingBox) -> Bool {
    guard south <= other.south, other.north <= north else { return false }
    if widthDegrees >= 360 { return true }
    // One that spans the gap of a wide box, and has both ends in it, goes all the way round from where this one begins.
    let start = (other.west - west + 360).truncatingRemainder(dividingBy: 360)
    return contains(longitude: other.west) && contains(longitude: other.east) && start + other.widthDegrees < 360
  }
}
