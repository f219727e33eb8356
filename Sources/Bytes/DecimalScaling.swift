// w · 10^q as the nearest double, for every w of 64 bits and every q: D. Lemire, "Number Parsing at a Gigabyte per
// Second" (2021), after M. Eisel. One or two multiplications by 128 bits of a power of five always decide the rounding:
// N. Mushtak, D. Lemire, "Fast Number Parsing Without Fallback" (2022). So a short number costs the same for every
// exponent, and `1e300` does not slow a reader.

/// The 128 highest bits of powers of five, the top bit of each set.
private enum PowersOfFive {
  /// Below the first, even 2^64 · 10^q is nearer to 0 than to the smallest double; above the last, 10^q is too large
  /// for one.
  static let exponents = -342...308

  /// Truncated; those of the exponents −27…−1, whose inverses 128 bits distinguish from all others, plus one (Lemire,
  /// section 6). Computed in some 20 µs by multiplying and dividing 256 bits by five: each step has an error of at most
  /// one in the last bit, so the first 128 are right (checked against exact division for all 651: the tests).
  static let table: [UInt128] = {
    var table = [UInt128](repeating: 0, count: exponents.count)
    let one = UInt128(1) << 127
    var (high, low) = (one, UInt128(0))
    for exponent in 0...exponents.upperBound {
      table[exponent - exponents.lowerBound] = high
      let carry = low.multipliedFullWidth(by: 5)
      let top = high.multipliedFullWidth(by: 5)
      let (middle, overflow) = top.low.addingReportingOverflow(carry.high)
      let above = top.high + (overflow ? 1 : 0)
      // 5 · high is at least 2^129 and has two or three bits more than 128.
      let shift = UInt128(128 - above.leadingZeroBitCount)
      high = above << (128 - shift) | middle >> shift
      low = middle << (128 - shift) | carry.low >> shift
    }
    (high, low) = (one, 0)
    for exponent in (exponents.lowerBound..<0).reversed() {
      let (quotient, remainder) = high.quotientAndRemainder(dividingBy: 5)
      let rest = UInt128(5).dividingFullWidth((remainder, low)).quotient
      let shift = UInt128(quotient.leadingZeroBitCount)
      high = quotient << shift | rest >> (128 - shift)
      low = rest << shift
      table[exponent - exponents.lowerBound] = high + (exponent >= -27 ? 1 : 0)
    }
    return table
  }()
}

/// `mantissa` · 10^`exponent`, correctly rounded (ties to even); infinite where no double is as large. About 10 ns.
func scaledDecimal(_ mantissa: UInt64, _ exponent: Int) -> Double {
  guard mantissa != 0, exponent >= PowersOfFive.exponents.lowerBound else { return 0 }
  guard exponent <= PowersOfFive.exponents.upperBound else { return .infinity }
  let leadingZeros = mantissa.leadingZeroBitCount
  let product = approximateProduct(mantissa << UInt64(leadingZeros), exponent)
  let isCarried = Int(product.high >> 63)
  let shift = UInt64(isCarried + 64 - 52 - 3)
  // 53 bits and one more, by which it is rounded.
  var significand = product.high >> shift
  // 10^q is 5^q · 2^q: floor(q · log2(10)) by a factor that is exact over all exponents here.
  var power = (217_706 * exponent) >> 16 + 63 + isCarried - leadingZeros + 1023
  guard power > 0 else { return subnormal(significand, belowBy: 1 - power) }
  // Exactly half-way, which only few powers allow: down, where that is even.
  if product.low <= 1, (-4...23).contains(exponent), significand & 3 == 1, significand << shift == product.high {
    significand &= ~1
  }
  significand = (significand + significand & 1) >> 1
  if significand == 1 << 53 {
    significand >>= 1
    power += 1
  }
  guard power < 0x7FF else { return .infinity }
  return Double(bitPattern: UInt64(power) << 52 | significand & (1 << 52 - 1))
}

/// The 128 highest bits of a mantissa, its top bit set, times 5^`exponent`: as many of them right as rounding needs.
private func approximateProduct(_ mantissa: UInt64, _ exponent: Int) -> (high: UInt64, low: UInt64) {
  let power = PowersOfFive.table[exponent - PowersOfFive.exponents.lowerBound]
  var (high, low) = mantissa.multipliedFullWidth(by: UInt64(truncatingIfNeeded: power >> 64))
  // What is left out can carry into the bits that count only where all bits below these are set.
  guard high & 0x1FF == 0x1FF else { return (high, low) }
  let rest = mantissa.multipliedFullWidth(by: UInt64(truncatingIfNeeded: power)).high
  let (sum, overflow) = low.addingReportingOverflow(rest)
  low = sum
  if overflow { high += 1 }
  return (high, low)
}

/// A double below 2^−1022, whose significand has fewer bits; 0 where none is left.
private func subnormal(_ significand: UInt64, belowBy bits: Int) -> Double {
  guard bits < 64 else { return 0 }
  let shifted = significand >> UInt64(bits)
  // Rounded up to 2^52 it is the smallest normal number, as its bits are.
  return Double(bitPattern: (shifted + shifted & 1) >> 1)
}
