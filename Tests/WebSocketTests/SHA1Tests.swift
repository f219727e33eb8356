import Testing

@testable import HubWebSocket

@Suite struct SHA1Tests {
  private func digest(_ text: String) -> String {
    let bytes = Array(text.utf8)
    let words = SHA1.digest(of: bytes.span)
    return (0..<5).map { index in
      let hexadecimal = String(words[index], radix: 16)
      return String(repeating: "0", count: 8 - hexadecimal.count) + hexadecimal
    }.joined()
  }

  @Test("The examples of RFC 3174 §7.3") func examples() {
    let examples = [
      ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
      ),
      (String(repeating: "a", count: 1_000_000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
      (
        String(repeating: "0123456701234567012345670123456701234567012345670123456701234567", count: 10),
        "dea356a2cddd90c7a7ecedc5ebb563934f460452"
      ),
    ]
    for (text, expected) in examples { #expect(digest(text) == expected) }
  }

  @Test("Where the padding begins and ends blocks (sha1sum)") func padding() {
    let examples = [
      (String(repeating: "a", count: 0), "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
      (String(repeating: "a", count: 55), "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
      (String(repeating: "a", count: 56), "c2db330f6083854c99d4b5bfb6e8f29f201be699"),
      (String(repeating: "a", count: 63), "03f09f5b158a7a8cdad920bddc29b81c18a551f5"),
      (String(repeating: "a", count: 64), "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
      (String(repeating: "a", count: 65), "11655326c708d70319be2610e8a57d9a5b959d3b"),
    ]
    for (text, expected) in examples { #expect(digest(text) == expected) }
  }
}
