// Numbers from decimal text: the grammar of RFC 8259 §6 to the letter, correctly rounded.
//
//     number = [ "-" ] int [ "." 1*DIGIT ] [ ( "e" / "E" ) [ "-" / "+" ] 1*DIGIT ]
//     int    = "0" / ( digit1-9 *DIGIT )
//
// Three ways to the value, each exact where it is taken:
// 1. w · 10^±q with w ≤ 2^53 and q ≤ 22: both are exact doubles, so one operation rounds once (W. Clinger, "How to Read
//    Floating Point Numbers Accurately", 1990). About 15 ns.
// 2. Any w of up to 19 digits and any q, which is what JSONEncoder writes for a coordinate with all its 17 digits: by
//    128 bits of a power of five (DecimalScaling.swift). A number with more digits lies between two of these, and where
//    both are rounded to the same double, so is it.
// 3. The rest, 20 digits and more close to the middle between two doubles: Swift's own Double(String),
//    independent of the locale. It takes 130 ns for at least 21 bytes.

/// A number at the head of a text.
public struct ScannedNumber: Sendable, Equatable {
  /// The index of the first byte behind the number.
  public var end: Int
  /// The nearest double (ties to even); infinite where the number is too large for one.
  public var value: Double

  @inlinable public init(end: Int, value: Double) {
    self.end = end
    self.value = value
  }
}

/// Reads the JSON number that begins at `start`; what follows it is the caller's business.
///
/// - Returns: nil where the bytes are no number by RFC 8259 §6 (`+1`, `01`, `.5`, `1.`, `1e`, `NaN`).
/// - Complexity: O(length), whatever the number is; no allocation up to 19 digits.
@inlinable @inline(__always)
public func scanNumber(_ bytes: Span<UInt8>, from start: Int) -> ScannedNumber? {
  // Most numbers end within one word: a speed, a heading, an accuracy. These are read inline.
  if let word = bytes.wholeWord(at: start), let number = ShortNumber(word) {
    return ScannedNumber(end: start &+ number.length, value: number.value)
  }
  return scanLongNumber(bytes, from: start)
}

/// A number without sign and exponent that a word begins with, together with the byte that ends it.
@usableFromInline
struct ShortNumber {
  @usableFromInline let length: Int
  @usableFromInline let value: Double

  /// Nil for any other number, and for no number: `scanLongNumber` distinguishes them.
  @inlinable @inline(__always)
  init?(_ word: UInt64) {
    let run = DigitRun(word)
    guard !run.isWhole else { return nil }
    let whole = run.count
    guard whole > 0, whole == 1 || run.digits & 0xFF != 0 else { return nil }
    let wholeBits = UInt64(truncatingIfNeeded: 8 &* whole)
    var last = (word &>> wholeBits) & 0xFF
    if last == 0x2E {  // a point, which carries nothing into the bytes behind it: the next end is exact as well
      let ends = run.ends & (run.ends &- 1)
      length = ends.trailingZeroBitCount &>> 3
      let decimals = length &- whole &- 1
      guard ends != 0, decimals > 0 else { return nil }
      // The digits before the point move up over its byte: one run of digits, with a zero before it.
      let before = (1 &<< wholeBits) &- 1
      let row = (run.digits & before) &<< 8 | run.digits & ~(before &<< 8 | 0xFF)
      let mantissa = DigitRun.value(row &<< UInt64(truncatingIfNeeded: 64 &- 8 &* length))
      last = (word &>> UInt64(truncatingIfNeeded: 8 &* length)) & 0xFF
      value = Double(Int64(truncatingIfNeeded: mantissa)) / Double(Int64(truncatingIfNeeded: powerOfTen(decimals)))
    } else {
      length = whole
      value = Double(Int64(truncatingIfNeeded: run.value(ofFirst: whole)))
    }
    if last | 0x20 == 0x65 { return nil }  // e or E
  }
}

