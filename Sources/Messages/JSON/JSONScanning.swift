// A text eight bytes at a time: where strings end, and the names of members as words.
//
// Arithmetic on all eight bytes at once sets a byte's top bit where it is what is searched. A borrow can set it
// wrongly, but only above a byte where it is set rightly, and the lowest one is used (S. E. Anderson, "Bit Twiddling
// Hacks", haszero and hasless).
import HubBytes

private let ones: UInt64 = 0x0101_0101_0101_0101
private let tops: UInt64 = 0x8080_8080_8080_8080

extension Span where Element == UInt8 {
  /// The first index from `start` on of a quotation mark, a backslash or a control character, which end the plain part
  /// of a string (RFC 8259 §7); else the end of the text.
  @inline(__always)
  func plainEnd(from start: Int) -> Int {
    var i = start
    while i < count {
      let found = plainEnds(word(at: i))
      if found != 0 { return Swift.min(i &+ found.trailingZeroBitCount / 8, count) }  // zeros behind the end count too
      i += 8
    }
    return count
  }

  /// The string at `start`, if it has no escapes and at most 64 bytes, and the index behind it; else nil.
  @inline(__always)
  func plainString(at start: Int) -> (text: InlineText, end: Int)? { plainString(at: start, endingWith: plainEnds) }

  /// The id in the string at `start`, and the index behind it; nil for any other string. Ids need no escapes, so the
  /// first other byte must be the quotation mark.
  @inline(__always)
  func plainIdentifier(at start: Int) -> (id: Identifier, end: Int)? {
    let string = plainString(at: start) { ~Identifier.allowed($0) & tops }
    guard let string, !string.text.isEmpty else { return nil }
    return (Identifier(checked: string.text), string.end)
  }

  /// The string at `start` up to the byte found by `ends`, which gives the top bits of such bytes in a word.
  @inline(__always)
  private func plainString(at start: Int, endingWith ends: (UInt64) -> UInt64) -> (text: InlineText, end: Int)? {
    guard has(UInt8(ascii: "\""), at: start) else { return nil }
    var text = InlineText()
    var i = start &+ 1
    for _ in 0..<InlineText.capacity / 8 {
      let word = word(at: i)  // the zeros behind the end of the bytes end it
      let found = ends(word)
      guard found == 0 else {
        let rest = found.trailingZeroBitCount &>> 3
        if rest > 0 { text.append(word: word & below(found), count: rest) }
        i &+= rest
        break
      }
      text.append(word: word, count: 8)
      i &+= 8
    }
    return has(UInt8(ascii: "\""), at: i) ? (text, i &+ 1) : nil
  }
}

/// Bits of `word`, the lowest of which is the top bit of its first quotation mark; 0 where it has none.
@inline(__always)
private func quotationMarks(_ word: UInt64) -> UInt64 {
  let quote = word ^ (ones &* 0x22)
  return (quote &- ones) & ~quote & tops
}

/// Bits of `word`, the lowest of which is the top bit of the first byte that ends the plain part of a string; 0 where
/// none does.
@inline(__always)
private func plainEnds(_ word: UInt64) -> UInt64 {
  let quote = word ^ (ones &* 0x22)
  let slash = word ^ (ones &* 0x5C)
  return (((word &- (ones &* 0x20)) & ~word) | ((quote &- ones) & ~quote) | ((slash &- ones) & ~slash)) & tops
}

/// A mask of all bytes before the first marked one.
@inline(__always)
private func below(_ marks: UInt64) -> UInt64 { ((marks & (0 &- marks)) >> 7) &- 1 }

/// Up to 24 bytes of a name as three words, unused bytes zero.
struct PackedName {
  static let capacity = 24

  var first: UInt64
  var second: UInt64 = 0
  var third: UInt64 = 0
  /// The number of bytes; more than `capacity` for a name outside the protocol.
  var length: Int

  /// The name that ends with the first quotation mark from `start` on. Its content is not checked: one equal to a name
  /// of the protocol has neither escapes nor control characters.
  @inline(__always)
  init(_ bytes: Span<UInt8>, quotedFrom start: Int) {
    first = bytes.word(at: start)
    var marks = quotationMarks(first)
    if marks != 0 {
      length = marks.trailingZeroBitCount / 8
      first &= below(marks)
      return
    }
    guard bytes.count - start > 8 else {
      length = .max
      return
    }
    second = bytes.word(at: start + 8)
    marks = quotationMarks(second)
    if marks != 0 {
      length = 8 + marks.trailingZeroBitCount / 8
      second &= below(marks)
      return
    }
    guard bytes.count - start > 16 else {
      length = .max
      return
    }
    third = bytes.word(at: start + 16)
    marks = quotationMarks(third)
    length = marks != 0 ? 16 + marks.trailingZeroBitCount / 8 : .max
    third &= below(marks)
  }

  /// A name; its first 24 bytes where it is longer.
  init(_ bytes: Span<UInt8>) {
    length = bytes.count
    first = bytes.word(at: 0)
    if length > 8 { second = bytes.word(at: 8) }
    if length > 16 { third = bytes.word(at: 16) }
  }

  /// The first word and the length distinguish all names of the protocol.
  @inline(__always)
  var hash: UInt64 {
    (first ^ UInt64(truncatingIfNeeded: length)) &* Mix64.golden
  }

  @inline(__always)
  func isSameName(as other: PackedName) -> Bool {
    first == other.first && second == other.second && length == other.length && third == other.third
  }
}
