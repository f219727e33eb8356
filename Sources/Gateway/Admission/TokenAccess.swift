// The keys, the policy and the revocation list that a server goes by. Whoever reads the files again makes a new value,
// which loops pick up (Server/Board.swift).
import HubMessages
public import HubTokens

/// What decides whether a token is accepted. Immutable.
public struct TokenAccess: Sendable {
  public let verifier: TokenVerifier
  /// What checking a token counts for beside the request, in units (`WorkUnits`): a public key's signature takes up to
  /// 150 µs.
  let unitsOfCheck: Int
  public var revoked: RevocationList
  /// Keys of phones (protocol/phones.md).
  public var devices = DeviceKeys()

  public init(verifier: TokenVerifier, revoked: RevocationList = RevocationList()) {
    self.verifier = verifier
    unitsOfCheck = verifier.keys.keys.contains { $0.algorithm != .hs256 } ? 5 : 0
    self.revoked = revoked
  }

  /// The token's claims, if it holds at `now` and is not revoked.
  func check(_ token: some Collection<UInt8>, now: Timestamp) throws(TokenError) -> Claims {
    let claims = try verifier.verify(token, now: now)
    guard !revoked.contains(subject: claims.subject, tokenID: claims.grants?.tokenID) else { throw .revoked }
    return claims
  }
}
