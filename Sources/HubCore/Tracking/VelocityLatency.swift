// Estimates the latency of a phone's velocity from its positions, so that it can be corrected.
//
// Receivers smooth the speed and the bearing that they report, and phones more than others: of the drives with known
// truth one phone's speed is 0.25 s behind its positions, another's 0.6 s, a bare receiver's not at all; bearings are
// late by 0.15 to 0.6 s. While the velocity changes, a late one is wrong by acceleration × latency: metres by the end
// of a braking or of a bend. No noise model fits that, since the error is systematic. But it is visible: each step then
// leaves the position behind by acceleration × latency × step. So a latency is a regression of the innovation on the
// change of velocity (recursive least squares, e.g. Bar-Shalom et al. (2001), §3.5), along the track for the speed, and
// across it for the bearing: phones filter the two apart.

/// One driver's latencies of speed and bearing. 44 bytes.
struct VelocityLatency: Sendable {
  /// The last measured velocity, m/s; NaN where the last fix had none.
  private(set) var last = SIMD2<Float>(repeating: .nan)
  /// m/s², east and north, over the last second; zero where it is not known.
  private var acceleration = SIMD2<Float>.zero
  private(set) var speed = Latency()
  private(set) var bearing = Latency()

  /// Harder accelerations are errors: m/s². Tyres on a dry road allow at most 8 to 10.
  static let hardest: Float = 8
  /// Seconds between two velocities above which their difference is not the present acceleration.
  static let longestStep = 2.1

  init() {}

  /// The latencies of a known phone, as open to change as at first.
  init(speed: Float, bearing: Float) {
    self.speed = Latency(learned: speed)
    self.bearing = Latency(learned: bearing)
  }

  /// Corrects a velocity measured in the direction of `course`, `dt` seconds after the last fix.
  /// A late speed does not become negative.
  @inline(__always)
  mutating func corrected(_ measured: SIMD2<Float>, course: SIMD2<Double>, after dt: Double) -> SIMD2<Double> {
    let step = Float(dt)
    if dt > 0, dt <= VelocityLatency.longestStep, !last.x.isNaN {
      var now = (measured - last) / step
      let square = (now * now).sum()
      let most = VelocityLatency.hardest * VelocityLatency.hardest
      if square > most { now *= (most / square).squareRoot() }
      acceleration += (now - acceleration) * min(1, step)
    } else {
      acceleration = .zero
    }
    last = measured
    let (along, across) = components(course)
    let ahead = max(0, Double((measured * measured).sum().squareRoot()) + Double(speed.seconds) * along)
    return course * ahead + VelocityLatency.right(of: course) * (Double(bearing.seconds) * across)
  }

  /// A fix has no velocity.
  @inline(__always) mutating func skip() {
    acceleration = .zero
    last = SIMD2(repeating: .nan)
  }

  /// Learns from a fix's innovation and its variance on an axis.
  @inline(__always)
  mutating func learn(_ innovation: SIMD2<Double>, course: SIMD2<Double>, variance: Double, after dt: Double) {
    guard acceleration != .zero else { return }
    let (along, across) = components(course)
    speed.learn((innovation * course).sum(), per: along * dt, variance: variance, after: dt)
    bearing.learn(
      (innovation * VelocityLatency.right(of: course)).sum(), per: across * dt, variance: variance, after: dt)
  }

  /// The acceleration along the course and to the right of it.
  @inline(__always) private func components(_ course: SIMD2<Double>) -> (along: Double, across: Double) {
    let acceleration = SIMD2<Double>(acceleration)
    return ((acceleration * course).sum(), (acceleration * VelocityLatency.right(of: course)).sum())
  }

  @inline(__always) private static func right(of course: SIMD2<Double>) -> SIMD2<Double> {
    SIMD2(course.y, -course.x)
  }
}

/// The estimate of one latency. 8 bytes.
struct Latency: Sendable {
  /// Seconds, 0…`longest`, and its variance. For an unknown phone 0 ± 0.3.
  private(set) var seconds: Float = 0
  private var variance: Float = 0.09

  static let longest: Float = 1
  /// s² a second: a phone's latency may change.
  private static let wander: Float = 25e-6

  init() {}

  init(learned seconds: Float) { self.seconds = seconds }

  /// Learns from `off` metres (variance `ofOff`), of which a latency of one second would explain `slope` metres.
  @inline(__always)
  mutating func learn(_ off: Double, per slope: Double, variance ofOff: Double, after dt: Double) {
    let h = Float(slope)
    let gain = variance * h / (h * h * variance + Float(ofOff))
    seconds = min(max(seconds + gain * Float(off), 0), Latency.longest)
    variance = variance * (1 - gain * h) + Latency.wander * Float(dt)
  }
}
