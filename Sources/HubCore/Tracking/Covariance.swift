// The uncertainty of the filter's state: a symmetric 3 × 3 matrix, one for both axes.
//
// East and north are measured alike (a receiver solves for both with the same satellites, and a bearing that is 3° off
// is a velocity that is off sideways), and a car accelerates in all directions. So both axes have the same covariance
// and none with each other: six numbers instead of twenty-one, no trigonometry, and nothing to rotate at the poles. On
// the drives with known truth this costs nothing against a full matrix.
//
// Scalars are processed one at a time, which needs no inverse: Bierman, Factorization Methods for Discrete Sequential
// Estimation (1977), ch. V. P ← P − p pᵀ / S keeps P exactly symmetric; it loses positivity only where the noise is
// below about 1e-13 of the variance. Here the noise is at least 0.00013 and the variance below 2e8
// (`MotionFilter.lostVariance`), a ratio of 6e-13, and `floor` corrects the last bits.

/// Covariance of one axis's position (m), velocity (m/s) and fix bias (m), in that order: `p01` is position with
/// velocity.
struct Covariance: Sendable, Equatable {
  var p00: Double, p01: Double, p02: Double
  var p11: Double, p12: Double
  var p22: Double

  /// Uncorrelated.
  init(position: Double, velocity: Double, bias: Double) {
    (p00, p01, p02) = (position, 0, 0)
    (p11, p12, p22) = (velocity, 0, bias)
  }

  /// A step of `dt` seconds at constant velocity with white acceleration of density `q` (m²/s³): F P Fᵀ + Q;
  /// Bar-Shalom, Li, Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), §6.2.2. `drift` (m²)
  /// is added to the position's variance.
  @inline(__always) mutating func predict(dt: Double, q: Double, drift: Double) {
    p00 += dt * (2 * p01 + dt * p11) + drift
    p01 += dt * p11
    p02 += dt * p12
    widen(dt: dt, q: q)
  }

  /// What white acceleration of density `q` (m²/s³) adds over `dt` seconds.
  @inline(__always) mutating func widen(dt: Double, q: Double) {
    p00 += q * dt * dt * dt / 3
    p01 += q * dt * dt / 2
    p11 += q * dt
  }

  /// The bias keeps the part `kept` and is driven by noise of variance `added`: a first-order Gauss–Markov process.
  @inline(__always) mutating func fadeBias(kept: Double, added: Double) {
    p02 *= kept
    p12 *= kept
    p22 = p22 * kept * kept + added
  }

  /// The covariance of the state with what a fix measures: with its velocity, and with its position plus the bias.
  @inline(__always) var withVelocity: SIMD3<Double> { SIMD3(p01, p11, p12) }
  @inline(__always) var withFix: SIMD3<Double> { SIMD3(p00 + p02, p01 + p12, p02 + p22) }
  /// The expected variance of a fix's position, without its noise.
  @inline(__always) var ofFix: Double { p00 + 2 * p02 + p22 }

  /// P ← P − k pᵀ for p = P hᵀ and the gain k = p / S, after a scalar measurement.
  @inline(__always) mutating func reduce(_ p: SIMD3<Double>, gain k: SIMD3<Double>) {
    p00 -= k.x * p.x
    p01 -= k.x * p.y
    p02 -= k.x * p.z
    p11 -= k.y * p.y
    p12 -= k.y * p.z
    p22 -= k.z * p.z
  }

  /// Keeps variances from becoming negative by rounding.
  @inline(__always) mutating func floor() {
    p00 = max(p00, 1e-6)
    p11 = max(p11, 1e-6)
    p22 = max(p22, 1e-6)
  }
}
