// Writing numbers: against description, and read back to the same bits.
import HubBytes
import HubTestSupport
import Testing

private func printed(_ write: (inout ByteBuffer) -> Void) -> String {
  var buffer = ByteBuffer()
  write(&buffer)
  return buffer.withBytes { String(decoding: $0, as: UTF8.self) }
}

@Suite struct DecimalPrinting {
  @Test("whole numbers are printed as description prints them")
  func integers() {
    var random = SplitMix64(seed: 2)
    var values: [UInt64] = [0, .max, 9, 10, 99, 100]
    var power: UInt64 = 1
    for _ in 0..<19 {
      power *= 10
      values += [power - 1, power, power + 1]
    }
    for _ in 0..<10_000 { values.append(random.next() >> UInt64.random(in: 0..<64, using: &random)) }
    var wrong = 0
    for value in values {
      let signed = Int64(bitPattern: value)
      if printed({ $0.append(integer: value) }) != "\(value)" { wrong += 1 }
      if printed({ $0.append(integer: signed) }) != "\(signed)" { wrong += 1 }
    }
    #expect(wrong == 0)
  }

  @Test("what is printed and read again has the same bits")
  func exactness() {
    var random = SplitMix64(seed: 3)
    var wrong = 0
    for round in 0..<200_000 {
      var value = Double(bitPattern: random.next())
      if round % 2 == 0 { value = Double.random(in: -180...180, using: &random) }
      if round % 4 == 0 { value = (value * 1e7).rounded() / 1e7 }
      if !value.isFinite { continue }
      let six = printed { $0.append(double: value) }
      let seven = printed { $0.append(fixed: value, decimals: 7) }
      if parse(six)?.bitPattern != value.bitPattern || parse(seven)?.bitPattern != value.bitPattern { wrong += 1 }
    }
    #expect(wrong == 0)
  }

  @Test("rounded values are printed with no more digits than they need")
  func shortness() {
    #expect(printed { $0.append(double: 0) } == "0")
    #expect(printed { $0.append(double: -0.0) } == "-0")
    #expect(printed { $0.append(double: 12) } == "12")
    #expect(printed { $0.append(double: -12.5) } == "-12.5")
    #expect(printed { $0.append(double: 0.05) } == "0.05")
    #expect(printed { $0.append(double: 1e-6) } == "0.000001")
    #expect(printed { $0.append(fixed: 52.5200066, decimals: 7) } == "52.5200066")
    #expect(printed { $0.append(fixed: -122.4194155, decimals: 7) } == "-122.4194155")
    #expect(printed { $0.append(fixed: 0.1 + 0.2, decimals: 7) } == "0.30000000000000004")
    #expect(printed { $0.append(double: 1e300) } == "1e+300")
    #expect(printed { $0.append(padded: 7, width: 3) } == "007")
    #expect(printed { $0.append(scaled: 1_234_500, decimals: 3) } == "1234.5")
  }

  @Test("what was rounded to hundredths is printed as everything else is, and so is what was not")
  func hundredths() {
    var random = SplitMix64(seed: 11)
    var values: [Double] = [0, -0.0, 0.1, 0.05, -1.25, 9_999.99, 10_000, 10_000.01, 0.001, 359.99, 1e17, .ulpOfOne]
    for hundredth in 0..<20_000 { values.append(Double(hundredth) / 100) }
    for _ in 0..<20_000 { values.append(Double.random(in: -2...11_000, using: &random)) }
    for value in values {
      var plain = ByteBuffer()
      plain.withRoom(for: 32) { $0.append(hundredths: value) }
      let text = plain.withBytes { String(decoding: $0, as: UTF8.self) }
      if text != printed({ $0.append(double: value) }) { Issue.record("\(value) is printed as \(text)") }
    }
  }

  @Test("what was rounded to thousandths is printed as everything else is, and so is what was not")
  func thousandths() {
    var random = SplitMix64(seed: 13)
    var values: [Double] = [
      0, -0.0, 0.1, 0.05, 0.001, -1.25, 0.0005, 1e12, 999_999_999_999.999, 1e12 + 0.5, 1e17, .ulpOfOne,
    ]
    for thousandth in 0..<20_000 { values.append(Double(thousandth) / 1000) }
    for _ in 0..<20_000 {
      let value = Double.random(in: -2...1e9, using: &random)
      values += [value, (value * 1000).rounded() / 1000]
    }
    for value in values {
      var plain = ByteBuffer()
      plain.withRoom(for: 32) { $0.append(thousandths: value) }
      let text = plain.withBytes { String(decoding: $0, as: UTF8.self) }
      if text != printed({ $0.append(double: value) }) { Issue.record("\(value) is printed as \(text)") }
    }
  }

  @Test("degrees that were rounded to 1e-7 are printed as everything else is, and so are those that were not")
  func degrees() {
    var random = SplitMix64(seed: 12)
    var values: [Double] = [
      0, -0.0, 1e-7, -1e-7, 0.1, -0.05, 9.9999999, 10, -100.0000001, 180, -179.9999999, 999.5, 1e4, 1e17,
    ]
    for _ in 0..<50_000 {
      let value = Double.random(in: -180...180, using: &random)
      values += [value, (value * 1e7).rounded() / 1e7, (value * 100).rounded() / 100]
    }
    for value in values {
      var plain = ByteBuffer()
      plain.withRoom(for: 32) { $0.append(degrees: value) }
      let text = plain.withBytes { String(decoding: $0, as: UTF8.self) }
      if text != printed({ $0.append(fixed: value, decimals: 7) }) { Issue.record("\(value) is printed as \(text)") }
    }
  }

  @Test("a scaled integer is printed as its digits with a point, without zeros at the end, for every scale")
  func scaled() {
    var random = SplitMix64(seed: 4)
    for round in 0..<40_000 {
      let decimals = round % 10
      var value = random.next() >> UInt64.random(in: 0..<64, using: &random)
      if round % 3 == 0 { value = value / 1000 &* 1000 }
      var digits = "\(value)"
      while digits.count <= decimals { digits = "0" + digits }
      var expected = String(digits.dropLast(decimals))
      let fraction = String(digits.suffix(decimals).reversed().drop { $0 == "0" }.reversed())
      if !fraction.isEmpty { expected += "." + fraction }
      let got = printed { $0.append(scaled: value, decimals: decimals) }
      if got != expected { Issue.record("\(value) at \(decimals): \(got)") }
      let width = "\(value)".count
      let padded = printed { $0.append(padded: value, width: min(width + decimals, 20)) }
      #expect(padded == String(repeating: "0", count: min(decimals, 20 - width)) + "\(value)")
    }
  }

  @Test("values next to what six, seven or nine decimals can say read back with the same bits")
  func neighbours() {
    var random = SplitMix64(seed: 6)
    var wrong = 0
    for round in 0..<100_000 {
      let decimals = [0, 2, 6, 7, 9][round % 5]
      var scale = 1.0
      for _ in 0..<decimals { scale *= 10 }
      let exact = (Double.random(in: -1e6...1e6, using: &random) * scale).rounded() / scale
      for value in [exact, exact.nextUp, exact.nextDown] {
        if parse(printed { $0.append(fixed: value, decimals: decimals) })?.bitPattern != value.bitPattern { wrong += 1 }
      }
    }
    for value in [0x1p52, 0x1p52 - 0.5, 0x1p53, 0x1p52 / 1e6, 4_503_599_627.370_495, 4_503_599_627.370_496] {
      if parse(printed { $0.append(double: value) }) != value { wrong += 1 }
    }
    #expect(wrong == 0)
  }
}
