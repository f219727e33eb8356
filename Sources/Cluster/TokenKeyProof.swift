// Checks that all hubs of a cluster sign tokens with the same key, so that each accepts the others' tokens.

/// This hub's signature over a fixed text, and how another hub's is checked. It is no token.
public struct TokenKeyProof: Sendable {
  /// The text that is signed.
  public static let words = Array("hubs of a cluster sign tokens with one key".utf8)

  /// Empty for a hub without tokens.
  public var signature: [UInt8]
  private let check: @Sendable ([UInt8]) -> Bool

  /// For a hub without tokens.
  public init() { self.init(signature: [], check: { _ in false }) }

  public init(signature: [UInt8], check: @escaping @Sendable ([UInt8]) -> Bool) {
    self.signature = signature
    self.check = check
  }

  /// Whether a hub with this signature has the same key, or, like this one, none.
  func isSame(_ other: [UInt8]) -> Bool {
    signature.isEmpty || other.isEmpty ? signature.isEmpty && other.isEmpty : check(other)
  }
}
