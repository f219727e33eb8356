// Separates model error from measurement noise in the innovations.
//
// The innovations of a filter with a correct model are independent; in a long bend, or when a car brakes, a filter
// without Doppler lags on the same side fix after fix. Treated as noise, this would make the filter trust the fixes
// less and leave the road. So the common part of two successive innovations is subtracted from the measurement noise
// and added to the process noise, which makes successive innovations orthogonal (Zhou, Frank, Strong tracking filtering
// of nonlinear time-varying stochastic systems, Int. J. Control 65 (1996)).
// Where Doppler shows the bend, correlated innovations are reflections: they stay noise, and show more of it than one
// alone.

/// The common part of successive innovations. 16 bytes.
struct ModelError: Sendable {
  private var last = SIMD2<Float>.zero
  /// m²: the mean product of an innovation with the previous one.
  private var mean: Float = 0

  private static let rate: Float = 0.4
  /// White acceleration of density q adds a variance of q dt³ / 3 to the position on each of two axes.
  private static let densityPerSquare = 1.5
  /// m²/s³ for a second's step: an acceleration of 10 m/s² that lasts as long as the step. No car has more.
  private static let densityCap = 100.0
  /// Innovations are limited to this many times the noise's variance: outliers say nothing about the model.
  private static let innovationClip = 16.0

  init() {}

  /// Takes an innovation of a fix whose noise is expected to be `noise` (m²). Returns its product with the last one.
  @inline(__always) mutating func add(_ y: SIMD2<Double>, noise: Double) -> Double {
    let square = (y * y).sum()
    let clip = ModelError.innovationClip * noise
    let bounded = SIMD2<Float>(square > clip ? y * (clip / square).squareRoot() : y)
    let product = (bounded * last).sum()
    mean += (product - mean) * ModelError.rate
    last = bounded
    return Double(product)
  }

  /// The density of white acceleration (m²/s³) that explains the common part of the last innovations, of product
  /// `product`, after a step of `dt` seconds. 0 where they have no common part.
  @inline(__always) func density(product: Double, after dt: Double) -> Double {
    let common = min(Double(mean), product)
    guard common > 0, dt > 0 else { return 0 }
    return min(ModelError.densityPerSquare * common / (dt * dt * dt), ModelError.densityCap * dt)
  }
}
