// A range of latitudes and longitudes, which may cross the antimeridian (RFC 7946 §5.2: west is then east of east).

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// All places with south ≤ latitude ≤ north and a longitude reached going east from `west` to `east`; borders belong
/// to it. Where `west` > `east` it crosses the antimeridian. −180 and 180 are one meridian.
public struct BoundingBox: Sendable, Hashable, BitwiseCopyable {
  public let south: Double
  public let west: Double
  public let north: Double
  public let east: Double

  /// Nil when a value is not finite or out of range, or south is above north.
  public init?(south: Double, west: Double, north: Double, east: Double) {
    guard south >= -90, south <= north, north <= 90 else { return nil }  // NaN fails too
    guard west >= -180, west <= 180, east >= -180, east <= 180 else { return nil }
    self.init(uncheckedSouth: south, west: west, north: north, east: east)
  }

  @usableFromInline init(uncheckedSouth south: Double, west: Double, north: Double, east: Double) {
    self.south = south
    self.west = west
    self.north = north
    self.east = east
  }

  /// The smallest box around all places within `radiusMeters` of `center`, made larger by 0.1 mm so that rounding
  /// leaves none outside. Where the circle holds a pole it has all longitudes. The radius must not be negative or NaN;
  /// that is a precondition.
  public init(center: Coordinate, radiusMeters: Double) {
    precondition(radiusMeters >= 0)
    let padding = 1e-9
    let angle = radiusMeters / earthRadiusMeters
    let reach = angle * degreesPerRadian + padding
    let south = center.latitude - reach
    let north = center.latitude + reach
    // The circle's widest meridians are at sin Δλ = sin δ / cos φ, unless it reaches a pole.
    let ratio = sin(min(angle, .pi / 2)) / cos(center.latitude * radiansPerDegree)
    guard south > -90, north < 90, angle < .pi / 2, ratio < 1 else {
      self.init(uncheckedSouth: max(-90, south), west: -180, north: min(90, north), east: 180)
      return
    }
    let sideways = asin(ratio) * degreesPerRadian * (1 + 1e-9) + padding
    guard sideways < 180 else {
      self.init(uncheckedSouth: south, west: -180, north: north, east: 180)
      return
    }
    self.init(
      uncheckedSouth: south, west: Coordinate.wrappedLongitude(center.longitude - sideways),
      north: north, east: Coordinate.wrappedLongitude(center.longitude + sideways))
  }

  /// Whether it crosses the antimeridian.
  @inlinable public var crossesAntimeridian: Bool { west > east }

  /// Degrees of longitude from west to east: 0…360.
  @inlinable public var widthDegrees: Double { crossesAntimeridian ? east - west + 360 : east - west }

  /// The centre; of a box across the antimeridian too.
  public var center: Coordinate {
    Coordinate(clampingLatitude: (south + north) * 0.5, wrappingLongitude: west + widthDegrees * 0.5)
  }

  /// Whether the coordinate is inside or on the border.
  @inlinable public func contains(_ coordinate: Coordinate) -> Bool {
    coordinate.latitude >= south && coordinate.latitude <= north && contains(longitude: coordinate.longitude)
  }

  /// Whether the meridian passes through it. −180…180 only.
  @inlinable public func contains(longitude: Double) -> Bool {
    if crossesAntimeridian { return longitude >= west || longitude <= east }
    if longitude >= west && longitude <= east { return true }
    return longitude == -180 && east == 180 || longitude == 180 && west == -180
  }

  /// Its area on the sphere, in square metres.
  public var squareMeters: Double {
    let height = sin(north * radiansPerDegree) - sin(south * radiansPerDegree)
    return earthRadiusMeters * earthRadiusMeters * height * widthDegrees * radiansPerDegree
  }
}
