// A growable run of bytes with one owner: what encoders write into and what a loop sends from.
//
// `[UInt8]` costs a uniqueness check and a bounds check for each append and cannot hand out its uninitialised tail
// to read(2). Only this type owns raw memory for output; everything above it goes through checked calls.
#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A growable byte store that encoders append to.
///
/// Not thread-safe and not copyable: it belongs to one loop, one connection or one test.
@safe
public struct ByteBuffer: ~Copyable {
  // `base` is nil only while capacity is 0. Bytes [0, count) are initialised.
  @usableFromInline var base: UnsafeMutableRawPointer?
  @usableFromInline var storage: Int
  @usableFromInline var used: Int

  /// An empty buffer; allocates nothing until something is appended unless a capacity is asked for.
  public init(capacity: Int = 0) {
    precondition(capacity >= 0)
    unsafe base = nil
    storage = 0
    used = 0
    if capacity > 0 { resize(to: capacity) }
  }

  deinit { unsafe free(base) }

  /// The number of bytes written so far.
  @inlinable public var count: Int { used }
  @inlinable public var isEmpty: Bool { used == 0 }

  /// Makes room for at least `extra` bytes behind `count`. Amortised O(1): capacity at least doubles.
  @inlinable public mutating func reserve(_ extra: Int) {
    precondition(extra >= 0)
    if used + extra > storage { grow(to: used + extra) }
  }

  @usableFromInline mutating func grow(to needed: Int) {
    var wanted = max(storage * 2, 256)
    if wanted < needed { wanted = needed }
    resize(to: wanted)
  }

  /// By realloc(3): the kernel moves the pages of a large block, which are not copied then.
  private mutating func resize(to capacity: Int) {
    guard let block = unsafe realloc(base, capacity) else { fatalError("no memory for a buffer of \(capacity) bytes") }
    unsafe base = block
    storage = capacity
  }

  /// Appends one byte. Amortised O(1).
  @inlinable public mutating func append(_ byte: UInt8) {
    reserve(1)
    unsafe base!.storeBytes(of: byte, toByteOffset: used, as: UInt8.self)
    used += 1
  }

  /// Appends a copy of the bytes, which may not lie in this buffer. Amortised O(their number).
  @inlinable public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    reserve(bytes.count)
    unsafe (base! + used).copyMemory(from: source, byteCount: bytes.count)
    used += bytes.count
  }

  /// Appends a copy of the array's bytes. Amortised O(their number).
  @inlinable public mutating func append(_ bytes: [UInt8]) {
    unsafe bytes.withUnsafeBytes { unsafe append($0) }
  }

  /// Appends the UTF-8 bytes of a literal; no String is made.
  @inlinable public mutating func append(_ text: StaticString) {
    unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends the UTF-8 bytes of a String. Amortised O(their number); a bridged or not contiguous String is copied
  /// first.
  @inlinable public mutating func append(utf8 text: String) {
    var text = text
    text.withUTF8 { unsafe append(UnsafeRawBufferPointer($0)) }
  }

  /// Appends what `body` writes into at most `limit` fresh bytes; it returns how many it wrote.
  @inlinable public mutating func append(
    atMost limit: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int
  ) {
    reserve(limit)
    let written = unsafe body(UnsafeMutableRawBufferPointer(start: base! + used, count: limit))
    precondition(written >= 0 && written <= limit)
    used += written
  }

  /// Forgets everything behind the first `count` bytes; keeps the memory.
  @inlinable public mutating func truncate(to count: Int) {
    precondition(count >= 0 && count <= used)
    used = count
  }

  /// Forgets the first `count` bytes and moves the rest to the front. O(rest).
  public mutating func removeFirst(_ count: Int) {
    precondition(count >= 0 && count <= used)
    guard count > 0, let base = unsafe base else { return }
    unsafe base.copyMemory(from: base + count, byteCount: used - count)  // memmove: the ranges may overlap
    used -= count
  }

  /// Removes all bytes; keeps the memory unless it is more than `limit`, so that one large turn does not keep it.
  public mutating func removeAll(keepingAtMost limit: Int = .max) {
    used = 0
    if storage > limit {
      unsafe free(base)
      unsafe base = nil
      storage = 0
    }
  }

  /// The written bytes, valid for the call only.
  @inlinable public func withBytes<R, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try unsafe body(UnsafeRawBufferPointer(start: base, count: used))
  }

  /// The written bytes, writable in place, valid for the call only.
  @inlinable public mutating func withMutableBytes<R, E: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try unsafe body(UnsafeMutableRawBufferPointer(start: base, count: used))
  }

  /// A copy of the written bytes.
  public func array() -> [UInt8] { unsafe withBytes { unsafe [UInt8]($0) } }
}
