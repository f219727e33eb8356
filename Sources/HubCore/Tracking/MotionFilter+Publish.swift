// From the filter's state to what is published: which values are known well enough, and how well, rounded.
import HubGeo
import HubMessages

extension MotionFilter {
  /// A heading is taken from the velocity above this, m/s.
  static let headingSpeed = 0.7
  /// Seconds between two headings up to which their difference is a rate of turn, and over which it is averaged.
  static let longestTurnGap: Float = 10
  static let turnSmoothing: Float = 0.5
  /// The square of the part of its own radius by which the estimate of a parked car may be off what is shown.
  static let parkedShare = 0.25
  /// A speed is published when its standard deviation is below this, m/s.
  static let knownSpeedSigma = 4.0
  /// The part of a phone's error that drifts too slowly for any filter, as a part of its stated accuracy; and the part
  /// of that which is published at least.
  static let driftShare = 0.5
  static let leastAccuracyShare = 0.8
  /// Metres: up to here a position is of high, or medium, confidence.
  static let highAccuracy = 15.0
  static let mediumAccuracy = 50.0
  /// Seconds without a place that was used, after which confidence is low.
  static let confidentSeconds = 10.0

  /// The position after a fix was used, or, where its place was not, `absorbed` for that reason.
  ///
  /// Accuracy is the filter's own radius of 68 % with the drift that it can't see added in squares, and no less than
  /// 0.8 of what the phone states. Confidence is high to 15 m, medium to 50 m, and low beyond; it is at most medium
  /// where the place was absorbed, and low where none was used for `confidentSeconds`.
  mutating func publish(_ fix: TrackMeasurement, absorbed: FixRefusal? = nil) -> Position {
    let speed = speed
    let speedSigma = covariance.p11.squareRoot()
    if !isStanding, speed > max(MotionFilter.headingSpeed, 2 * speedSigma) {
      turn(to: Float(TrackMath.bearing(east: velocity.x, north: velocity.y)))
    } else {
      if heading.isNaN { heading = fix.heading }
      turnRate = 0
      headingAge = .infinity
    }
    let stated = MotionFilter.accuracy(of: fix)
    let drift = MotionFilter.driftShare * stated
    let accuracy = max(
      (radius * radius + drift * drift).squareRoot(), MotionFilter.leastAccuracyShare * stated)
    return Position(
      coordinate: parked(),
      speed: speedSigma < MotionFilter.knownSpeedSigma ? TrackMath.rounded(speed, to: 100) : nil,
      heading: heading.isNaN ? nil : MotionFilter.publishedHeading(Double(heading)),
      accuracy: TrackMath.rounded(accuracy, to: 100),
      confidence: confidence(accuracy: accuracy, isAbsorbed: absorbed != nil),
      timestamp: Timestamp(milliseconds: fix.milliseconds), turnRate: Double(turnRate), absorbed: absorbed)
  }

  private func confidence(accuracy: Double, isAbsorbed: Bool) -> Confidence {
    let isOld = Double(unusedSeconds) > MotionFilter.confidentSeconds
    if isOld || accuracy > MotionFilter.mediumAccuracy { return .low }
    return isAbsorbed || accuracy > MotionFilter.highAccuracy ? .medium : .high
  }

  /// Where the driver is shown: at a standstill where it was shown before, until the estimate is half of its own radius
  /// off. An estimate of a parked car creeps with its fixes' drift, by tens of metres a minute.
  private mutating func parked() -> Coordinate {
    if isStanding, isParked {
      let off = displacement(to: parkedPlace.coordinate)
      if (off * off).sum() <= radius * radius * MotionFilter.parkedShare { return parkedPlace.coordinate.published }
    }
    isParked = isStanding
    let place = coordinate
    if isParked { parkedPlace = PackedCoordinate(place) }
    return place
  }

  /// Takes a new heading, and the rate of turn from the one before.
  private mutating func turn(to next: Float) {
    if headingAge <= MotionFilter.longestTurnGap, headingAge > 0 {
      let turned = TrackMath.wrapped(next - heading)
      turnRate += (turned / headingAge - turnRate) * headingAge / (headingAge + MotionFilter.turnSmoothing)
    } else {
      turnRate = 0
    }
    heading = next
    headingAge = 0
  }

  /// To 0.01°; what would round to 360 is 0.
  private static func publishedHeading(_ degrees: Double) -> Double {
    let rounded = TrackMath.rounded(degrees, to: 100)
    return rounded < 360 ? rounded : 0
  }

  /// Metres per second.
  @inline(__always) var speed: Double { (velocity * velocity).sum().squareRoot() }

  /// The radius of 68 % by the filter's covariance, metres.
  @inline(__always) var radius: Double { AccuracyRadius.sigmas * covariance.p00.squareRoot() }

  /// The estimate to 1e-7°.
  @inline(__always) var coordinate: Coordinate {
    // The filter keeps latitude and longitude in range (`shift`).
    guard let place = Coordinate(latitude: latitude, longitude: longitude) else {
      preconditionFailure("the filter left the globe")
    }
    return place.published
  }
}
