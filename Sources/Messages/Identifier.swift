// Ids as the protocol defines them, checked once where they enter and a type of their own after that.
import Bytes

/// The id of a driver, rider, trip or fence: 1–64 of `A-Z a-z 0-9 . _ -`.
public struct Identifier: Sendable, Hashable, BitwiseCopyable {
  public let text: InlineText

  /// Nil when the length or a character is not allowed. O(length).
  @inlinable public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 1 else { return nil }
    for byte in bytes where !Identifier.allows(byte) { return nil }
    guard let text = InlineText(bytes) else { return nil }
    self.text = text
  }

  /// The text of an identifier, which was checked when that was made.
  @inlinable public init(checked text: InlineText) { self.text = text }

  /// Nil when the length or a character is not allowed.
  public init?(_ string: String) {
    var string = string
    guard let made = string.withUTF8({ Identifier(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = made
  }

  @inlinable @inline(__always) static func allows(_ byte: UInt8) -> Bool {
    // A bit for each of the 128 characters of ASCII: `-`, `.`, 0–9 in the first word, A–Z, `_`, a–z in the second.
    let set: UInt64 = byte < 64 ? 0x03FF_6000_0000_0000 : 0x07FF_FFFE_87FF_FFFE
    return byte < 128 && (set &>> UInt64(byte)) & 1 != 0
  }

  @inlinable @inline(__always)
  public static func == (a: Identifier, b: Identifier) -> Bool { a.text == b.text }
}

extension Identifier: CustomStringConvertible {
  public var description: String { text.description }
}

/// The id that a sender gave to its message: any text of 1–64 bytes. An answer carries it as `replyTo`.
public struct MessageID: Sendable, Hashable, BitwiseCopyable {
  public let text: InlineText

  /// Nil when empty or longer than 64 bytes. The bytes must be UTF-8.
  @inlinable public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 1, let text = InlineText(bytes) else { return nil }
    self.text = text
  }

  public init?(_ string: String) {
    guard let text = InlineText(string), !text.isEmpty else { return nil }
    self.text = text
  }

  init(checked text: InlineText) { self.text = text }
}

extension MessageID: CustomStringConvertible {
  public var description: String { text.description }
}
