// Up to 64 bytes of text by value: ids and message ids travel through queues and publications without a heap object
// or a reference count (a String of more than 15 bytes has both). Unused bytes are zero, so equality is nine words.

/// Text of 0–64 UTF-8 bytes, stored in place.
public struct InlineText: Sendable, Hashable, BitwiseCopyable {
  public static let capacity = 64

  @usableFromInline var words: InlineArray<8, UInt64>
  @usableFromInline var length: UInt8

  @inlinable public init() {
    words = InlineArray(repeating: 0)
    length = 0
  }

  /// Nil when there are more than 64 bytes. The bytes are taken as they are: the caller has checked that they are
  /// UTF-8.
  @inlinable public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count <= InlineText.capacity else { return nil }
    self.init()
    length = UInt8(truncatingIfNeeded: bytes.count)
    let span = unsafe bytes.assumingMemoryBound(to: UInt8.self).span
    var i = 0
    while i < span.count {  // word by word: most ids have one or two
      words[i / 8] = span.word(at: i)
      i += 8
    }
  }

  /// Nil when the text has more than 64 UTF-8 bytes.
  public init?(_ text: String) {
    var text = text
    guard let made = text.withUTF8({ unsafe InlineText(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = made
  }

  /// Up to 16 bytes, given as the two words that they are in memory; the text ends before the first zero byte.
  @inlinable @inline(__always)
  public init(_ first: UInt64, _ second: UInt64) {
    words = [first, second, 0, 0, 0, 0, 0, 0]
    let (last, end) = second == 0 ? (first, 8) : (second, 16)
    length = UInt8(truncatingIfNeeded: end &- last.leadingZeroBitCount &>> 3)
  }

  /// Appends the lowest `count` (1…8) bytes of a word, whose others are 0, to a text of exactly that many whole words.
  @inlinable @inline(__always)
  public mutating func append(word: UInt64, count: Int) {
    precondition(length & 7 == 0 && count <= 8)
    words[Int(length &>> 3)] = word
    length &+= UInt8(truncatingIfNeeded: count)
  }

  /// Eight bytes of the text as they lie in memory, those past its end zero. `index` is 0–7.
  @inlinable public func word(_ index: Int) -> UInt64 { words[index] }

  /// The number of bytes, 0…64.
  @inlinable public var count: Int { Int(length) }
  @inlinable public var isEmpty: Bool { length == 0 }

  /// The bytes, valid for the call only.
  @inlinable public func withBytes<R, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    let count = Int(length)
    return try unsafe withUnsafeBytes(of: words) { (all: UnsafeRawBufferPointer) throws(E) -> R in
      try unsafe body(UnsafeRawBufferPointer(rebasing: all[0..<count]))
    }
  }

  /// Whether both have the same bytes. All eight words are compared, without a branch: unused ones are 0.
  @inlinable @inline(__always)
  public static func == (a: InlineText, b: InlineText) -> Bool {
    if a.length != b.length { return false }
    var difference: UInt64 = 0
    for i in 0..<8 { difference |= a.words[i] ^ b.words[i] }
    return difference == 0
  }

  /// A 64-bit hash of the bytes: multiply and fold a word at a time (wyhash's mixing step), over the words in use only.
  /// `seed` keeps peers from choosing colliding ids; tables draw it once from the system's randomness.
  @inlinable public func hashValue(seed: UInt64) -> UInt64 {
    var state = seed ^ (UInt64(length) &* Mix64.golden)
    let used = (Int(length) + 7) / 8
    for i in 0..<used {
      let product = (state ^ words[i]).multipliedFullWidth(by: 0xA076_1D64_78BD_642F)
      state = product.high ^ product.low
    }
    let product = (state ^ 0xE703_7ED1_A0B4_28DB).multipliedFullWidth(by: 0x8EBC_6AF0_9C88_C6E3)
    return product.high ^ product.low
  }

  /// Hashes the bytes in use, for Swift's tables. The hub's own use `hashValue(seed:)`, which is faster.
  public func hash(into hasher: inout Hasher) {
    unsafe withBytes { unsafe hasher.combine(bytes: $0) }
  }
}

extension InlineText: CustomStringConvertible {
  /// The text as a String, which is allocated where it is longer than 15 bytes.
  public var description: String { unsafe withBytes { unsafe String(decoding: $0, as: UTF8.self) } }
}
