// The uncertainty of the filter's state: a symmetric 4 × 4 matrix written out by hand.
//
// Ten numbers instead of sixteen, no loops, no arrays: a step is about sixty multiplications. Measurements are taken in
// one scalar at a time (their noise is uncorrelated in the frame they are taken in), which needs no matrix inverse:
// Bierman, Factorization Methods for Discrete Sequential Estimation (1977), ch. V. P ← P − p pᵀ / S keeps P exactly
// symmetric; it loses positivity only where the noise is below about 1e-13 of the variance. Here the noise is at least
// 0.0025 and the variance below 2e8 (`MotionFilter.lostVariance`), a ratio of 1e-11, and `floor` mends the last bits.

/// Covariance of (east m, north m, east velocity m/s, north velocity m/s), in that order: `p02` is east with east velocity.
struct Covariance: Sendable, Equatable {
  var p00: Double, p01: Double, p02: Double, p03: Double
  var p11: Double, p12: Double, p13: Double
  var p22: Double, p23: Double
  var p33: Double

  /// Uncorrelated, the same in east and north.
  init(position: Double, velocity: Double) {
    (p00, p01, p02, p03) = (position, 0, 0, 0)
    (p11, p12, p13) = (position, 0, 0)
    (p22, p23, p33) = (velocity, 0, velocity)
  }

  /// A step of `dt` seconds at constant velocity with white acceleration of density `q` (m²/s³) on each axis:
  /// F P Fᵀ + Q; Bar-Shalom, Li, Kirubarajan, Estimation with Applications (2001), §6.2.2.
  @inline(__always) mutating func predict(dt: Double, q: Double) {
    p00 += dt * (2 * p02 + dt * p22) + q * dt * dt * dt / 3
    p01 += dt * (p03 + p12 + dt * p23)
    p11 += dt * (2 * p13 + dt * p33) + q * dt * dt * dt / 3
    p02 += dt * p22 + q * dt * dt / 2
    p03 += dt * p23
    p12 += dt * p23
    p13 += dt * p33 + q * dt * dt / 2
    p22 += q * dt
    p33 += q * dt
  }

  /// Of the state with the east position, the north position, and the velocity in the direction of a unit vector: P hᵀ.
  @inline(__always) var withEast: SIMD4<Double> { SIMD4(p00, p01, p02, p03) }
  @inline(__always) var withNorth: SIMD4<Double> { SIMD4(p01, p11, p12, p13) }
  @inline(__always) func withVelocity(along u: SIMD2<Double>) -> SIMD4<Double> {
    SIMD4(p02, p12, p22, p23) * u.x + SIMD4(p03, p13, p23, p33) * u.y
  }

  /// P ← P − k pᵀ for p = P hᵀ and the gain k = p / S, after a scalar was taken in.
  @inline(__always) mutating func reduce(_ p: SIMD4<Double>, gain k: SIMD4<Double>) {
    p00 -= k[0] * p[0]
    p01 -= k[0] * p[1]
    p02 -= k[0] * p[2]
    p03 -= k[0] * p[3]
    p11 -= k[1] * p[1]
    p12 -= k[1] * p[2]
    p13 -= k[1] * p[3]
    p22 -= k[2] * p[2]
    p23 -= k[2] * p[3]
    p33 -= k[3] * p[3]
  }

  /// P ← A P Aᵀ for the turn of both pairs by A = [cosine sine; −sine cosine]. Rare: only near the poles.
  mutating func turn(cosine c: Double, sine s: Double) {
    let m = self
    p00 = c * c * m.p00 + 2 * c * s * m.p01 + s * s * m.p11
    p01 = c * s * (m.p11 - m.p00) + (c * c - s * s) * m.p01
    p11 = s * s * m.p00 - 2 * c * s * m.p01 + c * c * m.p11
    p02 = c * c * m.p02 + c * s * (m.p03 + m.p12) + s * s * m.p13
    p03 = c * c * m.p03 + c * s * (m.p13 - m.p02) - s * s * m.p12
    p12 = c * c * m.p12 + c * s * (m.p13 - m.p02) - s * s * m.p03
    p13 = c * c * m.p13 - c * s * (m.p03 + m.p12) + s * s * m.p02
    p22 = c * c * m.p22 + 2 * c * s * m.p23 + s * s * m.p33
    p23 = c * s * (m.p33 - m.p22) + (c * c - s * s) * m.p23
    p33 = s * s * m.p22 - 2 * c * s * m.p23 + c * c * m.p33
  }

  /// Keeps variances where rounding can't make them negative.
  @inline(__always) mutating func floor() {
    p00 = max(p00, 1e-6)
    p11 = max(p11, 1e-6)
    p22 = max(p22, 1e-6)
    p33 = max(p33, 1e-6)
  }
}
