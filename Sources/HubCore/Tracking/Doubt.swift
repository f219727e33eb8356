// Undoes the update by a position that barely fits, where the next one contradicts it.
//
// One fix alone does not show whether it or the track is wrong: a fix that is a second stale, or an outlier after a
// gap, may lie within the gate. The next fix shows it; or, if it is refused too, that the receiver is wrong. An update
// is x + K y and P − K Kᵀ S, so its effect is kept as y, K and S, which takes 24 bytes instead of a second filter, and
// is propagated by one prediction.

/// The last position's effect on the state. 24 bytes.
struct Doubt: Sendable {
  /// The innovation, m; gain of position, velocity and bias; and the innovation's variance on an axis, m².
  var innovation: SIMD2<Float>
  var gain: (position: Float, velocity: Float, bias: Float)
  var variance: Float

  /// Nothing is in doubt.
  static let none = Doubt()

  private init() { (innovation, gain, variance) = (.zero, (0, 0, 0), 0) }

  init(innovation: SIMD2<Double>, gain: SIMD3<Double>, variance: Double) {
    self.innovation = SIMD2<Float>(innovation)
    self.gain = (Float(gain.x), Float(gain.y), Float(gain.z))
    self.variance = Float(variance)
  }

  /// The gain propagated over `dt` seconds, in which the bias decays with `biasSeconds`: the update's effect on the
  /// state as predicted now.
  func gain(after dt: Double, biasSeconds: Double) -> SIMD3<Double> {
    let velocity = Double(gain.velocity)
    return SIMD3(
      Double(gain.position) + velocity * dt, velocity, Double(gain.bias) * biasSeconds / (biasSeconds + dt))
  }

  /// m²: the square of how far the position was moved, which may have to be undone; 0 where nothing is in doubt.
  @inline(__always) var moved: Float {
    variance > 0 ? (innovation * innovation).sum() * gain.position * gain.position : 0
  }

  /// NIS above which a position is doubted: 95 % of a chi-square with 2 degrees of freedom.
  static let threshold = 6.0
  /// How much better the next fix must fit without it: a likelihood ratio of e² (7.4).
  static let evidence = 4.0
  /// How well the next fix must fit, as a fraction of the doubted fix's own NIS: where both are off, the first one
  /// stays.
  static let fit = 0.5
  /// Seconds after which an update is final.
  static let longest = 60.0
}

extension MotionFilter {
  /// Undoes the last position's update where `fix`, `dt` seconds later, fits much better without it.
  mutating func settleDoubt(_ fix: TrackMeasurement, after dt: Double) {
    let doubted = doubt
    guard doubted.variance > 0, dt > 0, dt <= Doubt.longest else { return }
    let noise = MotionFilter.variance(of: fix) * noiseScale
    let back = SIMD2<Double>(doubted.innovation)
    let gain = doubted.gain(after: dt, biasSeconds: MotionFilter.biasSeconds)
    var without = covariance
    without.reduce(gain, gain: gain * -Double(doubted.variance))
    let y = displacement(to: fix.coordinate) - bias
    let yWithout = y + back * (gain.x + gain.z)
    let (variance, varianceWithout) = (covariance.ofFix + noise, without.ofFix + noise)
    let nis = (y * y).sum() / variance
    let nisWithout = (yWithout * yWithout).sum() / varianceWithout
    let own = (back * back).sum() / Double(doubted.variance)
    guard nisWithout < Doubt.fit * own,
      nis + 2 * TrackMath.logarithm(variance / varianceWithout) > nisWithout + Doubt.evidence
    else { return }
    takeBack(doubted, gain: gain)
  }

  /// The next fix is refused, so it can't resolve the doubt. Where the motion is known from positions only, the update
  /// in doubt is undone: it is probably the first of several wrong ones, and its velocity would lead astray as long as
  /// they last. With Doppler the velocity is known anyway.
  mutating func leaveDoubt(after dt: Double) {
    if doubt.variance > 0, dopplerShare < 0.5, dt <= Doubt.longest {
      takeBack(doubt, gain: doubt.gain(after: dt, biasSeconds: MotionFilter.biasSeconds))
    }
    doubt = .none
  }

  private mutating func takeBack(_ doubted: Doubt, gain: SIMD3<Double>) {
    let back = SIMD2<Double>(doubted.innovation)
    covariance.reduce(gain, gain: gain * -Double(doubted.variance))
    velocity -= back * gain.y
    bias -= back * gain.z
    shift(by: back * -gain.x)
    doubt = .none
  }
}
