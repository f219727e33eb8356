// Metres to degrees and back, around where the driver is.
//
// The filter's plane is centred on the estimate at each step, so no driver ever gets far from its origin: there is no
// antimeridian and no growing error. Only the scale at a latitude is stored, which is computed again when the driver
// has moved 1 km north or south. Scale: WGS 84 radii of curvature in the meridian (M)
// and the prime vertical (N), e.g. Snyder, Map Projections: A Working Manual (1987), p. 24 f.
// Beyond 88° meridians converge too fast for that, and `PolarCap` is used.
import HubGeo

/// Metres for each degree of latitude and longitude at a latitude. Relative error < 2e-4 · tan(latitude) within
/// `reach`; differences of 100 m are right to 1 cm up to 85°, and 3 cm up to 88°.
struct GroundScale: Sendable, Equatable, BitwiseCopyable {
  private(set) var metersPerLatitude: Double
  private(set) var metersPerLongitude: Double
  /// Degrees: the latitude for which the scale was computed.
  private(set) var latitude: Double

  /// In degrees: 1.1 km.
  private static let reach = 0.01

  init(latitude: Double) {
    let sine = TrackMath.sine(degrees: latitude)
    let w = 1 - WGS84.eccentricitySquared * sine * sine
    let primeVertical = WGS84.semiMajorAxisMeters / w.squareRoot()
    metersPerLatitude = TrackMath.radiansPerDegree * primeVertical * (1 - WGS84.eccentricitySquared) / w
    metersPerLongitude = TrackMath.radiansPerDegree * primeVertical * TrackMath.cosine(degrees: latitude)
    self.latitude = latitude
  }

  /// Follows the driver to another latitude.
  @inline(__always) mutating func follow(_ latitude: Double) {
    if abs(latitude - self.latitude) > GroundScale.reach { self = GroundScale(latitude: latitude) }
  }

  /// Metres from `first` to `second`, with east and north as at `first`.
  @inline(__always)
  func displacement(from first: Coordinate, to second: Coordinate) -> SIMD2<Double> {
    guard abs(first.latitude) < PolarCap.edge else { return PolarCap.displacement(from: first, to: second) }
    return meters(latitude: second.latitude - first.latitude, longitude: second.longitude - first.longitude)
  }

  /// Metres east and north of a difference in degrees, which may cross the antimeridian.
  @inline(__always) func meters(latitude: Double, longitude: Double) -> SIMD2<Double> {
    SIMD2(TrackMath.wrapped(longitude) * metersPerLongitude, latitude * metersPerLatitude)
  }
}

/// The plane around a pole: azimuthal equidistant, with the pole in its centre. It stretches distances across the
/// meridians by (colatitude)² / 6: 2e-4 at the edge, nothing at the pole.
enum PolarCap {
  /// Degrees north and south.
  static let edge = 88.0
  /// WGS 84 meridian radius at a pole, a / √(1 − e²), as metres for each degree.
  private static let metersPerLatitude = 6_399_593.625_76 * TrackMath.radiansPerDegree

  /// A point of the plane with the directions of east and north there.
  struct Frame {
    var point: SIMD2<Double>
    var east: SIMD2<Double>
    var north: SIMD2<Double>

    /// At the longitude whose direction from the pole has this sine and cosine.
    init(point: SIMD2<Double>, sine: Double, cosine: Double, isNorth: Bool) {
      self.point = point
      let outward = SIMD2(cosine, sine)
      east = SIMD2(-sine, cosine)
      north = isNorth ? -outward : outward
    }
  }

  static func frame(of place: Coordinate) -> Frame { frame(of: place, isNorth: place.latitude > 0) }

  private static func frame(of place: Coordinate, isNorth: Bool) -> Frame {
    let radius = (90 - (isNorth ? place.latitude : -place.latitude)) * metersPerLatitude
    let (sine, cosine) = (TrackMath.sine(degrees: place.longitude), TrackMath.cosine(degrees: place.longitude))
    return Frame(
      point: SIMD2(cosine, sine) * radius, sine: sine, cosine: cosine, isNorth: isNorth)
  }

  static func displacement(from first: Coordinate, to second: Coordinate) -> SIMD2<Double> {
    let isNorth = first.latitude > 0
    let here = frame(of: first, isNorth: isNorth)
    let way = frame(of: second, isNorth: isNorth).point - here.point
    return SIMD2((way * here.east).sum(), (way * here.north).sum())
  }

  /// The place that lies metres east and north of `start`.
  static func place(from start: Coordinate, by meters: SIMD2<Double>) -> (latitude: Double, longitude: Double) {
    let here = frame(of: start)
    let point = here.point + here.east * meters.x + here.north * meters.y
    let latitude = 90 - (point * point).sum().squareRoot() / metersPerLatitude
    // East of the meridian 0 is +y here, which `bearing` takes as its east.
    let longitude = TrackMath.wrapped(TrackMath.bearing(east: point.y, north: point.x))
    return (start.latitude > 0 ? latitude : -latitude, longitude)
  }
}
