// The position of a reader of binary messages in its bytes.
//
// Unsafe island: the loads. Each follows a check that its bytes are before the end, and no offset comes from the
// message: it is read from front to back.
import HubBytes
import HubGeo

/// A message's bytes, read from front to back; they must stay valid while it is used.
@safe
struct BinaryInput: ~Copyable {
  private let bytes: UnsafeRawBufferPointer
  private var next = 0
  /// Whether an unknown keyword is read as the first of its kind and noted in `hasUnknownKeyword`, instead of refused.
  /// For messages whose layout does not depend on their keywords.
  var passesUnknownKeywords = false
  var hasUnknownKeyword = false

  init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = unsafe bytes }

  /// The number of bytes left.
  var left: Int { unsafe bytes.count &- next }

  @inline(__always)
  private mutating func take(_ count: Int, _ key: JSONKey) throws(ValidationError) -> UnsafeRawPointer {
    guard count <= left, let base = unsafe bytes.baseAddress else {
      throw ValidationError(key, "the message ends within it")
    }
    defer { next &+= count }
    return unsafe base + next
  }

  @inline(__always)
  mutating func byte(_ key: JSONKey) throws(ValidationError) -> UInt8 {
    try unsafe take(1, key).loadUnaligned(as: UInt8.self)
  }

  @inline(__always)
  mutating func word16(_ key: JSONKey) throws(ValidationError) -> UInt16 {
    unsafe UInt16(littleEndian: try take(2, key).loadUnaligned(as: UInt16.self))
  }

  @inline(__always)
  mutating func word32(_ key: JSONKey) throws(ValidationError) -> UInt32 {
    unsafe UInt32(littleEndian: try take(4, key).loadUnaligned(as: UInt32.self))
  }

  @inline(__always)
  mutating func word64(_ key: JSONKey) throws(ValidationError) -> UInt64 {
    unsafe UInt64(littleEndian: try take(8, key).loadUnaligned(as: UInt64.self))
  }

  /// The lowest `count` (1…8) bytes of a number.
  mutating func word(bytes count: Int, _ key: JSONKey) throws(ValidationError) -> UInt64 {
    let start = try unsafe take(count, key)
    var value: UInt64 = 0
    for index in (0..<count).reversed() {
      value = unsafe value &<< 8 | UInt64((start + index).loadUnaligned(as: UInt8.self))
    }
    return value
  }

  /// A number of variable length, of up to 64 bits.
  @inline(__always)
  mutating func varint(_ key: JSONKey) throws(ValidationError) -> UInt64 {
    let first = try byte(key)
    return first < 0x80 ? UInt64(first) : try longVarint(first, key)
  }

  private mutating func longVarint(_ first: UInt8, _ key: JSONKey) throws(ValidationError) -> UInt64 {
    var value = UInt64(first & 0x7F)
    var shift: UInt64 = 7
    while true {
      let byte = try byte(key)
      guard shift < 63 || byte <= 1 else { throw ValidationError(key, "a number has more than 64 bits") }
      value |= UInt64(byte & 0x7F) &<< shift
      if byte < 0x80 { return value }
      shift &+= 7
    }
  }

  @inline(__always)
  mutating func zigzag(_ key: JSONKey) throws(ValidationError) -> Int64 {
    let value = try varint(key)
    return Int64(bitPattern: value &>> 1) ^ -Int64(bitPattern: value & 1)
  }

  /// The next `count` bytes, valid for the call only.
  @inline(__always)
  mutating func run<R>(
    _ count: Int, _ key: JSONKey, _ body: (UnsafeRawBufferPointer) -> R
  ) throws(ValidationError) -> R {
    let start = try unsafe take(count, key)
    return unsafe body(UnsafeRawBufferPointer(start: start, count: count))
  }
}
