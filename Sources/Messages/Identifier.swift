// Ids of the protocol, checked once on entry.
public import HubBytes

/// The id of a driver, rider, trip or fence: 1–64 of `A-Z a-z 0-9 . _ -`.
public struct Identifier: Sendable, Hashable, BitwiseCopyable {
  public let text: InlineText

  /// Nil when the length or a character is not allowed. O(length).
  @inlinable public init?(_ bytes: UnsafeRawBufferPointer) {
    guard let text = unsafe InlineText(bytes), Identifier.allows(text) else { return nil }
    self.text = text
  }

  /// Nil when the length or a character is not allowed.
  @inlinable @inline(__always)
  public init?(_ text: InlineText) {
    guard Identifier.allows(text) else { return nil }
    self.text = text
  }

  /// Wraps a text that is known to be a valid id.
  @inlinable public init(checked text: InlineText) { self.text = text }

  /// Nil when the length or a character is not allowed.
  public init?(_ string: String) {
    var string = string
    guard let made = string.withUTF8({ unsafe Identifier(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = made
  }

  /// Whether the text is a valid id: eight characters at a time.
  @inlinable @inline(__always)
  static func allows(_ text: InlineText) -> Bool {
    var left = text.count
    guard left > 0 else { return false }
    var i = 0
    while left > 0 {
      let wanted = left < 8 ? tops & ((1 &<< UInt64(8 * left)) - 1) : tops
      guard allowed(text.word(i)) & wanted == wanted else { return false }
      left -= 8
      i += 1
    }
    return true
  }

  /// The top bit of each byte.
  @inlinable @inline(__always) static var tops: UInt64 { 0x8080_8080_8080_8080 }

  /// The top bits of those bytes that are allowed in ids: of two sums one carries into the top bit where the byte is at
  /// least the first of a range, the other where it is beyond the last. Non-ASCII bytes are not allowed.
  @inlinable @inline(__always)
  static func allowed(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let ascii = word & ~tops
    let lower = ascii | ones &* 0x20
    let letters = (lower &+ ones &* (0x80 - 0x61)) & ~(lower &+ ones &* (0x7F - 0x7A))  // a–z, and A–Z
    let digits = (ascii &+ ones &* (0x80 - 0x30)) & ~(ascii &+ ones &* (0x7F - 0x39))
    let points = (ascii &+ ones &* (0x80 - 0x2D)) & ~(ascii &+ ones &* (0x7F - 0x2E))  // - and .
    let lines = (ascii &+ ones &* (0x80 - 0x5F)) & ~(ascii &+ ones &* (0x7F - 0x5F))  // _
    return (letters | digits | points | lines) & ~word & tops
  }

  /// Whether both have the same bytes: ids are case-sensitive.
  @inlinable @inline(__always)
  public static func == (a: Identifier, b: Identifier) -> Bool { a.text == b.text }
}

extension Identifier: CustomStringConvertible {
  /// The id as a String.
  public var description: String { text.description }
}

/// The id that a sender gave to its message: any text of 1–64 bytes. An answer has it as `replyTo`.
public struct MessageID: Sendable, Hashable, BitwiseCopyable {
  public let text: InlineText

  /// Nil when empty or longer than 64 bytes. The bytes must be UTF-8.
  @inlinable public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 1, let text = unsafe InlineText(bytes) else { return nil }
    self.text = text
  }

  /// Nil when empty. The bytes must be UTF-8.
  @inlinable @inline(__always)
  public init?(_ text: InlineText) {
    guard !text.isEmpty else { return nil }
    self.text = text
  }

  public init?(_ string: String) {
    guard let text = InlineText(string), !text.isEmpty else { return nil }
    self.text = text
  }

  init(checked text: InlineText) { self.text = text }
}

extension MessageID: CustomStringConvertible {
  /// The id as a String.
  public var description: String { text.description }
}
