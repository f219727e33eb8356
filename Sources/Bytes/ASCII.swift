// Classes of ASCII bytes, which names and numbers in texts are made of.

extension UInt8 {
  /// Whether it is one of `0`–`9`.
  @inlinable package var isDigit: Bool { self &- 0x30 < 10 }

  /// Whether it is one of `A`–`Z` and `a`–`z`.
  @inlinable package var isLetter: Bool { (self | 0x20) &- 0x61 < 26 }
}
