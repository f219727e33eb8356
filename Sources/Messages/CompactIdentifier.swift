// An id in 17 bytes instead of 65, for sessions, drivers, trips and channels, of which there are many.
public import HubBytes

/// An identifier that needs more than two words only where it is long and no UUID.
@frozen
public enum CompactIdentifier: Sendable {
  /// Up to 16 bytes in memory order, the unused ones zero. No identifier has a zero byte.
  case short(InlineArray<2, UInt64>)
  /// A UUID as it is usually written, in lower case: its digits, of which the first are the highest of a word.
  case uuid(InlineArray<2, UInt64>)
  /// A longer one in an array of its words, which takes 64 bytes or more.
  case long([UInt64])

  public init(_ identifier: Identifier) {
    let text = identifier.text
    if text.count <= 16 {
      self = .short([text.word(0), text.word(1)])
    } else if let digits = CompactIdentifier.digits(text) {
      self = .uuid(digits)
    } else {
      self = .long((0..<(text.count + 7) / 8).map { text.word($0) })
    }
  }

  /// The identifier. Some 5 ns, for a UUID 20; only a long one retains something.
  @inlinable public var identifier: Identifier {
    @inline(__always) get {
      switch self {
      case .short(let words): Identifier(checked: InlineText(words[0], words[1]))
      case .uuid(let digits): CompactIdentifier.identifier(digits: digits)
      case .long(let words): CompactIdentifier.identifier(words)
      }
    }
  }

  @inline(never) @usableFromInline
  static func identifier(_ words: [UInt64]) -> Identifier {
    var text = InlineText()
    for word in words { text.append(word: word, count: 8 - word.leadingZeroBitCount / 8) }
    return Identifier(checked: text)
  }

  /// Whether they are equal, compared in place.
  @inlinable @inline(__always)
  public func matches(_ identifier: Identifier) -> Bool {
    switch self {
    case .short(let words):
      identifier.text.count <= 16 && identifier.text.word(0) == words[0] && identifier.text.word(1) == words[1]
    case .uuid(let digits): CompactIdentifier.identifier(digits: digits) == identifier
    case .long(let words): CompactIdentifier.identifier(words) == identifier
    }
  }

  /// Whether both are the same identifier.
  @inlinable @inline(__always)
  public func matches(_ other: CompactIdentifier) -> Bool {
    switch (self, other) {
    case (.short(let a), .short(let b)), (.uuid(let a), .uuid(let b)): a[0] == b[0] && a[1] == b[1]
    case (.long(let a), .long(let b)): a == b
    case (.short, _), (.uuid, _), (.long, _): false
    }
  }

  // MARK: UUIDs

  /// Where a UUID has its hyphens (RFC 9562 §4).
  private static func isHyphen(_ position: Int) -> Bool {
    position == 8 || position == 13 || position == 18 || position == 23
  }

  /// The digits of a UUID; nil for another text.
  private static func digits(_ text: InlineText) -> InlineArray<2, UInt64>? {
    guard text.count == 36 else { return nil }
    var digits: InlineArray<2, UInt64> = [0, 0]
    var count = 0
    for position in 0..<36 {
      let byte = UInt8(truncatingIfNeeded: text.word(position / 8) >> UInt64(position % 8 * 8))
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9") where !isHyphen(position):
        digits[count / 16] = digits[count / 16] << 4 | UInt64(byte - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f") where !isHyphen(position):
        digits[count / 16] = digits[count / 16] << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
      case UInt8(ascii: "-") where isHyphen(position): continue
      default: return nil
      }
      count += 1
    }
    return digits
  }

  @inline(never) @usableFromInline
  static func identifier(digits: InlineArray<2, UInt64>) -> Identifier {
    let (a, b) = (characters(digits[0] >> 32), characters(digits[0] & 0xFFFF_FFFF))
    let (c, d) = (characters(digits[1] >> 32), characters(digits[1] & 0xFFFF_FFFF))
    let hyphen = UInt64(UInt8(ascii: "-"))
    var text = InlineText()
    text.append(word: a, count: 8)
    text.append(word: hyphen | (b & 0xFFFF_FFFF) << 8 | hyphen << 40 | (b >> 32 & 0xFFFF) << 48, count: 8)
    text.append(word: b >> 48 | hyphen << 16 | (c & 0xFFFF_FFFF) << 24 | hyphen << 56, count: 8)
    text.append(word: c >> 32 | d << 32, count: 8)
    text.append(word: d >> 32, count: 4)
    return Identifier(checked: text)
  }

  /// Eight digits, of which the first is the highest, as characters in memory order.
  private static func characters(_ digits: UInt64) -> UInt64 {
    // Moves each digit into a byte of its own, by halving three times.
    var spread = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
    spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF
    spread = (spread | spread << 4) & 0x0F0F_0F0F_0F0F_0F0F
    // Digits of ten and more are letters: adding six carries into the upper half of their byte.
    let letters = (spread + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return (spread + 0x3030_3030_3030_3030 + letters * 0x27).byteSwapped
  }
}
