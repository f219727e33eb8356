// Makes positions of the filter's state: which values are known well enough, how well, and their rounding.
import HubGeo
import HubMessages

extension MotionFilter {
  /// A heading is taken from the velocity above this, m/s.
  static let headingSpeed = 0.7
  /// Seconds between two headings up to which their difference gives a rate of turn, and over which that is averaged:
  /// for headings by Doppler, and for those from positions only.
  static let longestTurnGap: Float = 10
  static let turnSmoothing: (doppler: Float, placesOnly: Float) = (0.5, 3)
  /// The square of the fraction of its radius by which a parked car's estimate may differ from the shown position.
  static let parkedShare = 0.25
  /// A speed is published when its standard deviation is below this, m/s.
  static let knownSpeedSigma = 4.0
  /// The part of a phone's error that drifts too slowly for any filter, as fractions of variances: 0.55² of what the
  /// phone states, and 0.1² of the noise that the innovations show.
  static let driftOfStated = 0.3025
  static let driftOfNoise = 0.01
  /// Where a phone states no accuracy, only its noise tells open sky from houses, whose reflections drift, too: the
  /// noise that is observed beyond what `missingAccuracy` assumes is multiplied by these. With positions only, less
  /// than half of the noise can be observed.
  static let driftOfUnstated: (doppler: Double, placesOnly: Double) = (2, 10)
  /// Metres: up to here a position is of high, or medium, confidence.
  static let highAccuracy = 15.0
  static let mediumAccuracy = 50.0
  /// Seconds without a used position after which confidence is low.
  static let confidentSeconds = 10.0

  /// The position after a fix. `absorbed`: the reason why the fix's coordinate was not used, if so.
  ///
  /// Accuracy is the filter's radius of 68 %; the variance of the drift that no measurement shows is added to its
  /// square. With positions only, the filter can't tell noise from motion, so its variance counts twice. Confidence is
  /// high to 15 m, medium to 50 m, low beyond; it is at most medium where the fix was absorbed, and low where none was
  /// used for `confidentSeconds`.
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
    let drift = MotionFilter.driftOfStated + driftOfNoise(isStated: !fix.accuracy.isNaN) * noiseScale
    let accuracy = (radiusSquared * (hasVelocity ? 1 : 2) + stated * stated * drift).squareRoot()
    return Position(
      coordinate: parked(),
      speed: speedSigma < MotionFilter.knownSpeedSigma ? TrackMath.rounded(speed, to: 100) : nil,
      heading: heading.isNaN ? nil : MotionFilter.publishedHeading(Double(heading)),
      accuracy: TrackMath.rounded(accuracy, to: 100),
      confidence: confidence(accuracy: accuracy, isAbsorbed: absorbed != nil),
      timestamp: Timestamp(milliseconds: fix.milliseconds), turnRate: Double(turnRate), absorbed: absorbed)
  }

  /// The variance of slow drift, as a fraction of the noise variance that the innovations show.
  @inline(__always) private func driftOfNoise(isStated: Bool) -> Double {
    guard !isStated, showsNoise else { return MotionFilter.driftOfNoise }
    let unstated = MotionFilter.driftOfUnstated
    return min(1, noiseScale) * (hasVelocity ? unstated.doppler : unstated.placesOnly)
  }

  private func confidence(accuracy: Double, isAbsorbed: Bool) -> Confidence {
    let isOld = Double(unusedSeconds) > MotionFilter.confidentSeconds
    if isOld || accuracy > MotionFilter.mediumAccuracy { return .low }
    return isAbsorbed || accuracy > MotionFilter.highAccuracy ? .medium : .high
  }

  /// The shown coordinate: at a standstill it stays until the estimate is half of its own radius off. An estimate of a
  /// parked car creeps with its fixes' drift, by tens of metres a minute.
  private mutating func parked() -> Coordinate {
    if isStanding, isParked {
      let off = displacement(to: parkedPlace.coordinate)
      if (off * off).sum() <= radiusSquared * MotionFilter.parkedShare { return parkedPlace.coordinate.published }
    }
    isParked = isStanding
    let place = coordinate
    if isParked { parkedPlace = PackedCoordinate(place) }
    return place
  }

  /// Sets a new heading, and the rate of turn since the last one.
  private mutating func turn(to next: Float) {
    if headingAge <= MotionFilter.longestTurnGap, headingAge > 0 {
      let turned = TrackMath.wrapped(next - heading)
      let smoothing = hasVelocity ? MotionFilter.turnSmoothing.doppler : MotionFilter.turnSmoothing.placesOnly
      turnRate += (turned - turnRate * headingAge) / (headingAge + smoothing)
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

  /// The square of the radius of 68 % by the filter's covariance, m².
  @inline(__always) var radiusSquared: Double { AccuracyRadius.sigmas * AccuracyRadius.sigmas * covariance.p00 }

  /// The estimate to 1e-7°.
  @inline(__always) var coordinate: Coordinate {
    // The filter keeps latitude and longitude in range (`shift`).
    guard let place = Coordinate(latitude: latitude, longitude: longitude) else {
      preconditionFailure("the filter left the globe")
    }
    return place.published
  }
}
