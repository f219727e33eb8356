// Reading numbers, against Swift's own Double(String) as the oracle.
import HubBytes
import HubTestSupport
import Testing

func parse(_ text: String) -> Double? {
  Array(text.utf8).withUnsafeBytes { parseDouble($0) }
}

@Suite struct DecimalParsing {
  @Test(
    "text that is no number by RFC 8259 §6 is refused",
    arguments: [
      "", "-", "+1", "01", "-01", "00", ".5", "1.", "1.e5", "1e", "1e+", "1E-", "1e1.5", "0x10", "NaN", "nan", "inf",
      "Infinity", "-Infinity", " 1", "1 ", "1_000", "1,5", "--1", "1-", "١", "1e5 ", "1\0",
    ])
  func refusesOtherThanJSON(_ text: String) {
    #expect(parse(text) == nil)
  }

  @Test(
    "a number too large for a Double is refused",
    arguments: ["1e999", "-1e999", "1e309", "1.8e308", "1e99999999999999"])
  func refusesOverflow(_ text: String) {
    #expect(parse(text) == nil)
  }

  @Test(
    "hard cases are rounded as Double(String) rounds them",
    arguments: [
      "0", "-0", "0.0", "-0.0e5", "0e999", "1", "-1", "123456789012345678", "9007199254740993", "9007199254740992.5",
      "18446744073709551615", "18446744073709551616", "9999999999999999999", "99999999999999999999", "1e22", "1e23",
      "8.5e22", "1e-22", "1e-23", "1e-27", "1e-28", "37.774929500000012", "122.41941550000000", "0.1", "0.3",
      "2.2250738585072011e-308", "2.2250738585072014e-308", "4.9e-324", "5e-324", "2.4703282292062327e-324", "1e-400",
      "1.7976931348623157e308", "1.7976931348623158e308", "0.500000000000000166533453693773481063544750213623046875",
      "3.518437208883201171875e13", "62.5364939768271845828", "8.10109172351e-10", "1.50000000000000011102230246251565",
      "9007199254740991.4999999999999999999999999999999995", "1E5", "1e+5", "0.000000000000000000000000000001234",
      "7.2057594037927933e16", "0.99999999999999994", "0.999999999999999944488848768742172978818416595458984375",
    ])
  func hardCases(_ text: String) throws {
    let expected = try #require(Double(text))
    let got = try #require(parse(text))
    #expect(got.bitPattern == expected.bitPattern)
  }

  @Test("200,000 random decimals are rounded as Double(String) rounds them")
  func randomDecimals() {
    var random = SplitMix64(seed: 1)
    var wrong = 0
    for round in 0..<200_000 {
      let text = randomDecimal(round, &random)
      if parse(text)?.bitPattern != Double(text)?.bitPattern { wrong += 1 }
    }
    #expect(wrong == 0)
  }

  @Test(
    "Numbers of any exponent, subnormal ones too, and of any number of digits are rounded as Double(String) rounds them"
  )
  func anyExponent() {
    var random = SplitMix64(seed: 2)
    var wrong: [String] = []
    for round in 0..<200_000 {
      let digits = (0..<3).map { _ in "\(random.next())" }.joined()
      let mantissa = digits.prefix(Int.random(in: 1...(round % 3 == 0 ? 45 : 19), using: &random))
      let range = round % 5 == 0 ? -345 ... -300 : round % 5 == 1 ? 285...310 : -345...310
      let text = "1\(round % 2 == 0 ? "." : "")\(mantissa)e\(Int.random(in: range, using: &random))"
      let expected = Double(text).flatMap { $0.isFinite ? $0 : nil }
      if parse(text)?.bitPattern != expected?.bitPattern { wrong.append(text) }
    }
    #expect(wrong.isEmpty, "\(wrong.prefix(5))")
  }

  @Test("Every power of ten, each double next to it, and half-way between these, is read exactly")
  func powersOfTen() {
    for exponent in -330...308 {
      guard let power = Double("1e\(exponent)") else { continue }
      for value in [power, power.nextUp, power.nextDown, -power] where value.isFinite {
        #expect(parse("\(value)")?.bitPattern == value.bitPattern)
      }
      for digits in ["1", "9", "17976931348623157", "18446744073709551615", "9999999999999999999"] {
        let text = digits + "e\(exponent)"
        let expected = Double(text).flatMap { $0.isFinite ? $0 : nil }
        #expect(parse(text)?.bitPattern == expected?.bitPattern, "\(text)")
      }
    }
    for halfway in ["9007199254740993", "9007199254740993.0000", "9007199254740993.00000000000000001"] {
      for exponent in ["", "e0", "e1", "e-1", "e20", "e-20", "e290", "e-300", "e-330"] {
        #expect(parse(halfway + exponent)?.bitPattern == Double(halfway + exponent)?.bitPattern)
      }
    }
  }

