// The names under which riders see drivers that are not theirs: the same for all riders, so that one encoding serves all,
// and another one every hour and after each trip, so that nobody can be followed for a day.
//
// A name is a keyed hash (SipHash-2-4: Aumasson, Bernstein, SipHash: a fast short-input PRF, INDOCRYPT 2012) of the driver's
// id, the hour and the end of its last trip: without the key nobody can tell whose it is, or that two are one driver's.
import Bytes
import Messages

/// 128 bits that only the hub knows.
public struct PseudonymKey: Sendable, Equatable {
  let first: UInt64
  let second: UInt64

  public init(_ first: UInt64, _ second: UInt64) {
    self.first = first
    self.second = second
  }
}

struct Pseudonyms {
  private static let hourMilliseconds: Int64 = 3_600_000
  private let key: PseudonymKey

  init(_ key: PseudonymKey) { self.key = key }

  /// The driver's number at a time (milliseconds since 1970). Hours begin at an offset of its own for each driver, so
  /// that not all change at once and old names cannot be told apart from new ones by their time.
  func number(of driver: Identifier, lastTripEnded: Int64, at milliseconds: Int64) -> UInt64 {
    let offset = Int64(hash(driver.text, 0, 0) % UInt64(Self.hourMilliseconds))
    let (hour, rest) = (milliseconds &+ offset).quotientAndRemainder(dividingBy: Self.hourMilliseconds)
    let number = rest < 0 ? hour - 1 : hour
    return hash(driver.text, UInt64(bitPattern: number), UInt64(bitPattern: lastTripEnded) | 1 << 63)
  }

  /// A number as riders read it: 16 hexadecimal digits.
  static func identifier(_ number: UInt64) -> Identifier {
    let text = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16) { digits in
      for place in 0..<16 {
        let digit = UInt8(truncatingIfNeeded: number >> UInt64(60 - 4 * place)) & 15
        digits[place] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
      }
      return Identifier(UnsafeRawBufferPointer(digits))
    }
    guard let text else { preconditionFailure("hexadecimal digits are an id") }
    return text
  }

  /// SipHash-2-4 of the text's eight words and its length, and two numbers: 11 words of 8 bytes.
  private func hash(_ text: InlineText, _ hour: UInt64, _ trip: UInt64) -> UInt64 {
    var state = SipState(key)
    for index in 0..<8 { state.absorb(text.word(index)) }
    state.absorb(UInt64(text.count))
    state.absorb(hour)
    state.absorb(trip)
    return state.finished(byteCount: 88)
  }
}

/// SipHash-2-4 of whole words.
struct SipState {
  private var v0, v1, v2, v3: UInt64

  init(_ key: PseudonymKey) {
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

  mutating func absorb(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  /// The hash of what was absorbed, `byteCount` bytes of it, a multiple of 8.
  mutating func finished(byteCount: Int) -> UInt64 {
    absorb(UInt64(byteCount & 0xFF) << 56)
    v2 ^= 0xFF
    for _ in 0..<4 { round() }
    return v0 ^ v1 ^ v2 ^ v3
  }
}
