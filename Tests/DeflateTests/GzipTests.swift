// gzip in one piece and in many, read back by zlib.
import HubBytes
import HubTestSupport
import Testing

@testable import HubDeflate

@Suite struct GzipTests {
  private static func text(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var random = SplitMix64(seed: seed)
    return (0..<count).map { _ in UInt8.random(in: 0x20..<0x40, using: &random) }
  }

  @Test("a text is what it was once it is read back", arguments: [0, 1, 100, 65_536, 1_000_000])
  func whole(count: Int) {
    let text = Self.text(count)
    for level in [1, 9] {
      let file = Gzip(level: level).compress(text)
      #expect(gunzip(file) == text)
      #expect(file.count < count * 3 / 4 + 64)
    }
  }

  @Test("texts whose pieces take turns are each what they were")
  func pieces() {
    let gzip = Gzip(level: 1)
    let texts = (0..<3).map { Self.text(10_000 * ($0 + 1), seed: UInt64($0)) }
    var files = [[UInt8]](repeating: [], count: 3)
    var progress = [Gzip.Progress](repeating: Gzip.Progress(), count: 3)
    var offsets = [0, 0, 0]
    while offsets != texts.map(\.count) {
      for number in texts.indices where offsets[number] < texts[number].count {
        let end = min(offsets[number] + 777 * (number + 1), texts[number].count)
        var output = ByteBuffer()
        texts[number][offsets[number]..<end].withUnsafeBytes {
          gzip.compress($0, of: &progress[number], isLast: end == texts[number].count, into: &output)
        }
        files[number] += output.array()
        offsets[number] = end
      }
    }
    #expect(zip(texts, files).allSatisfy { gunzip($1) == $0 })
  }
}

@Suite struct GzipReadingTests {
  @Test("what was compressed comes back, and one byte more than may be does not")
  func back() {
    for text in [[], [7], Array(String(repeating: "abc", count: 100_000).utf8)] as [[UInt8]] {
      let file = Gzip(level: 6).compress(text)
      #expect(Gzip.decompress(file, limit: text.count) == text)
      if !text.isEmpty { #expect(Gzip.decompress(file, limit: text.count - 1) == nil) }
    }
  }

  @Test("a file's name, comment and extra part are passed over, the head's checksum is checked (RFC 1952 §2.3)")
  func head() {
    let file = Gzip(level: 6).compress(Array("hello".utf8))
    let head: [UInt8] = [0x1F, 0x8B, 8, 2 | 4 | 8 | 16, 0, 0, 0, 0, 0, 3, 2, 0, 9, 9, 0x61, 0, 0x62, 0]
    #expect(Gzip.decompress(head + [0xF8, 0x61] + file[10...], limit: 100) == Array("hello".utf8))
    #expect(Gzip.decompress(head + [0xF8, 0x62] + file[10...], limit: 100) == nil)
  }

  @Test("a file that is cut off, has a byte changed or something behind it is none")
  func damaged() {
    let text = Array("hello hello hello".utf8)
    let file = Gzip(level: 6).compress(text)
    for count in 0..<file.count { #expect(Gzip.decompress(Array(file.prefix(count)), limit: 1000) == nil) }
    #expect(Gzip.decompress(file + [0], limit: 1000) == nil && Gzip.decompress(file + file, limit: 1000) == nil)
    for index in 10..<file.count {
      var bytes = file
      bytes[index] ^= 0x10
      #expect(Gzip.decompress(bytes, limit: 1000) ?? text == text, "byte \(index)")
    }
  }
}
