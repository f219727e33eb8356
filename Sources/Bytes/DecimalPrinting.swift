// Numbers as decimal text, straight into a buffer, such that reading the text gives the same number again.
//
// `description` takes about 72 ns and a heap object for most doubles. Nearly all that the hub writes was rounded to a
// few decimals before, and for those there is a shorter way: r = round(a · 10^d). When Double(r) / 10^d == a, the
// decimal fraction r / 10^d *is* a number that reads back as a, because both r (≤ 2^52) and 10^d (d ≤ 22) are exact
// doubles, so that the division is the correctly rounded value of that very fraction (W. Clinger, "How to Read Floating
// Point Numbers Accurately", 1990). Where it is not, the shortest form that reads back (SwiftDtoa) is written.

/// Bytes that any number takes at most: `-` and 17 digits, a point, an exponent of five characters; or 20 digits.
let numberBytes = 32

extension ByteRoom {
  /// Appends `value` in decimal: 1–20 bytes.
  public mutating func append(integer value: UInt64) {
    demand(numberBytes)
    put(integer: value)
  }

  @inline(__always)
  private mutating func put(integer value: UInt64) {
    if value < 10 {
      put(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value))
    } else if value < 100 {
      let tens = (value &* 103) >> 10
      put(word: (tens | (value &- tens &* 10) << 8) | asciiZeros, count: 2)
    } else if value < 100_000_000 {
      put(upToEightDigits: value)
    } else if value < 10_000_000_000_000_000 {
      putSixteen(value)
    } else {
      let (rest, low) = value.quotientAndRemainder(dividingBy: 10_000_000_000_000_000)
      put(upToEightDigits: rest)
      let (middle, last) = low.quotientAndRemainder(dividingBy: 100_000_000)
      put(word: eightDigits(middle) | asciiZeros, count: 8)
      put(word: eightDigits(last) | asciiZeros, count: 8)
    }
  }

  /// Writes a number of nine to sixteen digits, such as milliseconds since 1970.
  private mutating func putSixteen(_ value: UInt64) {
    let (high, low) = value.quotientAndRemainder(dividingBy: 100_000_000)
    put(upToEightDigits: high)
    put(word: eightDigits(low) | asciiZeros, count: 8)
  }

  @inline(__always)
  private mutating func put(upToEightDigits value: UInt64) {
    let digits = eightDigits(value)
    let zeros = (digits | 1 << 56).trailingZeroBitCount / 8  // at most seven: 0 is one digit
    put(word: (digits | asciiZeros) &>> UInt64(truncatingIfNeeded: 8 &* zeros), count: 8 &- zeros)
  }

  /// Appends `value` in decimal, with a minus sign where it is negative: 1–20 bytes.
  public mutating func append(integer value: Int64) {
    if value < 0 { append(UInt8(ascii: "-")) }
    append(integer: value.magnitude)
  }

  /// Appends `value` with up to `decimals` digits behind the point, or, where those would not read back as the same
  /// Double, in its shortest exact form. Trailing zeros are left out; −0 is written as `-0`. The text is a JSON number
  /// (RFC 8259 §6) of at most 26 bytes.
  ///
  /// - Precondition: `value` is finite (JSON has no other numbers) and `decimals` is 0…9.
  /// - Complexity: about 10 ns for a rounded value, without allocation; the shortest form may allocate.
  public mutating func append(fixed value: Double, decimals: Int) {
    precondition(decimals >= 0 && decimals <= 9)
    let magnitude = value.magnitude
    let scale = exactPowerOfTen(decimals)
    let product = magnitude * scale
    // A double from 2^52 to 2^53 has no bits left for a fraction: the sum is rounded, and its low bits are the integer.
    let shifted = product + 0x1p52
    guard product < 0x1p52, (shifted - 0x1p52) / scale == magnitude else {  // NaN and infinity fail too
      appendShortest(value)
      return
    }
    let scaled = shifted.bitPattern &- 0x1p52.bitPattern
    demand(numberBytes)
    if value.sign == .minus { put(UInt8(ascii: "-")) }
    put(scaled: scaled, decimals: decimals)
  }

  /// Appends the shortest text that reads back as `value`.
  @inline(never)
  private mutating func appendShortest(_ value: Double) {
    precondition(value.isFinite, "JSON has no NaN and no infinity")
    append(utf8: value.description, atMost: numberBytes)
  }

  /// Appends `value` exactly: by at most six decimals where these suffice, else in its shortest form.
  ///
  /// - Precondition: `value` is finite.
  @inlinable @inline(__always)
  public mutating func append(double value: Double) {
    append(fixed: value, decimals: 6)
  }

  /// Appends `value` exactly, as `append(double:)`; in half the time where it has two decimals and is in 0 ..< 10,000,
  /// as speeds, headings and radii are.
  ///
  /// - Precondition: `value` is finite.
  public mutating func append(hundredths value: Double) {
    guard value.sign == .plus, let steps = exactSteps(value, 100, below: 1e6) else { return append(double: value) }
    let (whole, fraction) = steps.quotientAndRemainder(dividingBy: 100)
    demand(numberBytes)
    put(integer: whole)
    if fraction == 0 { return }
    let tens = (fraction &* 103) >> 10
    let ones = fraction &- tens &* 10
    put(word: UInt64(UInt8(ascii: ".")) | tens << 8 | ones << 16 | 0x30_3000, count: ones == 0 ? 2 : 3)
  }

  /// Appends `value` exactly, as `append(double:)`; in half the time where it has three decimals and is in 0 ..< 10^12,
  /// as seconds from milliseconds are.
  ///
  /// - Precondition: `value` is finite.
  public mutating func append(thousandths value: Double) {
    guard value.sign == .plus, let steps = exactSteps(value, 1000, below: 1e15) else { return append(double: value) }
    let (whole, fraction) = steps.quotientAndRemainder(dividingBy: 1000)
    demand(numberBytes)
    put(integer: whole)
    if fraction == 0 { return }
    let hundreds = (fraction &* 41) >> 12  // 41 / 2^12 is 1/100, right below 1,000
    let rest = fraction &- hundreds &* 100
    let tens = (rest &* 103) >> 10
    let digits = hundreds | tens << 8 | (rest &- tens &* 10) << 16
    put(
      word: UInt64(UInt8(ascii: ".")) | (digits | 0x30_3030) << 8, count: 9 &- digits.leadingZeroBitCount / 8)
  }

  /// Appends `value` exactly, as `append(fixed:decimals: 7)`; in two thirds of the time where it was rounded to 1e-7
  /// and is no further than 1,000 from 0, as degrees are.
  ///
  /// - Precondition: `value` is finite.
  public mutating func append(degrees value: Double) {
    guard let steps = exactSteps(value.magnitude, 1e7, below: 1e10) else { return append(fixed: value, decimals: 7) }
    demand(numberBytes)
    if value.sign == .minus { put(UInt8(ascii: "-")) }
    let (whole, fraction) = steps.quotientAndRemainder(dividingBy: 10_000_000)
    put(integer: whole)
    if fraction == 0 { return }
    // Seven digits and a zero, of which the point takes the room.
    let digits = eightDigits(fraction &* 10)
    put(word: (digits | asciiZeros) << 8 | UInt64(UInt8(ascii: ".")), count: 9 &- digits.leadingZeroBitCount / 8)
  }

  /// Appends `value` / 10^`decimals` as a decimal fraction, trailing zeros left out.
  ///
  /// - Precondition: `decimals` is 0…9.
  public mutating func append(scaled value: UInt64, decimals: Int) {
    demand(numberBytes)
    put(scaled: value, decimals: decimals)
  }

  @inline(__always)
  private mutating func put(scaled value: UInt64, decimals: Int) {
    let whole: UInt64
    var fraction: UInt64
    switch decimals {  // a division by a constant is a multiplication
    case 3: (whole, fraction) = value.quotientAndRemainder(dividingBy: 1000)
    case 6: (whole, fraction) = value.quotientAndRemainder(dividingBy: 1_000_000)
    case 7: (whole, fraction) = value.quotientAndRemainder(dividingBy: 10_000_000)
    default: (whole, fraction) = value.quotientAndRemainder(dividingBy: powerOfTen(decimals))
    }
    put(integer: whole)
    if fraction == 0 { return }
    put(UInt8(ascii: "."))
    if decimals == 9 {
      let (first, others) = fraction.quotientAndRemainder(dividingBy: 100_000_000)
      put(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: first))
      fraction = others
    } else {
      fraction &*= powerOfTen(8 - decimals)
    }
    let digits = eightDigits(fraction)  // the last ones highest
    put(word: digits | asciiZeros, count: 8 &- digits.leadingZeroBitCount / 8)
  }

  /// Appends `value` with exactly `width` digits, leading zeros included, as in the fields of a date.
  ///
  /// - Precondition: `value` has at most `width` digits, and `width` is 1…20.
  public mutating func append(padded value: UInt64, width: Int) {
    precondition(width >= 1 && width <= 20)
    demand(numberBytes)
    guard width <= 8 else {
      let (rest, low) = value.quotientAndRemainder(dividingBy: 100_000_000)
      append(padded: rest, width: width - 8)
      put(word: eightDigits(low) | asciiZeros, count: 8)
      return
    }
    precondition(value < powerOfTen(width))
    put(word: (eightDigits(value) | asciiZeros) >> UInt64(8 * (8 - width)), count: width)
  }
}

