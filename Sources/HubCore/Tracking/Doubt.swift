// A position that is used but hardly fits is taken back where the next one speaks against it.
//
// One fix alone can't say whether it or the track is wrong: a fix that is a second stale, or an outlier behind a gap,
// may lie within the gate. The next fix can; or, where it is refused itself, it shows that the receiver has lost its
// way. An update is x + K y and P − K Kᵀ S, so what it did is kept as y, K and S, which is 24 bytes instead of a second
// filter, and carried along by one prediction.

/// What the last position did to the state. 24 bytes.
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

  /// The gain as it has gone on over `dt` seconds, in which the bias fades with `biasSeconds`: what the update did
  /// to the state as it is predicted now.
  func gain(after dt: Double, biasSeconds: Double) -> SIMD3<Double> {
    let velocity = Double(gain.velocity)
    return SIMD3(
      Double(gain.position) + velocity * dt, velocity, Double(gain.bias) * biasSeconds / (biasSeconds + dt))
  }

  /// m²: the square of how far the position was moved, which may have to be taken back; 0 where nothing is in doubt.
  @inline(__always) var moved: Float {
    variance > 0 ? (innovation * innovation).sum() * gain.position * gain.position : 0
  }

  /// NIS above which a position is doubted: 95 % of a chi-square with 2 degrees of freedom.
  static let least = 6.0
  /// By how much the next fix must fit better without it: a likelihood ratio of e² (7.4).
  static let evidence = 4.0
  /// And how well, as a part of the doubted fix's own NIS: where both are off, the track stays with the first.
  static let fit = 0.5
  /// Seconds after which it is too late.
  static let longest = 60.0
}

extension MotionFilter {
  /// Takes the last position back where `fix`, which came `dt` seconds later, fits much better without it.
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

  /// The next fix is refused, so it can't settle the doubt. Where only places tell of the motion, the one in doubt is
  /// taken back, for it is likely to be the first of those that are wrong, and its velocity would lead away for as long
  /// as they last. Doppler holds the velocity anyway.
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
