// Estimates the errors of a phone's velocities: whether they agree with its positions, and how much they jump.
//
// A Doppler velocity is right to 0.1–0.3 m/s. But some apps send a bearing that is always 0, km/h for m/s, the compass
// of a phone that lies askew, or a bearing with 10° of noise; and reflections falsify velocities for seconds. A filter
// that treats them as Doppler leaves the road by tens of metres. Two statistics show such errors; neither uses the
// filter's state, so a wrong filter does not affect them:
//
// - Lasting errors. The way by positions minus the way by velocity, step by step, is summed over about 5 s. Errors of
//   single positions cancel in the sum; errors that are independent from step to step, a random walk of the positions
//   included, make its square about as large as the sum of the single squares. If it exceeds `chance` times that sum,
//   the velocity is always off to the same side. (A variance-ratio test: Lo, MacKinlay, Stock market
//   prices do not follow random walks, Rev. Financ. Stud. 1 (1988).) A single outlier has a ratio of 1, whatever its
//   size.
// - White noise. A car's acceleration lasts, so the product of two changes of velocity one after the other is positive
//   or about 0; noise of variance σ² makes it −σ² on each axis (as in the Allan variance).

/// The errors of one driver's velocities beyond Doppler's. 32 bytes.
struct VelocityTrust: Sendable {
  /// Metres: the way by positions minus the way by velocity; and the sum of the single squares (m²). Both decay over
  /// `window`.
  private var difference = SIMD2<Float>.zero
  private var squares: Float = 0
  /// m²/s² on an axis, as independent noise of each fix: from lasting errors, and from jumps.
  private var lasting: Float = 0
  private var jumping: Float = 0
  /// m/s: the measured velocity's change at the fix before; NaN where unknown.
  private var change = SIMD2<Float>(repeating: .nan)

  private static let window: Float = 5
  /// A ratio that chance exceeds in 5 % of cases: e^−3, for a sum in two dimensions.
  private static let chance: Float = 3
  /// An error that lasts for the window weighs as much as independent noise of this many times its square: half the
  /// fixes of a window, at one a second.
  private static let lastingWeight: Float = 2.5
  /// m²/s³: the uncertainty of the way between two velocities, as white acceleration of 1 m²/s³ on two axes.
  private static let wayDensity: Float = 2.0 / 12
  /// The memory in seconds, and a fix's share in the jumps: of one change, and of one long step.
  private static let memory: Float = 60
  private static let jumpRate: Float = 0.1
  private static let stepRate: Float = 0.05
  /// m²/s²: variance of a velocity that is no better than two positions a second apart, 1.4 m off each.
  private static let untrusted: Float = 4

  init() {}

  /// The trust in a known phone, of this variance.
  init(learned variance: Float) { lasting = variance }

  /// m²/s² on an axis, beside Doppler's own noise.
  @inline(__always) var variance: Float { lasting + jumping }

  /// 1 for a Doppler velocity, towards 0 for one that is no better than the positions.
  @inline(__always) var share: Float { VelocityTrust.untrusted / (VelocityTrust.untrusted + variance) }

  /// Adds the difference of the way between the last two fixes and that by velocity, in metres.
  @inline(__always) mutating func compare(_ off: SIMD2<Float>, after dt: Double) {
    let step = Float(dt)
    let window = VelocityTrust.window * max(1, step)
    let kept = window / (window + step)
    difference = difference * kept + off
    squares = squares * kept * kept + (off * off).sum() + VelocityTrust.wayDensity * step * step * step
    // The sums of `kept`'s powers, and of their squares: of a lasting error, and of independent ones.
    let sum = 1 / (1 - kept)
    let sumOfSquares = VelocityTrust.chance / (1 - kept * kept)
    let excess = (difference * difference).sum() - VelocityTrust.chance * squares
    lasting *= 1 - min(1, step / VelocityTrust.memory)
    if excess > 0 {
      lasting = max(lasting, excess / (sum * sum - sumOfSquares) / (step * step) * VelocityTrust.lastingWeight)
    }
  }

  /// Adds the change of the measured velocity since the last fix, m/s.
  @inline(__always) mutating func jump(_ next: SIMD2<Float>) {
    let product = -(next * change).sum() / 2
    if !product.isNaN { follow(product, VelocityTrust.jumpRate) }
    change = next
  }

  /// Adds the same as `compare` for steps so long that changes of velocity say nothing about its noise: what the noise
  /// of two positions, of variance `noise` (m²), and the motion between them do not explain.
  @inline(__always) mutating func single(_ off: SIMD2<Float>, noise: Float, after dt: Double) {
    let step = Float(dt)
    follow(
      ((off * off).sum() - 4 * noise) / (step * step) - VelocityTrust.wayDensity * step, VelocityTrust.stepRate)
    change = SIMD2(repeating: .nan)
  }

  /// One wild velocity counts no more than a few usual ones.
  @inline(__always) private mutating func follow(_ variance: Float, _ rate: Float) {
    let most = 4 * jumping + 2
    jumping = max(0, jumping + (min(max(variance, -most), most) - jumping) * rate)
  }

  /// Starts over: the newest fix has no velocity to compare with.
  @inline(__always) mutating func skip() {
    (difference, squares) = (.zero, 0)
    change = SIMD2(repeating: .nan)
  }
}
