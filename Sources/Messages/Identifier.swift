// Ids as the protocol defines them, checked once where they enter and a type of their own after that.
import Bytes

/// The id of a driver, rider, trip or fence: 1–64 of `A-Z a-z 0-9 . _ -`.
public struct Identifier: Sendable, Hashable {
  public let text: InlineText

  /// Nil when the length or a character is not allowed. O(length).
  @inlinable public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 1 else { return nil }
    for byte in bytes where !Identifier.allows(byte) { return nil }
    guard let text = InlineText(bytes) else { return nil }
    self.text = text
  }

  /// Nil when the length or a character is not allowed.
  public init?(_ string: String) {
    var string = string
    guard let made = string.withUTF8({ Identifier(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = made
  }

  @inlinable static func allows(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }

  @inlinable public static func == (a: Identifier, b: Identifier) -> Bool { a.text == b.text }
}

extension Identifier: CustomStringConvertible {
  public var description: String { text.description }
}

/// The id that a sender gave to its message: any text of 1–64 bytes. An answer carries it as `replyTo`.
public struct MessageID: Sendable, Hashable {
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
}

extension MessageID: CustomStringConvertible {
  public var description: String { text.description }
}