extension ByteBuffer {
  /// Appends `value` in decimal: 1–20 bytes. No allocation but for the buffer's growth.
  public mutating func append(integer value: UInt64) {
    withRoom(for: numberBytes) { $0.append(integer: value) }
  }

  /// Appends `value` in decimal, with a minus sign where it is negative: 1–20 bytes.
  public mutating func append(integer value: Int64) {
    withRoom(for: numberBytes) { $0.append(integer: value) }
  }

  /// Appends `value` with up to `decimals` digits behind the point, or, where those would not read back as the same
  /// Double, in its shortest exact form: at most 26 bytes (see `ByteRoom.append(fixed:decimals:)`).
  ///
  /// - Precondition: `value` is finite, and `decimals` is 0…9.
  public mutating func append(fixed value: Double, decimals: Int) {
    withRoom(for: numberBytes) { $0.append(fixed: value, decimals: decimals) }
  }

  /// Appends `value` exactly: by at most six decimals where these suffice, else in its shortest form.
  ///
  /// - Precondition: `value` is finite.
  public mutating func append(double value: Double) {
    append(fixed: value, decimals: 6)
  }

  /// Appends `value` / 10^`decimals` as a decimal fraction, trailing zeros left out.
  ///
  /// - Precondition: `decimals` is 0…9.
  public mutating func append(scaled value: UInt64, decimals: Int) {
    withRoom(for: numberBytes) { $0.append(scaled: value, decimals: decimals) }
  }

