// The keys, the policy and the revocation list that a server goes by. Whoever reads the files again makes a new value,
// which loops pick up (Server/Board.swift).
public import HubBytes
import HubMessages
public import HubTokens

/// What decides whether a token is accepted. Immutable.
public struct TokenAccess: Sendable {
  public let verifier: TokenVerifier
  /// What checking a token counts for beside the request, in units (`WorkUnits`): a public key's signature takes up to
  /// 150 µs.
  let unitsOfCheck: Int
  public var revoked: RevocationList
  /// What back ends have revoked; the same as long as the server runs.
  public internal(set) var stored = Revocations()
  /// Limits of sessions by the name that a token's `tier` gives.
  public var tiers: [InlineText: SessionLimits] = [:]
  /// Keys of phones (protocol/phones.md).
  public var devices = DeviceKeys()

  public init(verifier: TokenVerifier, revoked: RevocationList = RevocationList()) {
    self.verifier = verifier
    unitsOfCheck = verifier.keys.keys.contains { $0.algorithm != .hs256 } ? 5 : 0
    self.revoked = revoked
  }

  /// The token's claims, if it holds at `now` and is not revoked.
  func check(_ token: some Collection<UInt8>, now: Timestamp) throws(TokenError) -> Claims {
    var claims = try verifier.verify(token, now: now)
    guard !hasRevoked(claims.subject, claims.grants?.tokenID, now: now) else { throw .revoked }
    if let grants = claims.grants, let tier = grants.tier {
      guard let limits = tiers[tier] else { throw .unknownTier }
      if grants.limits == nil { claims.grants = grants.limited(to: limits) }
    }
    return claims
  }

  /// Why a refresh token, which holds by itself, gives nothing now; nil where it does. What back ends have revoked, the
  /// hub looks at.
  func fault(of token: RefreshToken) -> TokenError? {
    if revoked.contains(subject: token.subject, tokenID: token.family) { return .revoked }
    return token.tier.map { tiers[$0] == nil } == true ? .unknownTier : nil
  }

  /// Whether a token was revoked, by the file or by a back end. O(1).
  func hasRevoked(_ subject: Identifier, _ tokenID: InlineText?, now: Timestamp) -> Bool {
    revoked.contains(subject: subject, tokenID: tokenID)
      || stored.contains(subject: subject, tokenID: tokenID, now: now)
  }
}
