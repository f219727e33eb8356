// Metres to degrees and back, around where the driver is.
//
// The filter's plane is centred anew on the estimate at each step, so no driver ever gets far from its origin: there
// is no re-centring, no antimeridian and no growing error. What is kept is only the scale at a latitude, which is
// computed again when the driver has moved 1 km north or south. Scale: WGS 84 radii of curvature in the meridian (M)
// and the prime vertical (N), e.g. Snyder, Map Projections: A Working Manual (1987), p. 24 f.
import Geo

/// Metres for each degree of latitude and longitude at a latitude. Relative error < 2e-4 · tan(latitude) within
/// `reach`; differences of 100 m are right to 1 cm up to 85°.
struct GroundScale: Sendable, Equatable {
  private(set) var metersPerLatitude: Double
  private(set) var metersPerLongitude: Double
  private var latitude: Double

  private static let semiMajorAxis = 6_378_137.0  // WGS 84 defining parameter a
  private static let eccentricitySquared = 0.006_694_379_990_141_317  // f (2 − f), f = 1 / 298.257223563
  /// In degrees: 1.1 km.
  private static let reach = 0.01

  init(latitude: Double) {
    let sine = TrackMath.sine(degrees: latitude)
    let w = 1 - GroundScale.eccentricitySquared * sine * sine
    let primeVertical = GroundScale.semiMajorAxis / w.squareRoot()
    metersPerLatitude = TrackMath.radiansPerDegree * primeVertical * (1 - GroundScale.eccentricitySquared) / w
    // Never 0, so that a division by it stays finite at a pole.
    let cosine = max(TrackMath.cosine(degrees: latitude), 1e-9)
    metersPerLongitude = TrackMath.radiansPerDegree * primeVertical * cosine
    self.latitude = latitude
  }

  /// Follows the driver to another latitude.
  @inline(__always) mutating func follow(_ latitude: Double) {
    if abs(latitude - self.latitude) > GroundScale.reach { self = GroundScale(latitude: latitude) }
  }
}
