// From the filter's state to what is published: which values are known well enough, and how well, rounded.
import HubGeo
import HubMessages

extension MotionFilter {
  /// A heading is taken from the velocity above this, m/s.
  static let headingSpeed = 0.7
  /// Seconds between two headings up to which their difference is a rate of turn, and over which it is averaged.
  static let longestTurnGap: Float = 10
  static let turnSmoothing: Float = 0.5
  /// A speed is published when its standard deviation is below this, m/s.
  static let knownSpeedSigma = 4.0
  /// The part of a phone's error that drifts too slowly for any filter, as a part of its stated accuracy.
  static let driftShare = 0.5
  /// Metres: up to here a position is of high, or medium, confidence.
  static let highAccuracy = 15.0
  static let mediumAccuracy = 50.0
  /// Seconds without a place that was used, after which confidence is low.
  static let confidentSeconds = 10.0

  /// The position after a fix was used, or, where its place was not, `absorbed` for that reason.
  ///
  /// Accuracy is the filter's own radius of 68 % with the drift that it can't see added in squares. Confidence is high
  /// to 15 m, medium to 50 m, and low beyond; it is at most medium where the place was absorbed, and low where none was
  /// used for `confidentSeconds`.
  mutating func publish(_ fix: TrackMeasurement, absorbed: FixRefusal? = nil) -> Position {
    let speed = speed
    let speedSigma = covariance.p11.squareRoot()
    if !isStanding, speed > max(MotionFilter.headingSpeed, 2 * speedSigma) {
      turn(to: Float(TrackMath.bearing(east: velocity.x, north: velocity.y)))
    } else {
      if heading.isNaN { heading = fix.heading }
      turnRate = 0
      headingTime = .min
    }
    let drift = MotionFilter.driftShare * MotionFilter.accuracy(of: fix)
    let accuracy = (radius * radius + drift * drift).squareRoot()
    return Position(
      coordinate: coordinate,
      speed: speedSigma < MotionFilter.knownSpeedSigma ? TrackMath.rounded(speed, to: 100) : nil,
      heading: heading.isNaN ? nil : MotionFilter.publishedHeading(Double(heading)),
      accuracy: TrackMath.rounded(accuracy, to: 100),
      confidence: confidence(accuracy: accuracy, isAbsorbed: absorbed != nil),
      timestamp: Timestamp(milliseconds: fix.milliseconds), turnRate: Double(turnRate), absorbed: absorbed)
  }

  private func confidence(accuracy: Double, isAbsorbed: Bool) -> Confidence {
    let isOld = Double(time &- lastUsed) > 1000 * MotionFilter.confidentSeconds
    if isOld || accuracy > MotionFilter.mediumAccuracy { return .low }
    return isAbsorbed || accuracy > MotionFilter.highAccuracy ? .medium : .high
  }

  /// Takes a new heading, and the rate of turn from the one before.
  private mutating func turn(to next: Float) {
    let passed = headingTime == .min ? .infinity : Float(time &- headingTime) / 1000
    if passed <= MotionFilter.longestTurnGap, passed > 0 {
      let turned = TrackMath.wrapped(next - heading)
      turnRate += (turned / passed - turnRate) * passed / (passed + MotionFilter.turnSmoothing)
    } else {
      turnRate = 0
    }
    heading = next
    headingTime = time
  }

  /// To 0.01°; what would round to 360 is 0.
  private static func publishedHeading(_ degrees: Double) -> Double {
    let rounded = TrackMath.rounded(degrees, to: 100)
    return rounded < 360 ? rounded : 0
  }

  /// Metres per second.
  var speed: Double { (velocity * velocity).sum().squareRoot() }

  /// The radius of 68 % by the filter's covariance, metres.
  var radius: Double {
    AccuracyRadius.sigmas * covariance.p00.squareRoot()
  }

  /// The estimate to 1e-7°.
  var coordinate: Coordinate {
    // The filter keeps latitude and longitude in range (`shift`).
    guard let place = Coordinate(latitude: latitude, longitude: longitude) else {
      preconditionFailure("the filter left the globe")
    }
    return place.published
  }
}
