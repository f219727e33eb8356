// The text of a geohash cell: 1–12 of the 32 characters 0–9 and b–z without a, i, l, o.
//
// Upper case is refused: cells name channels, and a cell has one name. No String is needed on a hot way: an encoder
// takes the characters one by one.

extension GeohashCell {
  /// The value of a character, 0…31; nil for one that is not in the alphabet.
  @inlinable static func value(of character: UInt8) -> UInt64? {
    switch character {
    case 0x30...0x39: UInt64(character - 0x30)  // 0–9
    case 0x62...0x68: UInt64(character - 0x62 + 10)  // b–h
    case 0x6A...0x6B: UInt64(character - 0x6A + 17)  // j k
    case 0x6D...0x6E: UInt64(character - 0x6D + 19)  // m n
    case 0x70...0x7A: UInt64(character - 0x70 + 21)  // p–z
    default: nil  // the other 224 bytes
    }
  }

  /// The character of a value 0…31.
  @inlinable static func character(of value: UInt8) -> UInt8 {
    switch value {
    case 0..<10: 0x30 + value
    case 10..<17: 0x62 + value - 10
    case 17..<19: 0x6A + value - 17
    case 19..<21: 0x6D + value - 19
    default: 0x70 + (value & 31) - 21
    }
  }

  /// The cell with this text; nil when it is empty, longer than 12 characters or has one outside the alphabet.
  @inlinable public init?(utf8 text: some Sequence<UInt8>) {
    var bits: UInt64 = 0
    var precision = 0
    for character in text {
      guard precision < 12, let value = GeohashCell.value(of: character) else { return nil }
      bits = bits << 5 | value
      precision += 1
    }
    guard precision > 0 else { return nil }
    self.init(uncheckedBits: bits, precision: precision)
  }

  /// The ASCII character at 0 ..< precision of its text; others are a precondition.
  @inlinable public func character(at index: Int) -> UInt8 {
    precondition(index >= 0 && index < precision)
    return GeohashCell.character(of: UInt8(truncatingIfNeeded: bits >> UInt64(5 * (precision - 1 - index))) & 31)
  }
}

extension GeohashCell: CustomStringConvertible {
  /// Its text.
  public var description: String {
    unsafe String(unsafeUninitializedCapacity: precision) { buffer in
      for index in 0..<precision { unsafe buffer[index] = character(at: index) }
      return precision
    }
  }
}
