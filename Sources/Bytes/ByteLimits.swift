// The limits of parsed bytes.

extension JSONValue {
  /// Nested arrays and objects that are read; a token needs three.
  package static let maximumDepth = 8
}
