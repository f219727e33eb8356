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
  @inlinable public init(degrees: Double) {
    precondition(degrees >= -1_000_000 && degrees <= 1_000_000)
    // The nearest multiple of 90; the remainder is exact for |degrees| ≤ 360 and nearly so beyond.
    let quarters = Int(degrees * (1.0 / 90) + (degrees < 0 ? -0.5 : 0.5))
    let x = (degrees - Double(quarters) * 90) * radiansPerDegree
    let z = x * x
    let s = SineCosine.smallSine(x, z)
    let c = SineCosine.smallCosine(z)
    let isSwapped = quarters & 1 != 0
    let sine = isSwapped ? c : s
    let cosine = isSwapped ? s : c
    self.sine = quarters & 2 != 0 ? -sine : sine
    self.cosine = (quarters + 1) & 2 != 0 ? -cosine : cosine
  }

  @inlinable @inline(__always) static func smallSine(_ x: Double, _ z: Double) -> Double {
    let high = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    let r = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * high)
    return x + z * x * (-1.66666666666666324348e-01 + z * r)
  }

  @inlinable @inline(__always) static func smallCosine(_ z: Double) -> Double {
    let high = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)
    let r =
      z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * high)))
    let half = 0.5 * z
    let w = 1 - half
    return w + ((1 - w - half) + z * r)
  }
}
