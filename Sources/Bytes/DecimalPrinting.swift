// Numbers as decimal text, straight into a buffer, such that reading the text gives the same number again.
//
// `description` takes about 72 ns and a heap object for most doubles. Nearly all that the hub writes was rounded to a few
// decimals before, and for those there is a shorter way: r = round(a · 10^d). When Double(r) / 10^d == a, the decimal
// fraction r / 10^d *is* a number that reads back as a, because both r (≤ 2^52) and 10^d (d ≤ 22) are exact doubles, so
// that the division is the correctly rounded value of that very fraction (W. Clinger, "How to Read Floating Point
// Numbers Accurately", 1990). Where it is not, the shortest form that reads back (SwiftDtoa) is written.

extension ByteBuffer {
  /// Appends `value` in decimal: 1–20 bytes. No allocation but for the buffer's growth.
  public mutating func append(integer value: UInt64) {
    let count = decimalDigitCount(value)
    append(atMost: count) { room in
      writeDigits(value, count: count, to: room)
      return count
    }
  }

  /// Appends `value` in decimal, with a minus sign where it is negative: 1–20 bytes.
  public mutating func append(integer value: Int64) {
    if value < 0 { append(UInt8(ascii: "-")) }
    append(integer: value.magnitude)
  }

  /// Appends `value` with up to `decimals` digits behind the point, or, where those would not read back as the same
  /// Double, in its shortest exact form. Trailing zeros are left out; −0 is written as `-0`. The text is a JSON number
  /// (RFC 8259 §6).
  ///
  /// - Precondition: `value` is finite (JSON has no other numbers) and `decimals` is 0…9.
  /// - Complexity: about 15 ns for a rounded value, without allocation; the shortest form may allocate.
  public mutating func append(fixed value: Double, decimals: Int) {
    precondition(value.isFinite, "JSON has no NaN and no infinity")
    precondition(decimals >= 0 && decimals <= 9)
    let magnitude = value.magnitude
    let scale = Double(powerOfTen(decimals))
    let product = magnitude * scale
    // Rounded by adding a half and cutting off: below 2^52 that is the nearest integer or, once in a long while, its
    // neighbour, which the comparison turns down. (`rounded()` would need libm, which this module does not link.)
    let scaled = product < 0x1p52 ? Int64(product + 0.5) : 0  // signed: one instruction, unsigned takes several
    guard product < 0x1p52, Double(scaled) / scale == magnitude else {
      append(utf8: value.description)
      return
    }
    if value.sign == .minus { append(UInt8(ascii: "-")) }
    append(scaled: scaled.magnitude, decimals: decimals)
  }

  /// Appends `value` exactly: by at most six decimals where they say it, else in its shortest form.
  ///
  /// - Precondition: `value` is finite.
  public mutating func append(double value: Double) {
    append(fixed: value, decimals: 6)
  }

  /// Appends `value` / 10^`decimals` as a decimal fraction, trailing zeros left out.
  ///
  /// - Precondition: `decimals` is 0…9.
  public mutating func append(scaled value: UInt64, decimals: Int) {
    let whole: UInt64
    var fraction: UInt64
    switch decimals {  // a division by a constant is a multiplication
    case 3: (whole, fraction) = value.quotientAndRemainder(dividingBy: 1000)
    case 6: (whole, fraction) = value.quotientAndRemainder(dividingBy: 1_000_000)
    case 7: (whole, fraction) = value.quotientAndRemainder(dividingBy: 10_000_000)
    default: (whole, fraction) = value.quotientAndRemainder(dividingBy: powerOfTen(decimals))
    }
    if fraction == 0 {
      append(integer: whole)
      return
    }
    // Up to eight zeros, in few steps: most values have two decimals or three.
    var places = decimals
    while fraction % 10_000 == 0 {
      fraction /= 10_000
      places -= 4
    }
    if fraction % 100 == 0 {
      fraction /= 100
      places -= 2
    }
    if fraction % 10 == 0 {
      fraction /= 10
      places -= 1
    }
    let wholeDigits = decimalDigitCount(whole)
    let count = wholeDigits + 1 + places
    append(atMost: count) { room in
      writeDigits(whole, count: wholeDigits, to: room)
      room[wholeDigits] = UInt8(ascii: ".")
      writeDigits(fraction, count: places, to: UnsafeMutableRawBufferPointer(rebasing: room[(wholeDigits + 1)...]))
      return count
    }
  }

  /// Appends `value` with exactly `width` digits, leading zeros included, as in the fields of a date.
  ///
  /// - Precondition: `value` has at most `width` digits, and `width` is at most 20.
  public mutating func append(padded value: UInt64, width: Int) {
    precondition(decimalDigitCount(value) <= width && width <= 20)
    append(atMost: width) { room in
      writeDigits(value, count: width, to: room)
      return width
    }
  }
}

/// 10^`n` for n in 0…19. A switch over constants becomes one load; a global array would cost a once-check per access.
@inline(__always)
func powerOfTen(_ n: Int) -> UInt64 {
  switch n {
  case 0: 1
  case 1: 10
  case 2: 100
  case 3: 1000
  case 4: 10_000
  case 5: 100_000
  case 6: 1_000_000
  case 7: 10_000_000
  case 8: 100_000_000
  case 9: 1_000_000_000
  case 10: 10_000_000_000
  case 11: 100_000_000_000
  case 12: 1_000_000_000_000
  case 13: 10_000_000_000_000
  case 14: 100_000_000_000_000
  case 15: 1_000_000_000_000_000
  case 16: 10_000_000_000_000_000
  case 17: 100_000_000_000_000_000
  case 18: 1_000_000_000_000_000_000
  case 19: 10_000_000_000_000_000_000
  default: preconditionFailure("10^\(n) does not fit 64 bits")
  }
}

/// How many decimal digits `value` has: 1–20.
@inline(__always)
func decimalDigitCount(_ value: UInt64) -> Int {
  // 1233 / 4096 is log10(2) and a little: for up to 64 bits the product is the number of digits, or one less.
  let bits = 64 - (value | 1).leadingZeroBitCount
  let guess = (bits * 1233) >> 12
  return value >= powerOfTen(guess) ? guess + 1 : max(guess, 1)
}

/// Writes the last `count` decimal digits of `value`, two at a time, from the back.
@inline(__always)
private func writeDigits(_ value: UInt64, count: Int, to room: UnsafeMutableRawBufferPointer) {
  let zero = UInt8(ascii: "0")
  var rest = value
  var position = count
  while position >= 2 {
    let quotient = rest / 100
    let pair = UInt8(truncatingIfNeeded: rest - quotient * 100)
    position -= 2
    room[position] = zero &+ pair / 10
    room[position + 1] = zero &+ pair % 10
    rest = quotient
  }
  if position == 1 { room[0] = zero &+ UInt8(truncatingIfNeeded: rest % 10) }
}
