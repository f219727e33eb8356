// SHA-1 (RFC 3174, FIPS 180-4), for the opening handshake and nothing else: RFC 6455 §4.2.2 wants it as a sign that a
// WebSocket server answered, and it protects nothing. It is here so that a client on a phone needs no OpenSSL.

enum SHA1 {
  static let digestBytes = 20

  /// The digest of `message`, which has up to 119 bytes: two blocks with their padding. About 0.5 µs.
  static func digest(_ message: Span<UInt8>) -> InlineArray<20, UInt8> {
    precondition(message.count <= 119, "the handshake's text has 60 bytes")
    var state: InlineArray<5, UInt32> = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
    let blocks = message.count > 55 ? 2 : 1
    for block in 0..<blocks {
      var words = InlineArray<80, UInt32>(repeating: 0)
      for index in 0..<64 {
        let byte = padded(message, 64 * block + index, total: 64 * blocks)
        words[index / 4] |= UInt32(byte) << UInt32(24 - 8 * (index % 4))
      }
      mix(&words, into: &state)
    }
    var digest = InlineArray<20, UInt8>(repeating: 0)
    for index in 0..<20 { digest[index] = UInt8(truncatingIfNeeded: state[index / 4] >> UInt32(24 - 8 * (index % 4))) }
    return digest
  }

  /// A byte of the padded message (RFC 3174 §4): the message, one bit, zeros, and the length in bits.
  private static func padded(_ message: Span<UInt8>, _ index: Int, total: Int) -> UInt8 {
    if index < message.count { return message[index] }
    if index == message.count { return 0x80 }
    let behind = total - 1 - index
    return behind < 8 ? UInt8(truncatingIfNeeded: (message.count * 8) >> (8 * behind)) : 0
  }

  /// One block (RFC 3174 §6.1).
  private static func mix(_ words: inout InlineArray<80, UInt32>, into state: inout InlineArray<5, UInt32>) {
    for t in 16..<80 { words[t] = rotate(words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16], 1) }
    var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
    for t in 0..<80 {
      let (f, k): (UInt32, UInt32) =
        switch t {
        case 0..<20: (b & c | ~b & d, 0x5A82_7999)
        case 20..<40: (b ^ c ^ d, 0x6ED9_EBA1)
        case 40..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
        case _: (b ^ c ^ d, 0xCA62_C1D6)
        }
      (a, b, c, d, e) = (rotate(a, 5) &+ f &+ e &+ words[t] &+ k, a, rotate(b, 30), c, d)
    }
    state[0] &+= a
    state[1] &+= b
    state[2] &+= c
    state[3] &+= d
    state[4] &+= e
  }

  private static func rotate(_ value: UInt32, _ bits: UInt32) -> UInt32 { value << bits | value >> (32 - bits) }
}
