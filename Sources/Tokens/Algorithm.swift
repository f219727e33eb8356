// The supported signatures, by their names in RFC 7518 §3.1 and RFC 8037 §3.1; `none` is not supported.

/// How a token is signed. A key is for exactly one of these (RFC 8725 §3.1).
public enum Algorithm: String, Sendable, CaseIterable {
  /// HMAC with SHA-256 (RFC 7518 §3.2).
  case hs256 = "HS256"
  /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 §3.3).
  case rs256 = "RS256"
  /// ECDSA on P-256 with SHA-256 (RFC 7518 §3.4).
  case es256 = "ES256"
  /// Ed25519 (RFC 8037 §3.1).
  case edDSA = "EdDSA"
}
