// Ids in few bytes: a message's id that is a number, and a pseudonym.
import Bytes

extension MessageID {
  /// The digits of a number, without leading zeros.
  public init(number: UInt64) { self.init(prefix: nil, number: number) }

  /// A letter and the digits of a number: how the hub names its own messages (`p88123`, `r7`). No allocation.
  init(prefix: UInt8?, number: UInt64) {
    let made = withUnsafeTemporaryAllocation(byteCount: 24, alignment: 8) { bytes -> MessageID? in
      var place = 24
      var rest = number
      repeat {
        place -= 1
        bytes[place] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      if let prefix {
        place -= 1
        bytes[place] = prefix
      }
      return MessageID(UnsafeRawBufferPointer(rebasing: bytes[place...]))
    }
    guard let made else { preconditionFailure("1–21 bytes are an id") }
    self = made
  }

  /// The number whose digits this is, where it is one without leading zeros and below 2^63.
  public var number: UInt64? {
    text.withBytes { bytes in
      guard bytes.count <= 18, bytes[0] != UInt8(ascii: "0") || bytes.count == 1 else { return nil }
      var number: UInt64 = 0
      for byte in bytes {
        let digit = byte &- UInt8(ascii: "0")
        guard digit <= 9 else { return nil }
        number = number &* 10 &+ UInt64(digit)
      }
      return number
    }
  }
}

extension Identifier {
  /// The id of a driver as riders see it: `p` and 13 characters of the geohash alphabet, the first one's highest bit 0.
  init(pseudonym: UInt64) {
    let made = withUnsafeTemporaryAllocation(byteCount: 14, alignment: 8) { bytes -> InlineText? in
      bytes[0] = UInt8(ascii: "p")
      for place in 0..<13 {
        let five = UInt8(truncatingIfNeeded: pseudonym &>> UInt64(60 - 5 * place)) & 31
        bytes[1 + place] = Identifier.character(five)
      }
      return InlineText(UnsafeRawBufferPointer(bytes))
    }
    guard let made else { preconditionFailure("14 bytes fit") }
    self.init(checked: made)
  }

  /// The number that this id is the pseudonym of; nil for any other id.
  var pseudonym: UInt64? {
    guard text.count == 14 else { return nil }
    return text.withBytes { bytes in
      guard bytes[0] == UInt8(ascii: "p"), let first = Identifier.five(bytes[1]), first < 16 else { return nil }
      var number = UInt64(first)
      for place in 2..<14 {
        guard let five = Identifier.five(bytes[place]) else { return nil }
        number = number &<< 5 | UInt64(five)
      }
      return number
    }
  }

  // The geohash alphabet: the digits, then the letters without a, i, l and o.

  @inline(__always)
  private static func character(_ five: UInt8) -> UInt8 {
    if five < 10 { return UInt8(ascii: "0") + five }
    let letter = UInt8(ascii: "b") + five - 10
    return letter + (five >= 17 ? 1 : 0) + (five >= 19 ? 1 : 0) + (five >= 21 ? 1 : 0)
  }

  @inline(__always)
  private static func five(_ character: UInt8) -> UInt8? {
    let digit = character &- UInt8(ascii: "0")
    if digit <= 9 { return digit }
    switch character {
    case UInt8(ascii: "b")...UInt8(ascii: "h"): return character - UInt8(ascii: "b") + 10
    case UInt8(ascii: "j"), UInt8(ascii: "k"): return character - UInt8(ascii: "j") + 17
    case UInt8(ascii: "m"), UInt8(ascii: "n"): return character - UInt8(ascii: "m") + 19
    case UInt8(ascii: "p")...UInt8(ascii: "z"): return character - UInt8(ascii: "p") + 21
    default: return nil
    }
  }
}
