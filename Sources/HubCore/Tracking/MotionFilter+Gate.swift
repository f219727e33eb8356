// What happens to a position that does not fit: when it is refused, and when the driver is believed to be there.
import HubGeo

extension MotionFilter {
  /// Decides on a position outside the gate. Returns nil when it is to be believed after all.
  ///
  /// One wrong fix comes alone, or in a place of its own; a filter that is wrong sees fixes that agree with each other.
  /// So fixes that agree for `agreement` are believed; so is any after `mostRejections`, or `longestHold` of them.
  /// Reflections agree with each other for seconds, too; where the Doppler shifts say that the driver stands, it can't
  /// have got there, and agreement must last longer. A place that no vehicle could have reached needs more agreement:
  /// otherwise the first fix after a tunnel may throw the driver across the city. Where the position before could not
  /// be judged itself, it is one word against another, and within reach the newer counts.
  mutating func reject(
    _ fix: TrackMeasurement, innovation y: SIMD2<Double>, maximumSpeed: Double
  ) -> FixRefusal? {
    if rejections > 0, agreesWithCandidate(fix) {
      agreements = agreements == .max ? .max : agreements + 1
    } else {
      agreements = 0
      agreeingSince = fix.milliseconds
    }
    if rejections == 0 { rejectedSince = fix.milliseconds }
    candidate = fix.coordinate
    candidateVelocity = measuredVelocity(of: fix) ?? SIMD2<Float>(velocity)
    candidateTime = fix.milliseconds
    let held = Double(fix.milliseconds &- lastUsed) / 1000
    let isTooFast = (y * y).sum().squareRoot() > maximumSpeed * max(held, 1)
    if isTooFast ? isBelievedThoughTooFast(fix) : isBelieved(fix, held: held) { return nil }
    rejections = rejections == .max ? .max : rejections + 1
    return isTooFast ? .tooFast : .gated
  }

  /// m/s; nil where the phone gave none. Where the filter is wrong about the place, it may be about the velocity.
  private func measuredVelocity(of fix: TrackMeasurement) -> SIMD2<Float>? {
    guard fix.speed >= 0 else { return nil }  // NaN fails, too
    guard Double(fix.speed) > MotionFilter.bearingSpeed else { return doubtsStandstill ? nil : .zero }
    guard !fix.heading.isNaN else { return nil }
    let direction = SineCosine(degrees: Double(fix.heading))
    return SIMD2(Float(direction.sine), Float(direction.cosine)) * fix.speed
  }

  private func isBelieved(_ fix: TrackMeasurement, held: Double) -> Bool {
    if held > MotionFilter.longestGap || isUnconfirmed { return true }
    let rejected = Double(fix.milliseconds &- rejectedSince) / 1000
    if rejected >= MotionFilter.longestHold { return true }
    let agreed = agreements > 0 ? fix.milliseconds &- agreeingSince : 0
    if isStanding { return agreed >= MotionFilter.agreementStanding }
    return agreed >= MotionFilter.agreement || rejections >= MotionFilter.mostRejections
  }

  /// Whether a position may be published without the place of its fix: from the motion alone, as long as that is known
  /// well enough, and the fix is not in another town.
  func canCoast(past fix: TrackMeasurement) -> Bool {
    let off = displacement(to: fix.coordinate)
    return radius <= MotionFilter.longestCoastRadius
      && (off * off).sum() <= MotionFilter.farthestCorrection * MotionFilter.farthestCorrection
  }

  /// Four fixes that agree; or two, where the fixes come so seldom that nothing was believed for `longestHold`
  /// meanwhile.
  private func isBelievedThoughTooFast(_ fix: TrackMeasurement) -> Bool {
    let rejected = Double(fix.milliseconds &- rejectedSince) / 1000
    return agreements >= MotionFilter.agreementsWhenTooFast || agreements > 0 && rejected >= MotionFilter.longestHold
  }

  private func agreesWithCandidate(_ fix: TrackMeasurement) -> Bool {
    let elapsed = Double(fix.milliseconds &- candidateTime) / 1000
    let expected = SIMD2<Double>(candidateVelocity) * elapsed
    let off = ground.displacement(from: candidate, to: fix.coordinate) - expected
    return (off * off).sum().squareRoot() < 2 * MotionFilter.accuracy(of: fix) + 3 * elapsed
  }
}
