// The limits of what is read here, whoever reads it.

extension JSONValue {
  /// Nested arrays and objects that are read; a token needs three.
  package static let maximumDepth = 8
}
