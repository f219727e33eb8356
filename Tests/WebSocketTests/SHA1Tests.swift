// SHA-1 against the known answers of RFC 3174 §7.3 and FIPS 180-2 appendix A.
import Testing

@testable import HubWebSocket

@Suite struct SHA1Tests {
  @Test(
    "The known answers",
    arguments: [
      ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      ("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
      ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
      (String(repeating: "a", count: 55), "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
      (String(repeating: "a", count: 56), "c2db330f6083854c99d4b5bfb6e8f29f201be699"),
      (String(repeating: "a", count: 64), "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
    ])
  func vectors(text: String, expected: String) {
    let bytes = Array(text.utf8)
    let digest = SHA1.digest(bytes.span)
    let shown = digest.indices.map { index in
      let byte = String(digest[index], radix: 16)
      return byte.count == 1 ? "0" + byte : byte
    }
    #expect(shown.joined() == expected)
  }
}
