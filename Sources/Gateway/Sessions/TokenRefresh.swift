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

  /// Checks a token against the session's present one: `sub` and role must be the same.
  fileprivate init(
    _ request: Refresh, of present: SessionRights, _ access: TokenAccess?, now: Timestamp
  ) throws(CredentialError) {
    guard let access, present.hasToken else {
      throw CredentialError(code: .forbidden, text: "this session has no token to refresh")
    }
    let claims: Claims
    do throws(TokenError) {
      claims = try access.check(request.token.utf8, now: now)
    } catch {
      throw CredentialError(error)
    }
    guard claims.subject == present.id, claims.role == present.role else {
      throw CredentialError(code: .forbidden, text: "the new token is for another sub or role")
    }
    credential = Credential(claims)
    rights = SessionRights(credential, expires: credential.sessionEnd(by: access, now: now))
    isReviewNeeded = claims.role != .ops && !claims.grants.opensSame(as: present.grants)
  }
}

extension Session {
  /// It is open, and its token was revoked. `access`: nil where the hub accepts no tokens.
  func isRevoked(by access: TokenAccess?, now: Timestamp) -> Bool {
    phase == .open && open.rights.credential.isRevoked(by: access, now: now)
  }
}

extension OpenSession {
  /// Replaces the token. `access`: nil where the hub accepts no tokens.
  mutating func refresh(
    _ request: Refresh, _ access: TokenAccess?, now: Timestamp
  ) throws(CredentialError) -> TokenRefresh {
    let new = try TokenRefresh(request, of: rights, access, now: now)
    rights = new.rights
    return new
  }
}
