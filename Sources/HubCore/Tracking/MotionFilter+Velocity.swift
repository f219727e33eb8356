// What a fix says about the motion: its speed and bearing as a measurement of velocity, and whether the driver stands.
import HubGeo

extension MotionFilter {
  /// Metres per second: standard deviation of a Doppler velocity on each axis. The bearing is of the same solution, so
  /// its error is a sideways error of the velocity at any speed.
  static let velocitySigma = 0.25
  /// A standstill begins below `Position.standstillSpeed` and ends above this speed; its velocity is 0 ±
  /// `standstillSigma`. A bearing counts above `bearingSpeed`. All m/s.
  static let departureSpeed = 0.6
  static let standstillSigma = 0.05
  static let bearingSpeed = 0.5
  /// m/s: by Doppler, a faster driver has another coordinate each second.
  static let walkingSpeed = 2.0
  /// NIS above which a velocity gets less weight (99.9 % of a chi-square with 2 degrees of freedom), by its square.
  static let velocityGate = 13.8
  /// Velocities in a row that did not fit, after which the next one is accepted.
  static let toleratedVelocityDoubts: UInt8 = 2
  /// The largest NIS of a position that counts against its fix's velocity: another town counts no more than another
  /// street, since the speed may be right.
  static let positionNISClip = 64.0

  /// Whether the driver stands, by this fix; false where the phone states no speed.
  @inline(__always) mutating func stands(_ fix: TrackMeasurement) -> Bool {
    if fix.speed > Float(MotionFilter.departureSpeed) { doubtsStandstill = false }
    return !doubtsStandstill
      && fix.speed < Float(isStanding ? MotionFilter.departureSpeed : Position.standstillSpeed)
  }

  /// The driver does not stand, whatever the phone states, and its velocity is unknown.
  mutating func doubtStandstill() {
    doubtsStandstill = true
    isStanding = false
    (covariance.p01, covariance.p11, covariance.p12) = (0, MotionFilter.unknownVelocity, 0)
  }

  /// How much of the motion is known from Doppler, 0…1: all of it at a standstill, nothing where a phone states no
  /// speed, or one that its positions contradict.
  @inline(__always) var dopplerShare: Double { isStanding ? 1 : hasVelocity ? Double(trust.share) : 0 }

  /// Updates by the velocity of a fix. Returns its direction, or zero where none was measured. `isComparable`: whether
  /// this coordinate and the last are two measurements.
  mutating func measureVelocity(_ fix: TrackMeasurement, after dt: Double, isComparable: Bool) -> SIMD2<Double> {
    let sigmaSquared = MotionFilter.velocitySigma * MotionFilter.velocitySigma
    hasVelocity = isStanding
    if isStanding {
      skipVelocity()
      measureVelocity(
        .zero, variance: MotionFilter.standstillSigma * MotionFilter.standstillSigma, of: fix, after: dt)
      return .zero
    }
    if Double(fix.speed) <= MotionFilter.bearingSpeed, !doubtsStandstill {
      // It creeps, in an unknown direction.
      skipVelocity()
      hasVelocity = true
      let creeping = Double(fix.speed * fix.speed) / 2
      measureVelocity(.zero, variance: sigmaSquared + creeping, of: fix, after: dt)
      return .zero
    }
    guard Double(fix.speed) > MotionFilter.bearingSpeed, !fix.heading.isNaN else {
      skipVelocity()
      return .zero
    }
    hasVelocity = true
    let direction = SineCosine(degrees: Double(fix.heading))
    let course = SIMD2(direction.sine, direction.cosine)
    let measured = SIMD2<Float>(course * Double(fix.speed))
    let before = latency.last
    let corrected = latency.corrected(measured, course: course, after: dt)
    checkVelocity(corrected, change: measured - before, at: fix, after: dt, isComparable: isComparable)
    measureVelocity(corrected, variance: sigmaSquared + Double(trust.variance), of: fix, after: dt)
    return course
  }

  private mutating func skipVelocity() {
    latency.skip()
    trust.skip()
  }

  /// Updates the trust in the phone's velocities by this one, its change since the last, and both coordinates.
  private mutating func checkVelocity(
    _ corrected: SIMD2<Double>, change: SIMD2<Float>, at fix: TrackMeasurement, after dt: Double, isComparable: Bool
  ) {
    guard dt > 0, dt <= MotionFilter.longestManoeuvre, !change.x.isNaN else { return trust.skip() }
    if dt <= VelocityLatency.longestStep { trust.jump(change) }
    guard isComparable else { return }
    let led = (corrected - SIMD2<Double>(change) / 2) * dt
    let way = ground.displacement(from: lastPlace, to: fix.coordinate)
    let off = SIMD2<Float>(way - led)
    trust.compare(off, after: dt)
    if dt > VelocityLatency.longestStep {
      trust.single(off, noise: Float(MotionFilter.variance(of: fix) * noiseScale), after: dt)
    }
  }

  /// A velocity that does not fit gets less weight, and so does one whose position is far off: both come from the same
  /// signals. If several in a row do not fit, the filter is wrong. One that leads away from its own fix is not used
  /// where the position fits the prediction better than the velocity does.
  /// Cars brake harder than the process noise allows, which is no reason to doubt Doppler.
  private mutating func measureVelocity(
    _ measured: SIMD2<Double>, variance: Double, of fix: TrackMeasurement, after dt: Double
  ) {
    let y = measured - velocity
    let distanceSquared = (y * y).sum()
    let change = MotionFilter.hardestBraking / 3 * min(dt, 2)
    let nis = distanceSquared / (covariance.p11 + variance + change * change)
    var inflation = 1.0
    velocityDoubts = nis > MotionFilter.velocityGate ? velocityDoubts + 1 : 0
    if velocityDoubts > MotionFilter.toleratedVelocityDoubts {
      covariance.p11 += distanceSquared / 2
      velocityDoubts = 0
    } else {
      let off = displacement(to: fix.coordinate) - bias
      let positionNIS = (off * off).sum() / (covariance.ofFix + MotionFilter.variance(of: fix) * noiseScale)
      let joint = MotionFilter.jointFreedom + nis + min(positionNIS, MotionFilter.positionNISClip)
      let own = nis / MotionFilter.velocityGate
      inflation = max(1, joint / (MotionFilter.jointFreedom + 4)) * max(1, own * own)
      if distanceSquared > 4 * (covariance.p11 + variance), !isStanding,
        leadsAway(y, variance: (variance, used: variance * inflation), from: fix)
      {
        hasVelocity = false
        return
      }
    }
    let p = covariance.withVelocity
    correct(y, covariance: p, variance: p.y + variance * inflation)
  }

  /// Whether a change of velocity `y` would put its fix outside the gate, though the position fits better than the
  /// velocity does.
  @inline(never)
  private func leadsAway(
    _ y: SIMD2<Double>, variance: (stated: Double, used: Double), from fix: TrackMeasurement
  ) -> Bool {
    let total = covariance.ofFix + MotionFilter.variance(of: fix) * max(1, noiseScale)
    let off = displacement(to: fix.coordinate) - bias
    let offSquared = (off * off).sum()
    guard offSquared < Doubt.threshold * total,
      offSquared * (covariance.p11 + variance.stated) < (y * y).sum() * total
    else { return false }
    let p = covariance.withVelocity
    let gain = (p.x + p.z) / (p.y + variance.used)
    let left = off - y * gain
    return (left * left).sum() > MotionFilter.positionGate * (total - gain * (p.x + p.z))
  }
}
