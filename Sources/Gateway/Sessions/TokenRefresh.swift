// A session's new token.
import HubCore
import HubMessages
import HubTokens

/// The result of a new token.
struct TokenRefresh {
  let credential: Credential
  let rights: SessionRights
  /// Whether the old token opened channels that the new one may not.
  let isReviewNeeded: Bool

  /// Replaces a session's token by another for the same `sub` and role, and charges the session for each public key
  /// that its signature was checked with. `access`: nil where the hub accepts no tokens.
  init(
    _ request: Refresh, of session: inout Session, _ access: TokenAccess?, now: Timestamp, _ budget: inout TurnBudget
  ) throws(CredentialError) {
    let present = session.open.rights
    guard let access, present.hasToken else {
      throw CredentialError(code: .forbidden, text: "this session has no token to refresh")
    }
    var signatures = 0
    defer { budget.charge(&session, work: signatures * WorkUnits.ofSignatureCheck) }
    let claims: Claims
    do throws(TokenError) {
      claims = try access.check(request.token.utf8, now: now, counting: &signatures)
    } catch {
      throw CredentialError(error)
    }
    guard claims.subject == present.id, claims.role == present.role else {
      throw CredentialError(code: .forbidden, text: "the new token is for another sub or role")
    }
    credential = Credential(claims)
    rights = SessionRights(credential, expires: credential.sessionEnd(by: access, now: now))
    isReviewNeeded = claims.role != .ops && !claims.grants.opensSame(as: present.grants)
    session.open.rights = rights
  }
}

extension Session {
  /// Whether the session is open and its token was revoked. `access`: nil where the hub accepts no tokens.
  func isRevoked(by access: TokenAccess?, now: Timestamp) -> Bool {
    phase == .open && open.rights.credential.isRevoked(by: access, now: now)
  }
}
