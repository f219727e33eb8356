// Words of a text against the bytes one by one.
import HubBytes
import HubTestSupport
import Testing

@Suite struct SpanWords {
  @Test("a word is the eight bytes from its start, and zeros behind the end, at every offset of texts of every length")
  func words() {
    var random = SplitMix64(seed: 21)
    for length in 0...40 {
      let bytes = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      for start in 0...length {
        var expected: UInt64 = 0
        for (index, byte) in bytes[start...].prefix(8).enumerated() { expected |= UInt64(byte) << UInt64(8 * index) }
        #expect(bytes.span.word(at: start) == expected)
      }
    }
  }

  @Test("a whole number of 8 to 15 digits is read with its end, and others are left to the scanner")
  func wholeNumbers() {
    func scan(_ text: String) -> (Int, UInt64)? {
      scanWholeNumber(Array((text + ",\"next\":12345678").utf8).span, from: 0)
    }
    var random = SplitMix64(seed: 22)
    for _ in 0..<10_000 {
      let value = random.next() >> UInt64.random(in: 0..<64, using: &random)
      let text = "\(value)"
      let read = scan(text)
      #expect(read?.1 == ((8...15).contains(text.count) ? value : nil))
      #expect(read.map { $0.0 == text.count } ?? true)
    }
    for other in [
      "", "1", "1234567", "01234567", "00000000", "1234567a", "-12345678", "1234567.8", "1234567890123456",
    ] {
      #expect(scan(other) == nil, "\(other)")
    }
    #expect(scanWholeNumber(Array("123456789012345".utf8).span, from: 0) == nil, "there are less than 16 bytes")
  }

  @Test("inline text holds its bytes, and zeros behind them, at every length")
  func inlineText() {
    for length in 0...64 {
      let text = String(repeating: "x", count: length)
      let made = InlineText(text)
      #expect(made?.description == text)
      var room = ByteBuffer()
      room.withRoom(for: 64) { if let made { $0.append(made) } }
      #expect(room.array() == Array(text.utf8))
    }
    #expect(InlineText(String(repeating: "x", count: 65)) == nil)
  }

  @Test("inline text that is put together of words is the text that they were taken of")
  func wordsToInlineText() {
    let bytes = Array("The quick brown fox jumps over the lazy dog, and over 9 others!!".utf8)
    for length in 0...bytes.count {
      let part = Array(bytes[..<length])
      var made = InlineText()
      for start in stride(from: 0, to: length, by: 8) {
        made.append(word: part.span.word(at: start), count: min(8, length - start))
      }
      #expect(made == part.withUnsafeBytes { InlineText($0) })
    }
  }
}
