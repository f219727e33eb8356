// The keys, policy and revocation list of a server. A reload makes a new value, which loops take (Server/Board.swift).
public import HubBytes
import HubMessages
public import HubTokens

/// What decides whether a token is accepted. Immutable.
public struct TokenAccess: Sendable {
  public let verifier: TokenVerifier
  public var revoked: RevocationList
  /// What back ends have revoked; the same object while the server runs.
  public internal(set) var stored = Revocations()
  /// Limits of sessions by a token's `tier`.
  public var tiers: [InlineText: SessionLimits] = [:]
  /// Keys of phones (protocol/phones.md).
  public var devices = DeviceKeys()

  public init(verifier: TokenVerifier, revoked: RevocationList = RevocationList()) {
    self.verifier = verifier
    self.revoked = revoked
  }

  /// The token's claims, if it is valid at `now` and not revoked. `signatures` is increased by the number of public
  /// keys that its signature was checked with.
  func check(
    _ token: some Collection<UInt8>, now: Timestamp, counting signatures: inout Int
  ) throws(TokenError) -> Claims {
    var claims = try verifier.verify(token, now: now, counting: &signatures)
    guard !hasRevoked(claims.subject, claims.grants?.tokenID, now: now) else { throw .revoked }
    if let grants = claims.grants, let tier = grants.tier {
      guard let limits = tiers[tier] else { throw .unknownTier }
      if grants.limits == nil { claims.grants = grants.limited(to: limits) }
    }
    return claims
  }

  /// Why a refresh token, valid by itself, is refused now; nil where it is not. The hub checks what back ends have
  /// revoked.
  func fault(of token: RefreshToken) -> TokenError? {
    if revoked.contains(subject: token.subject, tokenID: token.family) { return .revoked }
    return token.tier.map { tiers[$0] == nil } == true ? .unknownTier : nil
  }

  /// Whether a token was revoked, by the file or a back end. O(1).
  func hasRevoked(_ subject: Identifier, _ tokenID: InlineText?, now: Timestamp) -> Bool {
    revoked.contains(subject: subject, tokenID: tokenID)
      || stored.contains(subject: subject, tokenID: tokenID, now: now)
  }
}
