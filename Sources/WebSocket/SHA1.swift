// SHA-1 (RFC 3174 §6.1), for the handshake only, where it protects nothing.
//
// Why not OpenSSL's: its one-shot function looks the algorithm up by name and initialises the whole library, which a
// hub without tokens and TLS does not need (loadtest/NOTES.md, "What a session takes").
import HubBytes

/// The digest of one message.
enum SHA1 {
  private typealias State = (a: UInt32, b: UInt32, c: UInt32, d: UInt32, e: UInt32)

  /// The five words of the digest. O(length).
  static func digest(of message: Span<UInt8>) -> InlineArray<5, UInt32> {
    var state: State = (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0)
    var words = InlineArray<80, UInt32>(repeating: 0)
    // The message is followed by one bit, zeros, and its length in bits as the last eight bytes of a block (§4).
    let blocks = (message.count + 9 + 63) / 64
    for block in 0..<blocks {
      for pair in 0..<8 {
        let start = block * 64 + pair * 8
        var bytes = start <= message.count ? message.word(at: start).byteSwapped : 0
        if start <= message.count, message.count < start + 8 {
          bytes |= 0x80 << UInt64(8 * (start + 7 - message.count))
        }
        if block == blocks - 1, pair == 7 { bytes = UInt64(message.count) * 8 }
        words[pair * 2] = UInt32(truncatingIfNeeded: bytes >> 32)
        words[pair * 2 + 1] = UInt32(truncatingIfNeeded: bytes)
      }
      add(&words, to: &state)
    }
    return [state.a, state.b, state.c, state.d, state.e]
  }

  /// Adds the block in the first sixteen words (§6.1, steps a to e; the functions and constants of §5).
  private static func add(_ words: inout InlineArray<80, UInt32>, to state: inout State) {
    for t in 16..<80 { words[t] = rotated(words[t - 3] ^ words[t - 8] ^ words[t - 14] ^ words[t - 16], by: 1) }
    var s = state
    for t in 0..<20 { step(&s, (s.b & s.c) | (~s.b & s.d), 0x5A82_7999, words[t]) }
    for t in 20..<40 { step(&s, s.b ^ s.c ^ s.d, 0x6ED9_EBA1, words[t]) }
    for t in 40..<60 { step(&s, (s.b & s.c) | (s.b & s.d) | (s.c & s.d), 0x8F1B_BCDC, words[t]) }
    for t in 60..<80 { step(&s, s.b ^ s.c ^ s.d, 0xCA62_C1D6, words[t]) }
    state = (state.a &+ s.a, state.b &+ s.b, state.c &+ s.c, state.d &+ s.d, state.e &+ s.e)
  }

  @inline(__always)
  private static func step(_ s: inout State, _ mixed: UInt32, _ constant: UInt32, _ word: UInt32) {
    s = (rotated(s.a, by: 5) &+ mixed &+ s.e &+ word &+ constant, s.a, rotated(s.b, by: 30), s.c, s.d)
  }

  @inline(__always)
  private static func rotated(_ word: UInt32, by bits: UInt32) -> UInt32 { word &<< bits | word &>> (32 &- bits) }
}
