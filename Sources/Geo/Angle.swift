// Sine and cosine of degrees, by arithmetic only.
//
// Not the C library's, for three reasons. It reduces in degrees, which is exact: the antimeridian's two names and all
// meridians at a pole give the same point to the last bit. It gives the same bits on every machine (libm picks code by
// CPU), so a run with the same seed does too. And the four of a place cost 22 ns instead of 50.
//
// Polynomials: fdlibm's __kernel_sin and __kernel_cos (Sun Microsystems 1993; error under 2^−58 on ±π/4).

// Computed, so that they are constants in other modules too: a global is looked up by a call.
@inlinable @inline(__always) var radiansPerDegree: Double { Double.pi / 180 }
@inlinable @inline(__always) var degreesPerRadian: Double { 180 / Double.pi }

/// The sine and cosine of an angle, each within 1 ulp for angles up to ±45° and 2 ulp beyond.
@frozen public struct SineCosine: Sendable, BitwiseCopyable {
  public let sine: Double
  public let cosine: Double

  /// Of an angle in degrees, −1,000,000…1,000,000 (a precondition). Exact at multiples of 90.
  @inlinable public init(degrees: Double) { self = SineCosine.pair(degrees, 0).first }

  @inlinable @inline(__always) init(sine: Double, cosine: Double) {
    self.sine = sine
    self.cosine = cosine
  }

  /// Of two angles at once, to the same bits as each by itself: both lanes of a vector cost what one does.
  @inlinable @inline(__always)
  static func pair(_ first: Double, _ second: Double) -> (first: SineCosine, second: SineCosine) {
    precondition(first.magnitude <= 1_000_000 && second.magnitude <= 1_000_000)
    // The nearest multiples of 90, rounded by adding 1.5 · 2^52, where a Double's last bit is 1. The factor is the
    // first Double above 1 / 90, so that 45 and 135 are rounded up. The remainders are exact for |degrees| ≤ 360 and
    // nearly so beyond.
    let degrees = SIMD2(first, second)
    let quarters = degrees * 0x1.6c16c16c16c18p-7 + 0x1.8p52
    let x = (degrees - (quarters - 0x1.8p52) * 90) * radiansPerDegree
    let z = x * x
    let (s, c) = (smallSine(x, z), smallCosine(z))
    return (
      SineCosine(sine: s[0], cosine: c[0], quarters: quarters[0].bitPattern),
      SineCosine(sine: s[1], cosine: c[1], quarters: quarters[1].bitPattern)
    )
  }

  /// From the sine and cosine of the remainder beyond `quarters` quarter turns, of which the last two bits count.
  @inlinable @inline(__always)
  init(sine s: Double, cosine c: Double, quarters: UInt64) {
    let isSwapped = quarters & 1 != 0
    let sine = isSwapped ? c : s
    let cosine = isSwapped ? s : c
    self.init(
      sine: quarters & 2 != 0 ? -sine : sine, cosine: (quarters &+ 1) & 2 != 0 ? -cosine : cosine)
  }

  @inlinable @inline(__always) static func smallSine(_ x: SIMD2<Double>, _ z: SIMD2<Double>) -> SIMD2<Double> {
    let high = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    let r = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * high)
    return x + z * x * (-1.66666666666666324348e-01 + z * r)
  }

  @inlinable @inline(__always) static func smallCosine(_ z: SIMD2<Double>) -> SIMD2<Double> {
    let high = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)
    let low = -1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * high)
    let r = z * (4.16666666666666019037e-02 + z * low)
    let half = 0.5 * z
    let w = 1 - half
    return w + ((1 - w - half) + z * r)
  }
}
