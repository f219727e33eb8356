// gzip in one piece and in many, read back by zlib.
import HubBytes
import HubTestSupport
import Testing

@testable import HubWebSocket

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
    var places = [0, 0, 0]
    while places != texts.map(\.count) {
      for number in texts.indices where places[number] < texts[number].count {
        let end = min(places[number] + 777 * (number + 1), texts[number].count)
        var output = ByteBuffer()
        texts[number][places[number]..<end].withUnsafeBytes {
          gzip.compress($0, of: &progress[number], isLast: end == texts[number].count, into: &output)
        }
        files[number] += output.array()
        places[number] = end
      }
    }
    #expect(zip(texts, files).allSatisfy { gunzip($1) == $0 })
  }
}