/// Numbers of up to seven digits before the point and 15 behind it, which is what coordinates have, a word at a time;
/// what has more digits, or not two words behind it, is `scanAnyNumber`'s.
@usableFromInline @inline(never)
func scanLongNumber(_ bytes: Span<UInt8>, from start: Int) -> ScannedNumber? {
  precondition(UInt(bitPattern: start) <= UInt(bitPattern: bytes.count))
  let isNegative = bytes.has(UInt8(ascii: "-"), at: start)
  let first = isNegative ? start &+ 1 : start
  guard let ahead = bytes.twoWords(at: first) else { return scanAnyNumber(bytes, from: start) }
  let whole = DigitRun(ahead.first)
  guard !whole.isWhole else { return scanAnyNumber(bytes, from: start) }
  let wholeDigits = whole.count
  guard wholeDigits > 0, wholeDigits == 1 || whole.digits & 0xFF != 0 else { return nil }
  var end = first &+ wholeDigits
  var mantissa = whole.value(ofFirst: wholeDigits)
  var decimals = 0
  if bytes.has(UInt8(ascii: "."), at: end) {
    var fraction = DigitRun(bytes.word(at: end &+ 1))
    if fraction.isWhole {
      mantissa = mantissa &* 100_000_000 &+ fraction.value
      decimals = 8
      fraction = DigitRun(bytes.word(at: end &+ 9))
      guard !fraction.isWhole else { return scanAnyNumber(bytes, from: start) }
    }
    let rest = fraction.count
    if rest > 0 { mantissa = mantissa &* powerOfTen(rest) &+ fraction.value(ofFirst: rest) }
    decimals &+= rest
    guard decimals > 0 else { return nil }
    end &+= 1 &+ decimals
  }
  // 19 digits always fit 64 bits.
  guard wholeDigits &+ decimals <= 19 else { return scanAnyNumber(bytes, from: start) }
  var exponent = -decimals
  if end < bytes.count, bytes[end] | 0x20 == UInt8(ascii: "e") {
    guard let scanned = scanExponent(bytes, from: end &+ 1) else { return nil }
    exponent &+= scanned.exponent
    end = scanned.end
  }
  let magnitude = decimal(mantissa, exponent)
  return ScannedNumber(end: end, value: isNegative ? -magnitude : magnitude)
}

/// Reads a number of any form and length; nil where there is none.
@usableFromInline @inline(never)
func scanAnyNumber(_ bytes: Span<UInt8>, from start: Int) -> ScannedNumber? {
  var i = start
  let isNegative = i < bytes.count && bytes[i] == UInt8(ascii: "-")
  if isNegative { i += 1 }

  var mantissa: UInt64 = 0
  let firstDigit = i
  i = scanDigits(bytes, from: i, into: &mantissa)
  var digits = i - firstDigit
  guard digits > 0 else { return nil }
  guard digits == 1 || bytes[firstDigit] != UInt8(ascii: "0") else { return nil }  // no leading zeros

  var exponent = 0
  if i < bytes.count, bytes[i] == UInt8(ascii: ".") {
    let fraction = i + 1
    i = scanDigits(bytes, from: fraction, into: &mantissa)
    guard i > fraction else { return nil }
    exponent = fraction - i
    digits += i - fraction
  }
  if i < bytes.count, bytes[i] | 0x20 == UInt8(ascii: "e") {
    guard let scanned = scanExponent(bytes, from: i + 1) else { return nil }
    exponent += scanned.exponent
    i = scanned.end
  }
  // 19 digits always fit 64 bits; with more, the mantissa has wrapped around.
  let magnitude = digits <= 19 ? decimal(mantissa, exponent) : longDecimal(bytes, firstDigit..<i, digits, exponent)
  return ScannedNumber(end: i, value: isNegative ? -magnitude : magnitude)
}

/// The value of a text that is one JSON number and nothing else.
///
/// - Returns: nil where it is none, or where its value is too large for a Double.
public func parseDouble(_ bytes: UnsafeRawBufferPointer) -> Double? {
  let span = unsafe bytes.assumingMemoryBound(to: UInt8.self).span
  guard let number = scanNumber(span, from: 0), number.end == span.count, number.value.isFinite else { return nil }
  return number.value
}

/// The value of a text that is one JSON integer without exponent.
///
/// - Returns: nil where it is none, negative, or does not fit 64 bits.
public func parseUnsignedInteger(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
  guard let first = unsafe bytes.first, bytes.count == 1 || first != UInt8(ascii: "0") else { return nil }
  var value: UInt64 = 0
  for index in bytes.indices {
    let digit = UInt64(unsafe bytes[index] &- UInt8(ascii: "0"))
    guard digit <= 9 else { return nil }
    let (product, overflow) = value.multipliedReportingOverflow(by: 10)
    let (sum, carry) = product.addingReportingOverflow(digit)
    guard !overflow, !carry else { return nil }
    value = sum
  }
  return value
}

