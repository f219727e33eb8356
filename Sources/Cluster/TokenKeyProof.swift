// That all hubs of a cluster sign tokens with the same key: what one has signed the others must accept.

/// A signature of this hub's over words that all hubs know, and how one of another hub's is checked. It opens nothing.
public struct TokenKeyProof: Sendable {
  /// What is signed.
  public static let words = Array("hubs of a cluster sign tokens with one key".utf8)

  /// Empty for a hub that makes no tokens.
  public var signature: [UInt8]
  private let check: @Sendable ([UInt8]) -> Bool

  /// Of a hub that makes no tokens.
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
