// Who a session is, and what its credential lets it do while it is open.
import HubCore
import HubMessages
import HubTokens

/// A session's credential, in few bytes; `refresh` puts another in its place.
struct SessionRights {
  /// What a token says of a session. An object, and none for development's word.
  private final class Token {
    /// When the session ends because the token's time is over (milliseconds since 1970).
    let expires: Int64
    /// What the token lists; nil where it lists nothing.
    let grants: Grants?

    init(expires: Int64, grants: Grants?) {
      self.expires = expires
      self.grants = grants
    }
  }

  // In this order they take the fewest bytes.
  private let token: Token?
  private let compactID: CompactIdentifier
  let role: HubMessages.Role

  /// `expires`: when the session is to end (milliseconds since 1970); only for a token.
  init(_ credential: Credential, expires: Int64) {
    role = credential.role
    compactID = CompactIdentifier(credential.id)
    switch credential.authority {
    case .development: token = nil
    case .token(let grants): token = Token(expires: expires, grants: grants)
    }
  }

  var id: Identifier { compactID.identifier }
  /// See `Credential.isShare`.
  var isShare: Bool { role == .rider && TripShare.isHolder(id) }
  var hasToken: Bool { token != nil }
  /// What the token lists; nil where there is none, or it lists nothing.
  var grants: Grants? { token?.grants }

  var credential: Credential {
    Credential(role: role, id: id, authority: token.map { .token($0.grants) } ?? .development)
  }

  // MARK: Time

  func isExpired(_ now: Timestamp) -> Bool {
    guard let token else { return false }
    return now.milliseconds >= token.expires
  }

  /// When the session's time is over (uptime, ns).
  func expiry(_ now: Moment) -> Int64 {
    guard let token else { return .max }
    let left = token.expires.subtractingReportingOverflow(now.timestamp.milliseconds)
    let nanoseconds = left.partialValue.multipliedReportingOverflow(by: 1_000_000)
    guard !left.overflow, !nanoseconds.overflow else { return .max }
    let end = now.uptime.addingReportingOverflow(nanoseconds.partialValue)
    return end.overflow ? .max : end.partialValue
  }

  // MARK: Rights

  /// The token's rate, or `usual`, that of all.
  @inline(__always)
  func rate(_ usual: Pacing.Rate) -> Pacing.Rate {
    let own = token?.grants?.limits
    return Pacing.Rate(units: own?.rate ?? usual.units, burst: own?.burst ?? usual.burst)
  }

  /// Whether the credential names the trip that a driver's message is about. Asked for each fix.
  @inline(__always)
  func names(_ trip: Identifier?) -> Bool {
    guard let token else { return trip != nil }
    return trip.map { token.grants?.names(trip: $0) ?? false } ?? false
  }

  /// A driver's word with what its token says in place of it.
  func withClaims(_ report: DriverStatusReport) -> DriverStatusReport {
    guard let vehicle = token?.grants?.vehicle else { return report }
    return DriverStatusReport(
      status: report.status, vehicleType: vehicle.vehicleType ?? report.vehicleType, tags: vehicle.tags ?? report.tags)
  }

  /// Whether the session may follow a channel that the hub let it have.
  func mayKeep(_ channel: Channel, isParty: Bool) -> Bool {
    switch credential.grant(for: channel) {
    case .granted, .whileUnclaimed: true
    case .onlyForParties: isParty
    case nil: false
    }
  }
}

extension Credential {
  /// When the session that it opens ends (milliseconds since 1970): when its token or certificate does. One that was
  /// let in by the leeway, behind that time, ends with the leeway.
  func sessionEnd(by access: TokenAccess?, now: Timestamp) -> Int64 {
    guard let expires else { return .max }
    if expires > now { return expires.milliseconds }
    return expires.milliseconds + (access?.verifier.policy.leewaySeconds ?? 0) * 1000
  }

  /// Whether its token was revoked since that was checked.
  func isRevoked(by access: TokenAccess?, now: Timestamp) -> Bool {
    guard let access, case .token(let grants) = authority else { return false }
    return access.hasRevoked(id, grants?.tokenID, now: now)
  }
}
