// Eight bytes of a text at a time.
//
// Unsafe island: the loads of words from a Span. Each is checked against the span's count before, and the span's own
// check of the same is left out. What is then done with the words is arithmetic on all eight bytes at once, and plain
// Swift.

extension Span where Element == UInt8 {
  /// The eight bytes from `start` on, the first one lowest; those behind the end are 0.
  ///
  /// - Precondition: `start` is 0…count.
  @inlinable @inline(__always)
  public func word(at start: Int) -> UInt64 {
    precondition(UInt(bitPattern: start) <= UInt(bitPattern: count))
    return count &- start >= 8 ? uncheckedWord(at: start) : lastWord(at: start)
  }

  /// The eight bytes from `start` on; nil where the text has fewer.
  @inlinable @inline(__always)
  public func wholeWord(at start: Int) -> UInt64? {
    guard start >= 0, count &- start >= 8 else { return nil }
    return uncheckedWord(at: start)
  }

  /// The sixteen bytes from `start` on as two words; nil where the text has fewer.
  @inlinable @inline(__always)
  public func twoWords(at start: Int) -> (first: UInt64, second: UInt64)? {
    guard start >= 0, count &- start >= 16 else { return nil }
    return (uncheckedWord(at: start), uncheckedWord(at: start &+ 8))
  }

  /// Whether there is such a byte at an index, which may be behind the end.
  @inlinable @inline(__always)
  public func has(_ byte: UInt8, at index: Int) -> Bool {
    unsafe UInt(bitPattern: index) < UInt(bitPattern: count) && self[unchecked: index] == byte
  }

  /// - Precondition: eight bytes from `start` on are there, which the caller has seen.
  @inlinable @inline(__always)
  func uncheckedWord(at start: Int) -> UInt64 {
    unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start, as: UInt64.self))
  }

  /// The last bytes of the text as a word: put together from pieces that may overlap, and agree where they do.
  @inlinable @inline(never)
  func lastWord(at start: Int) -> UInt64 {
    let left = count &- start
    if left >= 4 {
      let low = unsafe UInt32(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt32.self))
      let high = unsafe UInt32(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
      return UInt64(low) | UInt64(high) &<< UInt64(8 &* (left &- 4))
    }
    guard left > 0 else { return 0 }
    let middle = left >> 1
    return UInt64(self[start]) | UInt64(self[start &+ middle]) &<< UInt64(8 &* middle)
      | UInt64(self[count &- 1]) &<< UInt64(8 &* (left &- 1))
  }
}

/// The digits that a word begins with, their values a byte each.
@usableFromInline
struct DigitRun {
  /// The digits' values, a byte each; exact up to the first byte that is no digit.
  @usableFromInline let digits: UInt64
  /// The top bit of each byte that is no digit; exact up to the first of them.
  @usableFromInline let ends: UInt64

  @inlinable @inline(__always)
  init(_ word: UInt64) {
    digits = word ^ 0x3030_3030_3030_3030  // 0…9 where a byte is a digit
    ends = ((digits &+ 0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080
  }

  /// Whether all eight bytes are digits; more may follow behind the word.
  @inlinable @inline(__always) var isWhole: Bool { ends == 0 }

  /// The number of digits, 0…7.
  ///
  /// - Precondition: not all eight are.
  @inlinable @inline(__always) var count: Int { ends.trailingZeroBitCount &>> 3 }

  /// The value of all eight: pairs, then fours, then the eight (D. Lemire, "Quickly parsing eight digits").
  @inlinable @inline(__always) var value: UInt64 { DigitRun.value(digits) }

  /// The value of the first `count`, 1…7: with those behind them shifted out there are zeros before them.
  @inlinable @inline(__always)
  func value(ofFirst count: Int) -> UInt64 { DigitRun.value(digits &<< UInt64(64 &- 8 &* count)) }

  @inlinable @inline(__always)
  static func value(_ digits: UInt64) -> UInt64 {
    let pairs = digits &* 10 &+ (digits &>> 8)
    let low = (pairs & 0x0000_00FF_0000_00FF) &* 0x000F_4240_0000_0064
    let high = ((pairs &>> 16) & 0x0000_00FF_0000_00FF) &* 0x0000_2710_0000_0001
    return (low &+ high) &>> 32
  }
}
