// A position that is used but hardly fits is taken back where the next one speaks against it.
//
// One fix alone can't say whether it or the track is wrong: a fix that is a second stale, or an outlier behind a gap,
// may lie within the gate. The next fix can. An update is x + K y and P − K Kᵀ S, so what it did is kept as y, K and S,
// which is 24 bytes instead of a second filter, and carried along by one prediction.

/// What the last position did to the state. 24 bytes.
struct Doubt: Sendable {
  /// The innovation, m; gain of position, velocity and bias; and the innovation's variance on an axis, m².
  var innovation: SIMD2<Float>
  var gain: (position: Float, velocity: Float, bias: Float)
  var variance: Float

  /// Nothing is in doubt.
  static let none = Doubt(innovation: .zero, gain: (0, 0, 0), variance: 0)

  /// m²: the square of how far the position was moved, which may have to be taken back; 0 where nothing is in doubt.
  @inline(__always) var moved: Float { (innovation * innovation).sum() * gain.position * gain.position }

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
    guard doubted.variance > 0 else { return }
    doubt = .none
    guard dt > 0, dt <= Doubt.longest else { return }
    let noise = MotionFilter.variance(of: fix) * noiseScale
    let back = SIMD2<Double>(doubted.innovation)
    let velocityGain = Double(doubted.gain.velocity)
    let gain = SIMD3(
      Double(doubted.gain.position) + velocityGain * dt, velocityGain,
      Double(doubted.gain.bias) * MotionFilter.biasSeconds / (MotionFilter.biasSeconds + dt))
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
    covariance = without
    velocity -= back * gain.y
    bias -= back * gain.z
    shift(by: back * -gain.x)
  }
}
