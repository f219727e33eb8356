// The position after moving at constant speed and turn rate.
//
// The path is an arc of a circle; its chord points half the turn to the side of the start's direction, and is sin(x)/x
// times the arc for half the turn x. Bar-Shalom, Li, Kirubarajan, Estimation with Applications to Tracking and
// Navigation (2001), §11.7.1 (coordinated turn), in polar form.

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

extension Coordinate {
  /// The place reached after `distanceMeters` along an arc that leaves in the direction of `bearingDegrees` (clockwise
  /// from true north) and turns by `turnDegrees` on its way, positive to the right.
  ///
  /// On the ellipsoid (`LocalPlane`) below 85° of latitude, on the sphere beyond. For distances up to a few kilometres.
  /// All arguments must be finite (a precondition). About 60 ns.
  public func arrival(bearingDegrees: Double, distanceMeters: Double, turnDegrees: Double = 0) -> Coordinate {
    let half = turnDegrees * 0.5 * radiansPerDegree
    let chord = abs(half) < 1e-4 ? distanceMeters : distanceMeters * sin(half) / half
    let direction = bearingDegrees + turnDegrees * 0.5
    guard abs(latitude) < 85 else { return destination(bearingDegrees: direction, distanceMeters: chord) }
    let plane = LocalPlane(origin: self)
    return plane.coordinate(
      eastMeters: chord * sin(direction * radiansPerDegree), northMeters: chord * cos(direction * radiansPerDegree))
  }
}
