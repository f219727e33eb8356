// SipHash-2-4: a keyed hash that cannot be computed or inverted without the key.
//
// J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012; the tests have its vectors. It is
// used instead of HMAC-SHA256 because HubCore links no library, its input is a few words, and 64 bits suffice for a
// pseudonym: with a million drivers two share one within an hour once in 37 million hours.
import HubBytes
public import HubMessages

/// A secret of 128 bits.
public struct SipKey: Sendable, Equatable {
  let first: UInt64
  let second: UInt64

  /// From two words; in terms of 16 bytes, each eight of them little-endian.
  public init(_ first: UInt64, _ second: UInt64) {
    self.first = first
    self.second = second
  }

  /// From 32 hexadecimal digits, the first byte first; nil for anything else.
  public init?(hexadecimal text: String) {
    guard text.utf8.count == 32, text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
      let first = UInt64(text.prefix(16), radix: 16), let second = UInt64(text.suffix(16), radix: 16)
    else { return nil }
    self.init(first.byteSwapped, second.byteSwapped)
  }
}

extension Identifier {
  /// A hash of the id in a role, the same in every process that has the key.
  public func hash(as role: Role, by key: SipKey) -> UInt64 {
    var hash = SipHash(key)
    for index in 0..<(text.count + 7) / 8 { hash.combine(text.word(index)) }
    return hash.finished(rest: UInt64(role.rawValue), count: 1)
  }
}

/// The hash of words, eight bytes at a time.
struct SipHash {
  private var v0: UInt64
  private var v1: UInt64
  private var v2: UInt64
  private var v3: UInt64
  private var bytes: UInt64 = 0

  init(_ key: SipKey) {
    v0 = key.first ^ 0x736f_6d65_7073_6575
    v1 = key.second ^ 0x646f_7261_6e64_6f6d
    v2 = key.first ^ 0x6c79_6765_6e65_7261
    v3 = key.second ^ 0x7465_6462_7974_6573
  }

  private mutating func round() {
    v0 &+= v1
    v1 = (v1 << 13 | v1 >> 51) ^ v0
    v0 = v0 << 32 | v0 >> 32
    v2 &+= v3
    v3 = (v3 << 16 | v3 >> 48) ^ v2
    v0 &+= v3
    v3 = (v3 << 21 | v3 >> 43) ^ v0
    v2 &+= v1
    v1 = (v1 << 17 | v1 >> 47) ^ v2
    v2 = v2 << 32 | v2 >> 32
  }

  private mutating func compress(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  /// Takes eight more bytes, as a little-endian word.
  mutating func combine(_ word: UInt64) {
    bytes &+= 8
    compress(word)
  }

  /// The hash of all words so far and up to seven bytes behind them, the first lowest in `rest`.
  func finished(rest: UInt64 = 0, count: UInt64 = 0) -> UInt64 {
    var state = self
    state.compress((bytes &+ count) << 56 | rest)
    state.v2 ^= 0xFF
    for _ in 0..<4 { state.round() }
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3
  }
}
