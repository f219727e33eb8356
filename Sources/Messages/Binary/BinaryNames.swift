// Ids in few bytes: numeric message ids, and pseudonyms.
import HubBytes

extension MessageID {
  /// The digits of a number, without leading zeros.
  public init(number: UInt64) { self.init(prefix: nil, number: number) }

  /// A letter and the digits of a number, as in the hub's own messages (`p88123`, `r7`). No allocation.
  init(prefix: UInt8?, number: UInt64) {
    let made = unsafe withUnsafeTemporaryAllocation(byteCount: 24, alignment: 8) { bytes -> MessageID? in
      var index = 24
      var rest = number
      repeat {
        index -= 1
        unsafe bytes[index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      if let prefix {
        index -= 1
        unsafe bytes[index] = prefix
      }
      return unsafe MessageID(UnsafeRawBufferPointer(rebasing: bytes[index...]))
    }
    guard let made else { preconditionFailure("1–21 bytes are an id") }
    self = made
  }

  /// The number that the id spells, if it is up to 18 digits without leading zeros, so that twice as much fits 64 bits.
  public var number: UInt64? {
    unsafe text.withBytes { bytes in
      guard bytes.count <= 18, unsafe bytes[0] != UInt8(ascii: "0") || bytes.count == 1 else { return nil }
      var number: UInt64 = 0
      for index in bytes.indices {
        let byte = unsafe bytes[index]
        let digit = byte &- UInt8(ascii: "0")
        guard digit <= 9 else { return nil }
        number = number &* 10 &+ UInt64(digit)
      }
      return number
    }
  }
}

extension Identifier {
  /// The id of a pseudonym: `p` and 13 characters of the geohash alphabet, the first one's highest bit 0.
  init(pseudonym: UInt64) {
    let made = unsafe withUnsafeTemporaryAllocation(byteCount: 14, alignment: 8) { bytes -> InlineText? in
      unsafe bytes[0] = UInt8(ascii: "p")
      for index in 0..<13 {
        let five = UInt8(truncatingIfNeeded: pseudonym &>> UInt64(60 - 5 * index)) & 31
        unsafe bytes[1 + index] = Identifier.character(five)
      }
      return unsafe InlineText(UnsafeRawBufferPointer(bytes))
    }
    guard let made else { preconditionFailure("14 bytes fit") }
    self.init(checked: made)
  }

  /// The number of a pseudonym; nil for any other id. Called for each driver of an area.
  var pseudonym: UInt64? {
    let first = text.word(0)
    guard text.count == 14, first & 0xFF == UInt64(UInt8(ascii: "p")) else { return nil }
    var number: UInt64 = 0
    var all: UInt8 = 0x40
    for index in 1..<14 {
      let word = index < 8 ? first : text.word(1)
      let character = Int(truncatingIfNeeded: word &>> UInt64(8 * (index & 7)) & 0xFF) - 0x30
      guard character >= 0, character < Identifier.fives.utf8CodeUnitCount else { return nil }
      let five = unsafe Identifier.fives.utf8Start[character]
      all &= five
      number = number &<< 5 | UInt64(five & 31)
    }
    // 13 characters have 65 bits: the highest must be 0, or two ids would have the same number.
    guard all & 0x40 != 0, unsafe Identifier.fives.utf8Start[Int(first &>> 8 & 0xFF) - 0x30] & 0x10 == 0 else {
      return nil
    }
    return number
  }

  // The geohash alphabet: the digits, then the letters without a, i, l and o.

  @inline(__always)
  private static func character(_ five: UInt8) -> UInt8 {
    if five < 10 { return UInt8(ascii: "0") + five }
    let letter = UInt8(ascii: "b") + five - 10
    return letter + (five >= 17 ? 1 : 0) + (five >= 19 ? 1 : 0) + (five >= 21 ? 1 : 0)
  }

  /// For each character from `0` on, 0x40 and its value, or a space where the alphabet does not have it.
  private static let fives: StaticString =
    "@ABCDEFGHI                                        JKLMNOP QR ST UVWXYZ[\\]^_"
}
