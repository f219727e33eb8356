// Which part of the innovations is the model's fault.
//
// The innovations of a filter whose model is right are independent of each other; in a long bend, or where a car
// brakes, a filter without Doppler is left behind on the same side fix after fix. Taken for noise, this makes the
// filter trust the fixes less and leave the road for good. So the part that two innovations one after the other have in
// common is taken off what counts as noise, and put on the process noise: what makes successive innovations orthogonal
// (Zhou, Frank, Strong tracking filtering of nonlinear time-varying stochastic systems, Int. J. Control 65 (1996)).
// Where Doppler tells of the bend, innovations that go together are reflections: they stay noise, and are of more noise
// than one by itself shows.

/// The common part of successive innovations. 16 bytes.
struct ModelError: Sendable {
  private var last = SIMD2<Float>.zero
  /// m²: mean of the products of an innovation with the one before.
  private var mean: Float = 0

  private static let rate: Float = 0.4
  /// White acceleration of density q moves the place by a variance of q dt³ / 3 on each of two axes.
  private static let densityPerSquare = 1.5
  /// m²/s³ for a second's step: an acceleration of 10 m/s² that lasts as long as the step. No car has more.
  private static let mostDensity = 100.0
  /// Innovations count up to this many times the noise's variance: outliers tell nothing of the model.
  private static let most = 16.0

  init() {}

  /// Takes an innovation of a fix whose noise is expected to be `noise` (m²). Returns its product with the one before.
  @inline(__always) mutating func add(_ y: SIMD2<Double>, noise: Double) -> Double {
    let square = (y * y).sum()
    let most = ModelError.most * noise
    let bounded = SIMD2<Float>(square > most ? y * (most / square).squareRoot() : y)
    let product = (bounded * last).sum()
    mean += (product - mean) * ModelError.rate
    last = bounded
    return Double(product)
  }

  /// The density of white acceleration (m²/s³) that explains the common part of the last innovations, whose product is
  /// `product`, after a step of `dt` seconds. 0 where they have none in common.
  @inline(__always) func density(product: Double, after dt: Double) -> Double {
    let common = min(Double(mean), product)
    guard common > 0, dt > 0 else { return 0 }
    return min(ModelError.densityPerSquare * common / (dt * dt * dt), ModelError.mostDensity * dt)
  }
}
