import HubTestSupport
import HubWebSocket
import Testing

@Suite struct UTF8ValidatorTests {
  private func isValid(_ bytes: [UInt8], cut: Int? = nil) -> Bool {
    var validator = UTF8Validator()
    return bytes.withUnsafeBytes { raw in
      let cut = cut ?? raw.count
      return validator.consume(UnsafeRawBufferPointer(rebasing: raw[..<cut]))
        && validator.consume(UnsafeRawBufferPointer(rebasing: raw[cut...])) && validator.isComplete
    }
  }

  @Test("The first and last of every length, and what is beside them, are judged as String does") func boundaries() {
    let boundaries: [UInt32] = [
      0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000, 0xD7FF, 0xE000, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000,
      0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFF,
    ]
    for value in boundaries {
      let bytes = Array(String(Unicode.Scalar(value) ?? "?").utf8)
      for cut in 0...bytes.count { #expect(isValid(bytes, cut: cut), "\(value)") }
      for length in 1..<max(bytes.count, 1) { #expect(!isValid(Array(bytes[..<length]))) }
    }
  }

  @Test(
    "What is not UTF-8 is refused",
    arguments: [
      [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xC2, 0xC0], [0xE0, 0x80, 0x80],
      [0xE0, 0x9F, 0xBF], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xEF, 0xBF], [0xF0, 0x80, 0x80, 0x80],
      [0xF0, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80],
      [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80], [0xFE], [0xFF], [0xF0, 0x90, 0x80], [0xE2, 0x82, 0x41],
    ] as [[UInt8]])
  func invalid(bytes: [UInt8]) {
    for prefix in [[], Array("text text".utf8), Array("€".utf8)] {
      for cut in 0...(prefix.count + bytes.count) { #expect(!isValid(prefix + bytes, cut: cut)) }
    }
  }

  @Test("All first and second bytes, and chosen ones behind them, are judged as String does") func exhaustive() {
    let chosen: [UInt8] = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xF5]
    for first in UInt8.min...UInt8.max {
      for second in UInt8.min...UInt8.max { agree([first, second, 0x80, 0x80]) }
      for second in chosen where first >= 0xC0 {
        for third in chosen {
          agree([first, second, third])
          agree([first, second, third, 0x80])
        }
      }
    }
  }

  @Test("Random bytes and broken texts are judged as String does, whatever the cut") func random() {
    var random = SplitMix64(seed: 8)
    let pieces: [[UInt8]] = ["a", "hello, world", "é", "€", "𝄞", "\u{FFFF}"].map { Array($0.utf8) }
    for round in 0..<20_000 {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0..<8, using: &random) { bytes += pieces.randomElement(using: &random) ?? [] }
      if round % 3 != 0, !bytes.isEmpty {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      if round % 7 == 0, !bytes.isEmpty { bytes.remove(at: Int.random(in: 0..<bytes.count, using: &random)) }
      let cut = Int.random(in: 0...bytes.count, using: &random)
      let expected = String(validating: bytes, as: UTF8.self) != nil
      if isValid(bytes, cut: cut) != expected { Issue.record("\(bytes) cut at \(cut)") }
    }
  }

  private func agree(_ bytes: [UInt8]) {
    if isValid(bytes) != (String(validating: bytes, as: UTF8.self) != nil) { Issue.record("\(bytes)") }
  }
}
