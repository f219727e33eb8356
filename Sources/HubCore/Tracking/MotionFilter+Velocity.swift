// What a fix says about the motion: its speed and bearing as a measurement of velocity, and whether the driver stands.
import HubGeo

extension MotionFilter {
  /// Metres per second: standard deviation of a Doppler velocity on each axis. The bearing is of the same solution, so
  /// its error is that of a velocity that is off sideways, however fast the car is.
  static let velocitySigma = 0.25
  /// A driver stands from below `Position.standstillSpeed` on, until above this one; then the velocity is 0 ±
  /// `standstillSigma`. A bearing counts above `bearingSpeed`. All m/s.
  static let departureSpeed = 0.6
  static let standstillSigma = 0.05
  static let bearingSpeed = 0.5
  /// NIS above which a velocity counts less (99.9 % of a chi-square with 2 degrees of freedom), by its square.
  static let velocityGate = 13.8
  /// Velocities in a row that did not fit, after which the next one is believed.
  static let mostVelocityDoubts: UInt8 = 2
  /// NIS of a position up to which it speaks against the velocity of its fix: a place in another street does so no less
  /// than one in another town, whose speed may yet be right.
  static let mostPositionDoubt = 64.0

  /// Whether the driver stands, by this fix; it does not where the phone gives no speed.
  @inline(__always) mutating func stands(_ fix: TrackMeasurement) -> Bool {
    if fix.speed > Float(MotionFilter.departureSpeed) { doubtsStandstill = false }
    return !doubtsStandstill
      && fix.speed < Float(isStanding ? MotionFilter.departureSpeed : Position.standstillSpeed)
  }

  /// It does not stand, whatever the phone says, and nothing is known of how it moves.
  mutating func doubtStandstill() {
    doubtsStandstill = true
    isStanding = false
    (covariance.p01, covariance.p11, covariance.p12) = (0, MotionFilter.unknownVelocity, 0)
  }

  /// Takes in the velocity of a fix. Returns its direction, or zero where none was measured.
  mutating func measureVelocity(_ fix: TrackMeasurement, after dt: Double) -> SIMD2<Double> {
    if isStanding {
      latency.skip(speed: fix.speed)
      measureVelocity(.zero, variance: MotionFilter.standstillSigma * MotionFilter.standstillSigma, of: fix)
      return .zero
    }
    guard Double(fix.speed) > MotionFilter.bearingSpeed, !fix.heading.isNaN else {
      latency.skip(speed: fix.speed)
      return .zero
    }
    let direction = SineCosine(degrees: Double(fix.heading))
    let course = SIMD2(direction.sine, direction.cosine)
    let speed = latency.corrected(fix.speed, after: dt)
    measureVelocity(course * speed, variance: MotionFilter.velocitySigma * MotionFilter.velocitySigma, of: fix)
    return course
  }

  /// A velocity that does not fit counts less, and so does one whose fix lies far off: both are of the same signals.
  /// Where one after the other does not fit, it is the filter that is wrong.
  private mutating func measureVelocity(_ measured: SIMD2<Double>, variance: Double, of fix: TrackMeasurement) {
    let y = measured - velocity
    let distanceSquared = (y * y).sum()
    let nis = distanceSquared / (covariance.p11 + variance)
    var inflation = 1.0
    velocityDoubts = nis > MotionFilter.velocityGate ? velocityDoubts + 1 : 0
    if velocityDoubts > MotionFilter.mostVelocityDoubts {
      covariance.p11 += distanceSquared / 2
      velocityDoubts = 0
    } else {
      let off = displacement(to: fix.coordinate) - bias
      let positionNIS = (off * off).sum() / (covariance.ofFix + MotionFilter.variance(of: fix) * noiseScale)
      let joint = MotionFilter.jointFreedom + nis + min(positionNIS, MotionFilter.mostPositionDoubt)
      let own = nis / MotionFilter.velocityGate
      inflation = max(1, joint / (MotionFilter.jointFreedom + 4)) * max(1, own * own)
    }
    let p = covariance.withVelocity
    correct(y, covariance: p, variance: p.y + variance * inflation)
  }
}