  private func randomDecimal(_ round: Int, _ random: inout SplitMix64) -> String {
    switch round % 4 {
    case 0:  // any finite double, shortest form
      let value = Double(bitPattern: random.next())
      return value.isFinite ? "\(value)" : "0"
    case 1:  // a coordinate with up to 20 digits
      let whole = Int.random(in: -180...180, using: &random)
      let digits = "\(random.next() | 1 << 63)"
      return "\(whole)." + digits.prefix(Int.random(in: 1...17, using: &random))
    case 2:  // 19 digits and an exponent near the limits of the exact division
      return "\(random.next() >> 1)e\(Int.random(in: -30...25, using: &random))"
    default:  // halfway between two doubles, or a little beside
      let digits = UInt64.random(in: 1 << 53..<1 << 54, using: &random) | 1
      return "\(digits).\(Int.random(in: 0...2, using: &random))e\(Int.random(in: -5...5, using: &random))"
    }
  }

  @Test("the scanner stops at the first byte behind the number")
  func scannerStops() {
    let text = Array("[-12.5e1,7]".utf8)
    #expect(scanNumber(text.span, from: 1) == ScannedNumber(end: 8, value: -125))
    #expect(scanNumber(text.span, from: 9) == ScannedNumber(end: 10, value: 7))
    #expect(scanNumber(text.span, from: 0) == nil)
    #expect(scanNumber(text.span, from: 11) == nil)
  }

  @Test("whatever stands there and behind it, the number at a text's head is the longest one by the grammar")
  func everyWay() {
    var random = SplitMix64(seed: 2)
    let bytes = Array("0123456789012345678901234567890123456789....--+eE,} ".utf8)
    for round in 0..<100_000 {
      var text: [UInt8] = []
      if round % 2 == 0 {  // a number of the usual form, and then anything
        for length in [Int.random(in: 1...9, using: &random), Int.random(in: 0...17, using: &random)] where length > 0 {
          if !text.isEmpty { text.append(UInt8(ascii: ".")) }
          for _ in 0..<length { text.append(UInt8.random(in: 48...57, using: &random)) }
        }
      }
      for _ in 0..<Int.random(in: 0...20, using: &random) { text.append(bytes.randomElement(using: &random)!) }
      if round % 3 == 0 { text += [UInt8](repeating: 0x2C, count: 16) }
      let expected = longestNumber(text)
      let got = scanNumber(text.span, from: 0)
      if got?.end != expected?.end || got?.value.bitPattern != expected?.value.bitPattern {
        Issue.record("\(String(decoding: text, as: UTF8.self)): \(String(describing: got))")
      }
    }
  }

  /// RFC 8259 §6 letter by letter; what is begun and not ended (`1.`, `1e`) is no number.
  private func longestNumber(_ text: [UInt8]) -> ScannedNumber? {
    var rest = text[...]
    func digits() -> Int {
      let count = rest.prefix { $0 >= 48 && $0 <= 57 }.count
      rest = rest.dropFirst(count)
      return count
    }
    if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
    let startsWithZero = rest.first == UInt8(ascii: "0")
    let whole = digits()
    guard whole > 0, whole == 1 || !startsWithZero else { return nil }
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      guard digits() > 0 else { return nil }
    }
    if let letter = rest.first, letter == UInt8(ascii: "e") || letter == UInt8(ascii: "E") {
      rest = rest.dropFirst()
      if let sign = rest.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { rest = rest.dropFirst() }
      guard digits() > 0 else { return nil }
    }
    let number = text[..<rest.startIndex]
    return Double(String(decoding: number, as: UTF8.self)).map { ScannedNumber(end: number.count, value: $0) }
  }

  @Test("a number of 200,000 digits neither crashes nor loses its value")
  func longNumber() {
    #expect(parse("0." + String(repeating: "3", count: 200_000)) == 1.0 / 3)
  }

  @Test("whole numbers are read over the full range of 64 bits, and nothing else is")
  func integers() {
    func unsigned(_ text: String) -> UInt64? { Array(text.utf8).withUnsafeBytes { parseUnsignedInteger($0) } }
    #expect(unsigned("18446744073709551615") == .max)
    #expect(unsigned("18446744073709551616") == nil)
    #expect(unsigned("0") == 0)
    for text in ["", "-", "01", "-01", "1.0", "1e3", "+1", " 1", "--1"] {
      #expect(unsigned(text) == nil, "\(text)")
    }
  }
}
