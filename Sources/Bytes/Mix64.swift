// Mixing of 64-bit numbers: splitmix64, of Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (OOPSLA
// 2014), with the constants of Vigna's splitmix64.c. Small, fast, and the same on every machine; not for keys.

/// The steps of splitmix64: a finaliser, and a generator whose state the caller keeps.
public enum Mix64 {
  /// 2^64 divided by the golden ratio: multiplying by it spreads neighbouring numbers (Knuth, TAOCP 3, 6.4).
  @inlinable public static var golden: UInt64 { 0x9E37_79B9_7F4A_7C15 }

  /// The finaliser: each bit of the result depends on all bits of the number. Reversible.
  @inlinable public static func mix(_ number: UInt64) -> UInt64 {
    var mixed = number
    mixed = (mixed ^ mixed &>> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed &>> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed &>> 31
  }

  /// The next of a sequence of numbers that passes for random, whose state is `state`: any number to begin with.
  @inlinable public static func next(_ state: inout UInt64) -> UInt64 {
    state &+= golden
    return mix(state)
  }

  /// Uniform, 0 ≤ result < 1, in steps of 2⁻⁵³: the upper bits of a random number.
  @inlinable public static func unit(_ random: UInt64) -> Double { Double(random &>> 11) * 0x1p-53 }
}
