// Masking by words against masking byte by byte.
import HubTestSupport
import Testing

@testable import HubWebSocket

@Suite struct Masking {
  @Test("every length is masked as RFC 6455 §5.3 says, and known as ASCII but where one byte is none, wherever it is")
  func oracle() {
    var random = SplitMix64(seed: 61)
    for length in 0...130 {
      for other in -1..<length {
        var plain = (0..<length).map { _ in UInt8.random(in: 0..<0x80, using: &random) }
        if other >= 0 { plain[other] |= 0x80 }
        let key = UInt32.random(in: 0...UInt32.max, using: &random)
        // With a byte on either side that is not to be touched.
        var bytes = [0x55] + plain + [0xAA]
        for i in 0..<length { bytes[i + 1] ^= UInt8(truncatingIfNeeded: key >> UInt32(8 * (i % 4))) }
        let isASCII = bytes.withUnsafeMutableBytes {
          applyMask(MaskKey(key), to: UnsafeMutableRawBufferPointer(rebasing: $0[1..<length + 1]))
        }
        #expect(bytes == [0x55] + plain + [0xAA])
        #expect(isASCII == (other < 0))
      }
    }
  }
}
