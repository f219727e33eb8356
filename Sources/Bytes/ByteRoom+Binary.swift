// Numbers in binary: little-endian, and of variable length (LEB128, as in DWARF 5 §7.6 and Protocol Buffers: seven bits
// a byte, the lowest first, the high bit set where another byte follows).

extension ByteRoom {
  /// Bytes that a number of variable length has at most.
  public static let varintBytes = 10

  /// Appends two bytes, the lowest first. The room must have them.
  @inlinable @inline(__always)
  public mutating func append(littleEndian value: UInt16) {
    demand(2)
    unsafe next.storeBytes(of: value.littleEndian, as: UInt16.self)
    unsafe next += 2
  }

  /// Appends four bytes, the lowest first. The room must have them.
  @inlinable @inline(__always)
  public mutating func append(littleEndian value: UInt32) {
    demand(4)
    unsafe next.storeBytes(of: value.littleEndian, as: UInt32.self)
    unsafe next += 4
  }

  /// Appends eight bytes, the lowest first. The room must have them.
  @inlinable @inline(__always)
  public mutating func append(littleEndian value: UInt64) {
    demand(8)
    put(word: value, count: 8)
  }

  /// Appends the lowest `count` (0…8) bytes of a number, the lowest first. The room must have eight.
  @inlinable @inline(__always)
  public mutating func append(lowest count: Int, of value: UInt64) {
    precondition(count >= 0 && count <= 8)
    demand(8)
    put(word: value, count: count)
  }

  /// Appends a number of variable length: 1 byte below 128, 2 below 16,384, …
  @inlinable @inline(__always)
  public mutating func append(varint value: UInt64) {
    demand(ByteRoom.varintBytes)
    var rest = value
    while rest >= 0x80 {
      put(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest &>>= 7
    }
    put(UInt8(truncatingIfNeeded: rest))
  }

  /// Appends a number that may be negative, zigzag: 0, −1, 1, −2, … as 0, 1, 2, 3, …, so that small ones stay short.
  @inlinable @inline(__always)
  public mutating func append(zigzag value: Int64) {
    append(varint: UInt64(bitPattern: (value &<< 1) ^ (value &>> 63)))
  }
}

extension ByteBuffer {
  /// Appends a number in groups of seven bits, the lowest first (LEB128): 1 to 10 bytes.
  @inlinable public mutating func append(varint value: UInt64) {
    withRoom(for: ByteRoom.varintBytes) { $0.append(varint: value) }
  }

  /// Appends eight bytes, the lowest first.
  @inlinable public mutating func append(littleEndian value: UInt64) {
    withRoom(for: 8) { $0.append(littleEndian: value) }
  }
}
