// The filter's plane on the globe: the estimate's coordinate, and moves by metres.
import HubGeo

extension MotionFilter {
  /// The estimate, not rounded.
  @inline(__always) var place: Coordinate {
    guard let place = Coordinate(latitude: latitude, longitude: longitude) else {
      preconditionFailure("`shift` keeps the estimate on the globe")
    }
    return place
  }

  /// Metres east and north from the estimate to a place.
  @inline(__always) func displacement(to place: Coordinate) -> SIMD2<Double> {
    guard abs(latitude) < PolarCap.edge else { return PolarCap.displacement(from: self.place, to: place) }
    return ground.meters(latitude: place.latitude - latitude, longitude: place.longitude - longitude)
  }

  /// Moves the estimate by metres east and north.
  @inline(__always) mutating func shift(by meters: SIMD2<Double>) {
    guard abs(latitude) < PolarCap.edge else { return shiftAtPole(by: meters) }
    latitude = min(max(latitude + meters.y / ground.metersPerLatitude, -90), 90)
    let turned = longitude + meters.x / ground.metersPerLongitude
    // Near a pole a correction of some kilometres may be more than one turn.
    longitude = abs(turned) <= 180 ? turned : turned.remainder(dividingBy: 360)
    ground.follow(latitude)
  }

  /// Moves the estimate near a pole, where a straight way changes its heading: vectors in terms of east and north are
  /// rotated with the meridian.
  private mutating func shiftAtPole(by meters: SIMD2<Double>) {
    let before = PolarCap.frame(of: place)
    (latitude, longitude) = PolarCap.place(from: place, by: meters)
    latitude = min(max(latitude, -90), 90)
    let after = PolarCap.frame(of: place)
    let cosine = (before.east * after.east).sum()
    let sine = (before.north * after.east).sum()
    velocity = SIMD2(cosine * velocity.x + sine * velocity.y, cosine * velocity.y - sine * velocity.x)
    bias = SIMD2(cosine * bias.x + sine * bias.y, cosine * bias.y - sine * bias.x)
    ground.follow(latitude)
  }
}
