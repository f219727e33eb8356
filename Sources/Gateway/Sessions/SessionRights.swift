// A session's identity and rights while it is open.
import HubCore
import HubMessages
import HubTokens

/// A session's credential, in few bytes; `refresh` replaces it.
struct SessionRights {
  /// A token's data. An object, absent for a development credential.
  private final class Token {
    /// When the session ends with its token (milliseconds since 1970).
    let expires: Int64
    /// The token's lists; nil where it has none.
    let grants: Grants?

    init(expires: Int64, grants: Grants?) {
      self.expires = expires
      self.grants = grants
    }
  }

  // Ordered to take the fewest bytes.
  private let token: Token?
  private let compactID: CompactIdentifier
  let role: HubMessages.Role

  /// `expires`: the end of the session (milliseconds since 1970); only for a token.
  init(_ credential: Credential, expires: Int64) {
    role = credential.role
    compactID = CompactIdentifier(credential.id)
    switch credential.authority {
    case .development: token = nil
    case .token(let grants): token = Token(expires: expires, grants: grants)
    }
  }

  var id: Identifier { compactID.identifier }
  /// Whether it belongs to the holder of a share, who may see that trip alone.
  var isShare: Bool { role == .rider && TripShare.isHolder(id) }
  var hasToken: Bool { token != nil }
  /// The token's lists; nil without a token or lists.
  var grants: Grants? { token?.grants }

  var credential: Credential {
    Credential(role: role, id: id, authority: token.map { .token($0.grants) } ?? .development)
  }

  // MARK: Time

  func isExpired(_ now: Timestamp) -> Bool {
    guard let token else { return false }
    return now.milliseconds >= token.expires
  }

  /// When the session ends (uptime, ns).
  func expiry(_ now: Moment) -> Int64 {
    guard let token else { return .max }
    let left = token.expires.subtractingReportingOverflow(now.timestamp.milliseconds)
    let nanoseconds = left.partialValue.multipliedReportingOverflow(by: 1_000_000)
    guard !left.overflow, !nanoseconds.overflow else { return .max }
    let end = now.uptime.addingReportingOverflow(nanoseconds.partialValue)
    return end.overflow ? .max : end.partialValue
  }

  // MARK: Rights

  /// The token's rate, or `usual`.
  @inline(__always)
  func rate(_ usual: Pacing.Rate) -> Pacing.Rate {
    let own = token?.grants?.limits
    return Pacing.Rate(units: own?.rate ?? usual.units, burst: own?.burst ?? usual.burst)
  }

  /// Whether the credential names the trip of a driver's message. Called for each fix.
  @inline(__always)
  func names(_ trip: Identifier?) -> Bool {
    guard let token else { return trip != nil }
    return trip.map { token.grants?.names(trip: $0) ?? false } ?? false
  }

  /// A driver's report with its token's claims instead of its own.
  func withClaims(_ report: DriverStatusReport) -> DriverStatusReport {
    guard let vehicle = token?.grants?.vehicle else { return report }
    return DriverStatusReport(
      status: report.status, vehicleType: vehicle.vehicleType ?? report.vehicleType, tags: vehicle.tags ?? report.tags)
  }

  /// Whether the session may keep following a channel.
  func mayKeep(_ channel: Channel, isParty: Bool) -> Bool {
    switch credential.grant(for: channel) {
    case .granted, .whileUnclaimed: true
    case .onlyForParties: isParty
    case nil: false
    }
  }
}

extension Credential {
  /// When the session ends (milliseconds since 1970): with its token or certificate. One that was accepted by the
  /// leeway after that time ends with the leeway.
  func sessionEnd(by access: TokenAccess?, now: Timestamp) -> Int64 {
    guard let expires else { return .max }
    if expires > now { return expires.milliseconds }
    return expires.milliseconds + (access?.verifier.policy.leewaySeconds ?? 0) * 1000
  }

  /// Whether its token was revoked since it was checked.
  func isRevoked(by access: TokenAccess?, now: Timestamp) -> Bool {
    guard let access, case .token(let grants) = authority else { return false }
    return access.hasRevoked(id, grants?.tokenID, now: now)
  }
}