  /// Appends `value` with exactly `width` digits, leading zeros included.
  ///
  /// - Precondition: `value` has at most `width` digits, and `width` is 1…20.
  public mutating func append(padded value: UInt64, width: Int) {
    withRoom(for: numberBytes) { $0.append(padded: value, width: width) }
  }
}

/// `0` in each byte.
private let asciiZeros: UInt64 = 0x3030_3030_3030_3030

/// The eight decimal digits of a value below 10^8, a byte each, the first one lowest: halves, then quarters, then
/// digits, all at once, each by a multiplication (P. Khuong, "How to print integers really fast").
@inline(__always)
private func eightDigits(_ value: UInt64) -> UInt64 {
  let high = value / 10_000
  let fours = high | (value &- high &* 10_000) << 32
  let hundreds = ((fours &* 10_486) >> 20) & 0x0000_007F_0000_007F  // 10,486 / 2^20 is 1/100, right below 10,000
  let pairs = hundreds | (fours &- hundreds &* 100) << 16
  let tens = ((pairs &* 103) >> 10) & 0x000F_000F_000F_000F  // 103 / 2^10 is 1/10, right below 100
  return tens | (pairs &- tens &* 10) << 8
}

/// The integer `magnitude` · `scale`; nil where it does not convert back, or is not below `limit` (at most 2^51).
/// Adding 2^52 rounds: in that range a double has no fraction.
@inline(__always)
private func exactSteps(_ magnitude: Double, _ scale: Double, below limit: Double) -> UInt64? {
  let product = magnitude * scale
  let shifted = product + 0x1p52
  guard product < limit, (shifted - 0x1p52) / scale == magnitude else { return nil }
  return shifted.bitPattern &- 0x1p52.bitPattern
}

/// 10^`n` for n in 0…19. A switch over constants becomes one load; a global array would cost a once-check per access.
@inlinable @inline(__always)
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
