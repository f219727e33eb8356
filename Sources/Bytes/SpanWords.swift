// Eight bytes of a text at a time.
//
// Unsafe island: the loads of words from a Span. Each is checked against the span's count before. What is then done
// with the words is arithmetic on all eight bytes at once, and plain Swift.

extension Span where Element == UInt8 {
  /// The eight bytes from `start` on, the first one lowest; those behind the end are 0.
  ///
  /// - Precondition: `start` is 0…count.
  @inlinable @inline(__always)
  public func word(at start: Int) -> UInt64 {
    precondition(start >= 0 && start <= count)
    if count &- start >= 8 {
      return UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self))
    }
    return lastWord(at: start)
  }

  /// The sixteen bytes from `start` on as two words; nil where the text has fewer.
  @inlinable @inline(__always)
  public func twoWords(at start: Int) -> (first: UInt64, second: UInt64)? {
    guard start >= 0, count &- start >= 16 else { return nil }
    return (
      UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self)),
      UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: start &+ 8, as: UInt64.self))
    )
  }

  /// A word of which the end of the text leaves less than eight bytes: pieces that overlap have the same bytes there.
  @inlinable
  func lastWord(at start: Int) -> UInt64 {
    let left = count &- start
    if left >= 4 {
      let low = UInt32(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt32.self))
      let high = UInt32(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
      return UInt64(low) | UInt64(high) &<< UInt64(8 &* (left &- 4))
    }
    guard left > 0 else { return 0 }
    let middle = left >> 1
    return UInt64(self[start]) | UInt64(self[start &+ middle]) &<< UInt64(8 &* middle)
      | UInt64(self[count &- 1]) &<< UInt64(8 &* (left &- 1))
  }
}
