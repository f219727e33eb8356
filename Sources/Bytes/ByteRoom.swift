// Reserved room for a few pieces in a row, such as a message of bounded length.
//
// Every append to a ByteBuffer checks whether it must grow, and stores its count. A position has forty pieces of
// bounded length: the room is reserved once, and a piece costs its bytes and one comparison.
//
// Unsafe code: `next` moves from the room's start to `end`, and every store is preceded by a check that it fits between
// them. Stores are of whole words where that is cheaper; the excess is overwritten by the next piece, or stays behind
// the buffer's count.

/// Where encoders write the pieces of something whose length is bounded. `ByteBuffer.withRoom` makes one.
@safe
public struct ByteRoom: ~Copyable {
  /// Bytes beyond the requested ones, so that the last piece can be stored in whole words too.
  @usableFromInline static let slack = InlineText.capacity

  @usableFromInline var next: UnsafeMutableRawPointer
  @usableFromInline let end: UnsafeMutableRawPointer

  @inlinable @inline(__always)
  init(_ start: UnsafeMutableRawPointer, count: Int) {
    unsafe next = start
    unsafe end = start + count
  }

  /// Appends one byte. The room must have it.
  @inlinable @inline(__always)
  public mutating func append(_ byte: UInt8) {
    unsafe precondition(next < end)
    unsafe next.storeBytes(of: byte, as: UInt8.self)
    unsafe next += 1
  }

  /// Appends the UTF-8 bytes of a literal: a few stores of constants.
  @inlinable @inline(__always)
  public mutating func append(_ text: StaticString) {
    let count = text.utf8CodeUnitCount
    unsafe precondition(end - next >= count)
    unsafe next.copyMemory(from: text.utf8Start, byteCount: count)
    unsafe next += count
  }

  /// Checks that `count` bytes fit; the calls of `put` that follow do not check.
  @inlinable @inline(__always)
  func demand(_ count: Int) { unsafe precondition(end - next >= count) }

  /// Appends a byte, for which the caller has called `demand`.
  @inlinable @inline(__always)
  mutating func put(_ byte: UInt8) {
    unsafe next.storeBytes(of: byte, as: UInt8.self)
    unsafe next += 1
  }

  /// Appends the first `count` (0…8) bytes of a word, the lowest first; the caller has demanded all eight.
  @inlinable @inline(__always)
  mutating func put(word: UInt64, count: Int) {
    unsafe next.storeBytes(of: word.littleEndian, as: UInt64.self)
    unsafe next += count
  }

  /// Appends the bytes of an inline text, a word at a time.
  @inlinable @inline(__always)
  public mutating func append(_ text: InlineText) {
    unsafe precondition(end - next >= InlineText.capacity)
    var offset = 0
    while offset < text.count {
      unsafe next.storeBytes(of: text.words[offset / 8], toByteOffset: offset, as: UInt64.self)
      offset += 8
    }
    unsafe next += text.count
  }

  /// Appends the bytes of a String; it must have at most `limit`.
  mutating func append(utf8 text: String, atMost limit: Int) {
    var text = text
    text.withUTF8 { bytes in
      unsafe precondition(bytes.count <= limit && end - next >= bytes.count)
      guard let source = bytes.baseAddress else { return }
      unsafe next.copyMemory(from: source, byteCount: bytes.count)
      unsafe next += bytes.count
    }
  }
}

extension ByteBuffer {
  /// Appends what `body` writes, which must be at most `limit` bytes.
  @inlinable @inline(__always)
  public mutating func withRoom(for limit: Int, _ body: (inout ByteRoom) -> Void) {
    reserve(limit + ByteRoom.slack)
    let start = unsafe base! + used
    var room = unsafe ByteRoom(start, count: limit + ByteRoom.slack)
    body(&room)
    unsafe used += room.next - start
  }
}
