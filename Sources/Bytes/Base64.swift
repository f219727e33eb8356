// Base64, strictly (RFC 4648): one text for each sequence of bytes and no other, so that a token which was changed in
// any bit is another token, or none.

/// Base64 in one of its two alphabets.
public struct Base64: Sendable {
  /// base64url without padding (RFC 4648 §5, RFC 7515 §2).
  public static let url = Base64(last: (UInt8(ascii: "-"), UInt8(ascii: "_")), isPadded: false)
  /// With padding (RFC 4648 §4).
  public static let padded = Base64(last: (UInt8(ascii: "+"), UInt8(ascii: "/")), isPadded: true)
  /// With the alphabet of RFC 4648 §4, for readers that take it without padding.
  public static let unpadded = Base64(last: padded.last, isPadded: false)

  /// The characters of 62 and 63.
  private let last: (UInt8, UInt8)
  private let isPadded: Bool

  /// The decoded bytes; nil where the text has a character outside the alphabet, another padding than there must be, a
  /// length that no encoding has, or bits behind its last byte that are not zero (§3.5). O(length).
  public func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var (count, digits, padding) = (0, 0, 0)
    for character in text {
      if isPadded, character == UInt8(ascii: "=") {
        padding += 1
        continue
      }
      guard padding == 0, let value = value(of: character) else { return nil }
      digits += 1
      bits = bits << 6 | value
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        bits &= (1 << UInt32(count)) - 1
      }
    }
    guard digits % 4 != 1, !isPadded || padding == (4 - digits % 4) % 4 else { return nil }
    return bits == 0 ? bytes : nil
  }

  /// The text of some bytes.
  public func encode(_ bytes: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var bits: UInt32 = 0
    var count = 0
    for byte in bytes {
      bits = bits << 8 | UInt32(byte)
      count += 8
      while count >= 6 {
        count -= 6
        text.append(character(of: bits >> UInt32(count) & 0x3F))
      }
      bits &= (1 << UInt32(count)) - 1
    }
    if count > 0 { text.append(character(of: bits << UInt32(6 - count) & 0x3F)) }
    while isPadded, text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
    return text
  }

  /// Whether a character is of the alphabet, in which there is no padding.
  public func isDigit(_ character: UInt8) -> Bool { value(of: character) != nil }

  private func value(of character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case last.0: 62
    case last.1: 63
    default: nil
    }
  }

  private func character(of value: UInt32) -> UInt8 {
    let value = UInt8(truncatingIfNeeded: value)
    switch value {
    case 0..<26: return UInt8(ascii: "A") + value
    case 26..<52: return UInt8(ascii: "a") + value - 26
    case 52..<62: return UInt8(ascii: "0") + value - 52
    case 62: return last.0
    default: return last.1
    }
  }
}
