// How far a phone's velocity can be relied on: whether it leads where its places go, and how much it jumps.
//
// A Doppler velocity is right to 0.1–0.3 m/s. But some apps send a bearing that is always 0, km/h for m/s, the compass
// of a phone that lies askew, or a bearing with 10° of noise; and reflections spoil velocities for seconds. A filter
// that takes them for Doppler leaves the road by tens of metres. Two measures show it, neither of which needs the
// filter's own state, so that a filter that is wrong does not judge by itself:
//
// - Errors that last. The way by places minus the way by velocity, step by step, is summed over about 5 s. Errors of
//   single places cancel in the sum; those that are independent from step to step, a random walk of the places
//   included, make its square about as large as the sum of the single squares. One that exceeds `chance` times that sum
//   is of a velocity that is off to the same side all the time. (A variance-ratio test: Lo, MacKinlay, Stock market
//   prices do not follow random walks, Rev. Financ. Stud. 1 (1988).) A single outlier has a ratio of 1, whatever its
//   size.
// - White noise. A car's acceleration lasts, so the product of two changes of velocity one after the other is positive
//   or about 0; noise of variance σ² makes it −σ² on each axis (as in the Allan variance).

/// What is known of the errors of one driver's velocities beyond Doppler's. 32 bytes.
struct VelocityTrust: Sendable {
  /// Metres: the way by places minus the way by velocity, faded over `window`; and the sum of the single squares (m²),
  /// faded likewise.
  private var difference = SIMD2<Float>.zero
  private var squares: Float = 0
  /// m²/s² on an axis, as noise that is new with each fix: what errors that last add, and what jumps add.
  private var lasting: Float = 0
  private var jumping: Float = 0
  /// m/s: the change of the measured velocity by the fix before; NaN where none is known.
  private var change = SIMD2<Float>(repeating: .nan)

  private static let window: Float = 5
  /// A ratio that chance exceeds in 5 % of cases: e^−3, for a sum in two dimensions.
  private static let chance: Float = 3
  /// An error that lasts for the window has as much weight as this many times its square, new with each fix: half the
  /// fixes of a window, at one a second.
  private static let lastingWeight: Float = 2.5
  /// m²/s³: what two velocities do not tell of the way between them, as white acceleration of 1 m²/s³ on two axes.
  private static let wayDensity: Float = 2.0 / 12
  /// Seconds for which it is remembered, and the part that a fix has in the jumps: of one change, and of one long step.
  private static let memory: Float = 60
  private static let jumpRate: Float = 0.1
  private static let stepRate: Float = 0.05
  /// m²/s²: variance of a velocity that is as good as no Doppler: of two places, 1.4 m off each, a second apart.
  private static let untrusted: Float = 4

  init() {}

  /// Of a phone that is known: the variance that was learnt of it.
  init(learned variance: Float) { lasting = variance }

  /// m²/s² on an axis, beside Doppler's own noise.
  @inline(__always) var variance: Float { lasting + jumping }

  /// 1 for a Doppler velocity, towards 0 for one that is worth no more than the places.
  @inline(__always) var share: Float { VelocityTrust.untrusted / (VelocityTrust.untrusted + variance) }

  /// Takes in how far the way from the last fix to this one is off that by velocity, in metres.
  @inline(__always) mutating func compare(_ off: SIMD2<Float>, after dt: Double) {
    let step = Float(dt)
    let window = VelocityTrust.window * max(1, step)
    let kept = window / (window + step)
    difference = difference * kept + off
    squares = squares * kept * kept + (off * off).sum() + VelocityTrust.wayDensity * step * step * step
    // The sums of `kept`'s powers, and of their squares: what an error that lasts, and one that does not, adds up to.
    let sum = 1 / (1 - kept)
    let sumOfSquares = VelocityTrust.chance / (1 - kept * kept)
    let excess = (difference * difference).sum() - VelocityTrust.chance * squares
    lasting *= 1 - min(1, step / VelocityTrust.memory)
    if excess > 0 {
      lasting = max(lasting, excess / (sum * sum - sumOfSquares) / (step * step) * VelocityTrust.lastingWeight)
    }
  }

  /// Takes in the change of the measured velocity since the last fix, m/s.
  @inline(__always) mutating func jump(_ next: SIMD2<Float>) {
    let product = -(next * change).sum() / 2
    if !product.isNaN { follow(product, VelocityTrust.jumpRate) }
    change = next
  }

  /// Takes in the same as `compare`, where the steps are so long that the changes of velocity say nothing of its noise:
  /// what two places, whose noise has the variance `noise` (m²), and the motion between them do not explain.
  @inline(__always) mutating func single(_ off: SIMD2<Float>, noise: Float, after dt: Double) {
    let step = Float(dt)
    follow(
      ((off * off).sum() - 4 * noise) / (step * step) - VelocityTrust.wayDensity * step, VelocityTrust.stepRate)
    change = SIMD2(repeating: .nan)
  }

  /// One wild velocity counts no more than a few of those that are usual.
  @inline(__always) private mutating func follow(_ variance: Float, _ rate: Float) {
    let most = 4 * jumping + 2
    jumping = max(0, jumping + (min(max(variance, -most), most) - jumping) * rate)
  }

  /// There was no velocity, or none that can be compared.
  @inline(__always) mutating func skip() {
    (difference, squares) = (.zero, 0)
    change = SIMD2(repeating: .nan)
  }
}
