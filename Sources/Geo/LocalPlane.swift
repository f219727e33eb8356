// A flat map around one place: metres east and north, for filters that work in straight lines.
//
// Scales are the WGS 84 ellipsoid's own at the origin: M = a(1 − e²) / (1 − e² sin²φ)^1.5 along the meridian and
// N cos φ, N = a / √(1 − e² sin²φ), along the parallel (any geodesy text; e.g. Snyder, USGS PP 1395, §3). So short
// distances are right on the ellipsoid, where the sphere's are up to 0.56 % off.

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The WGS 84 ellipsoid (NIMA TR8350.2): its two defining constants and what follows from them.
public enum WGS84 {
  public static let semiMajorAxisMeters = 6_378_137.0
  public static let flattening = 1 / 298.257_223_563
  /// e² = f(2 − f).
  public static let eccentricitySquared = flattening * (2 - flattening)
}

/// A tangent map: a point on it is metres east and north of the origin.
///
/// Scale error at (e, n) metres from the origin at latitude φ: along the parallel n·tan φ / 6.4e6 (at 60° and 10 km
/// north 0.27 %), along the meridian under n·1.5e−9 (10 km: 0.002 %). To map there and back gives the same place to
/// 1 nm at any distance that does not leave the map.
///
/// The longitude difference is taken the short way round, so the antimeridian is like any other. Towards a pole the
/// map shears: within 0.01° (1.1 km) of a pole the parallel's scale is held at its value there, so that every point
/// still has a place; directions there mean little.
public struct LocalPlane: Sendable, Hashable {
  public let origin: Coordinate
  /// Metres to a degree of longitude at the origin: about 111,320 · cos φ; never under 19.
  public let metersPerDegreeEast: Double
  /// Metres to a degree of latitude at the origin: 110,574 (equator) to 111,694 (pole).
  public let metersPerDegreeNorth: Double
  @usableFromInline let degreesPerMeterEast: Double
  @usableFromInline let degreesPerMeterNorth: Double

  /// Latitudes beyond this use its parallel's scale.
  @usableFromInline static let steepestLatitude = 89.99

  /// Costs one sine, one cosine and a root; mapping costs none.
  public init(origin: Coordinate) {
    self.origin = origin
    let limit = LocalPlane.steepestLatitude
    let phi = min(limit, max(-limit, origin.latitude)) * radiansPerDegree
    let sine = sin(phi)
    let w2 = 1 - WGS84.eccentricitySquared * sine * sine
    let primeVertical = WGS84.semiMajorAxisMeters / w2.squareRoot()
    let meridian = primeVertical * (1 - WGS84.eccentricitySquared) / w2
    metersPerDegreeEast = primeVertical * cos(phi) * radiansPerDegree
    metersPerDegreeNorth = meridian * radiansPerDegree
    degreesPerMeterEast = 1 / metersPerDegreeEast
    degreesPerMeterNorth = 1 / metersPerDegreeNorth
  }

  /// Metres east of the origin, the short way round: negative to the west.
  @inlinable public func east(of coordinate: Coordinate) -> Double {
    origin.longitudeDifference(to: coordinate) * metersPerDegreeEast
  }

  /// Metres north of the origin: negative to the south.
  @inlinable public func north(of coordinate: Coordinate) -> Double {
    (coordinate.latitude - origin.latitude) * metersPerDegreeNorth
  }

  /// The place at metres east and north of the origin. Finite values only (a precondition); beyond a pole it is on the
  /// pole's parallel, beyond the antimeridian it is wrapped.
  @inlinable public func coordinate(eastMeters: Double, northMeters: Double) -> Coordinate {
    Coordinate(
      clampingLatitude: origin.latitude + northMeters * degreesPerMeterNorth,
      wrappingLongitude: origin.longitude + eastMeters * degreesPerMeterEast)
  }

  /// The straight distance on the map in metres, from the origin.
  @inlinable public func distance(to coordinate: Coordinate) -> Double {
    let e = east(of: coordinate)
    let n = north(of: coordinate)
    return (e * e + n * n).squareRoot()
  }
}
