// The limits of parsed bytes.

extension JSONValue {
  /// Nested arrays and objects that are read; a token needs three.
  package static let maximumDepth = 8
}

/// Limits of lists that are emptied at the end of each turn.
public enum ByteLimits {
  /// A list with room for so many elements keeps it for ever.
  @inlinable public static var smallList: Int { 256 }
  /// A larger one keeps the memory that one of so many turns has used.
  @inlinable public static var turnsOfMemory: Int { 4096 }
}