/// Reads an integer of 8–15 digits, such as a time in milliseconds, eight digits at once.
///
/// - Returns: nil for any other number, for none, and for less than 16 bytes: then call `scanNumber`. What follows is
///   the caller's business, also where it is a point or an exponent, with which the number is another one.
@inlinable @inline(__always)
public func scanWholeNumber(_ bytes: Span<UInt8>, from start: Int) -> (end: Int, value: UInt64)? {
  guard let (first, second) = bytes.twoWords(at: start) else { return nil }
  let high = DigitRun(first)
  let low = DigitRun(second)
  guard high.isWhole, high.digits & 0xFF != 0, !low.isWhole else { return nil }
  let digits = low.count
  if digits == 0 { return (start &+ 8, high.value) }
  return (start &+ 8 &+ digits, high.value &* powerOfTen(digits) &+ low.value(ofFirst: digits))
}

/// Adds digits to `mantissa` (which wraps around behind 19 of them) and returns the index of the first other byte.
private func scanDigits(_ bytes: Span<UInt8>, from start: Int, into mantissa: inout UInt64) -> Int {
  var i = start
  var run = DigitRun(bytes.word(at: i))
  while run.isWhole {
    mantissa = mantissa &* 100_000_000 &+ run.value
    i &+= 8
    run = DigitRun(bytes.word(at: i))
  }
  let count = run.count
  if count > 0 { mantissa = mantissa &* powerOfTen(count) &+ run.value(ofFirst: count) }
  return i &+ count
}

private func scanExponent(_ bytes: Span<UInt8>, from start: Int) -> (exponent: Int, end: Int)? {
  var i = start
  var isNegative = false
  if i < bytes.count, bytes[i] == UInt8(ascii: "+") || bytes[i] == UInt8(ascii: "-") {
    isNegative = bytes[i] == UInt8(ascii: "-")
    i += 1
  }
  let firstDigit = i
  var exponent = 0
  while i < bytes.count {
    let digit = bytes[i] &- UInt8(ascii: "0")
    guard digit <= 9 else { break }
    // Capped, so that it can't overflow: no message has the million digits that would bring such a number back.
    exponent = min(exponent * 10 + Int(digit), 1_000_000)
    i += 1
  }
  guard i > firstDigit else { return nil }
  return (isNegative ? -exponent : exponent, i)
}

/// `mantissa` · 10^`exponent`, correctly rounded.
@inline(__always)
private func decimal(_ mantissa: UInt64, _ exponent: Int) -> Double {
  if mantissa <= 1 << 53 {
    let exact = Double(Int64(truncatingIfNeeded: mantissa))  // signed: one instruction, unsigned takes several
    if exponent == 0 || mantissa == 0 { return exact }
    if exponent < 0, exponent >= -22 { return exact / exactPowerOfTen(-exponent) }
    if exponent > 0, exponent <= 22 { return exact * exactPowerOfTen(exponent) }
  }
  return exponent == 0 ? Double(mantissa) : scaledDecimal(mantissa, exponent)
}

/// The value of a number of more than 19 digits, `exponent` that of the last one.
@inline(never)
private func longDecimal(_ bytes: Span<UInt8>, _ range: Range<Int>, _ digits: Int, _ exponent: Int) -> Double {
  var mantissa: UInt64 = 0
  var taken = 0
  var left = digits
  var i = range.lowerBound
  while left > 0, taken < 19 {
    let digit = UInt64(bytes[i] &- UInt8(ascii: "0"))
    i += 1
    guard digit <= 9 else { continue }  // the point
    mantissa = mantissa * 10 + digit
    left -= 1
    if mantissa != 0 { taken += 1 }  // leading zeros do not count
  }
  let low = decimal(mantissa, exponent + left)
  // The number is at least `mantissa`, and less than `mantissa` + 1.
  guard left > 0, low != decimal(mantissa + 1, exponent + left) else { return low }
  return slowValue(bytes, range)
}

/// 10^`n` for n in 0…22, all of which a Double holds exactly. A switch over constants becomes one load.
@inline(__always)
func exactPowerOfTen(_ n: Int) -> Double {
  switch n {
  case 0: 1e0
  case 1: 1e1
  case 2: 1e2
  case 3: 1e3
  case 4: 1e4
  case 5: 1e5
  case 6: 1e6
  case 7: 1e7
  case 8: 1e8
  case 9: 1e9
  case 10: 1e10
  case 11: 1e11
  case 12: 1e12
  case 13: 1e13
  case 14: 1e14
  case 15: 1e15
  case 16: 1e16
  case 17: 1e17
  case 18: 1e18
  case 19: 1e19
  case 20: 1e20
  case 21: 1e21
  case 22: 1e22
  default: preconditionFailure("a Double does not hold 10^\(n)")
  }
}

@inline(never)
private func slowValue(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Double {
  let text = unsafe bytes.extracting(range).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  // The grammar has been checked, so nil could only mean "too large".
  return Double(text) ?? .infinity
}
