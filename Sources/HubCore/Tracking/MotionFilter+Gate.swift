// What happens to a position that does not fit: when it is refused, and when the driver is believed to be there.
import Geo

extension MotionFilter {
  /// Decides on a position outside the gate. Returns nil when it is to be believed after all.
  ///
  /// One wrong fix comes alone, or in a place of its own; a filter that is wrong sees fixes that agree with each other.
  /// So the second of two that agree is believed; so is any after `mostRejections`, or `longestHold` without a
  /// position. A place that no vehicle could have reached needs agreement, and more of it, however long it takes:
  /// otherwise the first fix after a tunnel may throw the driver across the city.
  mutating func reject(
    _ fix: TrackMeasurement, innovation y: SIMD2<Double>, maximumSpeed: Double
  ) -> Tracker.Refusal? {
    if rejections > 0, agreesWithCandidate(fix) {
      agreements = agreements == .max ? .max : agreements + 1
    } else {
      agreements = 0
    }
    candidate = fix.coordinate
    candidateVelocity = SIMD2<Float>(velocity)
    candidateTime = fix.milliseconds
    let held = Double(fix.milliseconds &- lastUsed) / 1000
    let isTooFast = (y * y).sum().squareRoot() > maximumSpeed * max(held, 1)
    let isBelieved =
      isTooFast
      ? agreements >= MotionFilter.agreementsWhenTooFast
      : agreements > 0 || rejections >= MotionFilter.mostRejections || held >= MotionFilter.longestHold
    if isBelieved { return nil }
    rejections = rejections == .max ? .max : rejections + 1
    return isTooFast ? .tooFast : .gated
  }

  private func agreesWithCandidate(_ fix: TrackMeasurement) -> Bool {
    let elapsed = Double(fix.milliseconds &- candidateTime) / 1000
    let expected = SIMD2<Double>(candidateVelocity) * elapsed
    let off = ground.displacement(from: candidate, to: fix.coordinate) - expected
    return (off * off).sum().squareRoot() < 2 * MotionFilter.accuracy(of: fix) + 3 * elapsed
  }
}
