// The filter's plane on the globe: differences of places in metres, and moves by metres.
import Geo

extension MotionFilter {
  /// Metres east and north from the estimate to a place.
  @inline(__always) func displacement(to place: Coordinate) -> SIMD2<Double> {
    SIMD2(
      TrackMath.wrapped(place.longitude - longitude) * ground.metersPerLongitude,
      (place.latitude - latitude) * ground.metersPerLatitude)
  }

  @inline(__always)
  static func displacement(from first: Coordinate, to second: Coordinate, _ ground: GroundScale) -> SIMD2<Double> {
    SIMD2(
      TrackMath.wrapped(second.longitude - first.longitude) * ground.metersPerLongitude,
      (second.latitude - first.latitude) * ground.metersPerLatitude)
  }

  /// Moves the estimate by metres east and north.
  @inline(__always) mutating func shift(by meters: SIMD2<Double>) {
    latitude = min(max(latitude + meters.y / ground.metersPerLatitude, -90), 90)
    longitude = TrackMath.wrapped(longitude + meters.x / ground.metersPerLongitude)
    ground.follow(latitude)
  }
}
