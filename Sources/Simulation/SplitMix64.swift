// The one source of chance in a simulation: small, fast, and the same on every machine (`Mix64`).
//
// The standard library's distributions are not used with it, for their algorithms may change between releases.
import Glibc  // logarithm, sine and cosine for the normal distribution: pure functions
import HubBytes

/// A seeded generator. The same seed gives the same numbers.
public struct SplitMix64: RandomNumberGenerator, Sendable {
  private var state: UInt64

  public init(seed: UInt64) { state = seed }

  /// An independent generator for each (seed, index, purpose).
  public init(seed: UInt64, index: Int, purpose: UInt64) {
    var mixer = SplitMix64(seed: seed)
    var other = SplitMix64(seed: mixer.next() ^ UInt64(bitPattern: Int64(index)) &* 0xD6E8_FEB8_6659_FD93)
    state = other.next() ^ purpose &* 0xA076_1D64_78BD_642F
  }

  /// 64 random bits; the same seed gives the same sequence.
  public mutating func next() -> UInt64 { Mix64.next(&state) }

  /// Uniform, 0 ≤ result < 1, 53 bits.
  public mutating func unit() -> Double { Mix64.unit(next()) }

  /// Uniform, low ≤ result < high.
  public mutating func uniform(_ low: Double, _ high: Double) -> Double { low + (high - low) * unit() }

  /// Uniform, 0 ≤ result < count, for 0 < count ≤ 2³². (Lemire's multiplication without the rejection: the bias is
  /// below 2⁻³² for every count a city has.)
  public mutating func below(_ count: Int) -> Int { Int(((next() &>> 32) &* UInt64(count)) &>> 32) }

  /// True with the given probability.
  public mutating func chance(_ probability: Double) -> Bool { unit() < probability }

  /// Two independent values of the standard normal distribution (Box–Muller).
  public mutating func normals() -> SIMD2<Double> {
    let radius = (-2 * log(1 - unit())).squareRoot()
    let angle = 2 * Double.pi * unit()
    return SIMD2(cos(angle), sin(angle)) * radius
  }
}
