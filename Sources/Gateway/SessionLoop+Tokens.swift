// What a token means for a session: its rights and limits, its end, and how both change while the session is open.
//
// The end is the session's own timer (SessionLoop+Frames), so that a hundred thousand sessions that expire at a hundred
// thousand times cost nothing until they do. Revocation is a walk over all sessions, once for each reload.
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTokens
import HubTransport
import HubWebSocket

extension SessionLoop {
  /// Whether the list has had a session's token since it was checked.
  func isRevoked(_ credential: Credential) -> Bool {
    guard let access, case .token(let grants) = credential.authority else { return false }
    return access.revoked.contains(subject: credential.id, tokenID: grants?.tokenID)
  }

  /// Gives a session its credential's rights, in place of those that it had.
  mutating func take(_ slot: Int, _ credential: Credential) {
    sessions[slot].role = credential.role
    sessions[slot].id = credential.id
    switch credential.authority {
    case .development: sessions[slot].token = nil
    case .token(let grants): sessions[slot].token = SessionToken(expires: end(of: credential), grants: grants)
    }
  }

  /// A session ends when its token does. One that was let in by the leeway, behind that time, ends with the leeway.
  private func end(of credential: Credential) -> Int64 {
    guard let expires = credential.expires, let access else { return .max }
    if expires > now.timestamp { return expires.milliseconds }
    return expires.milliseconds + access.verifier.policy.leewaySeconds * 1000
  }

  func isExpired(_ slot: Int) -> Bool {
    guard let token = sessions[slot].token else { return false }
    return now.timestamp.milliseconds >= token.expires
  }

  /// When the session's timer must fire for its token (uptime, ns).
  func expiry(_ slot: Int) -> Int64 {
    guard let token = sessions[slot].token else { return .max }
    let left = token.expires.subtractingReportingOverflow(now.timestamp.milliseconds)
    let nanoseconds = left.partialValue.multipliedReportingOverflow(by: 1_000_000)
    guard !left.overflow, !nanoseconds.overflow else { return .max }
    return now.uptime.addingReportingOverflow(nanoseconds.partialValue).overflow
      ? .max : now.uptime + nanoseconds.partialValue
  }

  // MARK: What a driver's token says of its vehicle

  /// Tells the hub, which has admitted the driver.
  mutating func tellVehicle(_ credential: Credential) {
    guard credential.role == .driver, let vehicle = credential.vehicle else { return }
    inputs.append(.vehicle(credential.id, vehicle))
  }

  /// A driver's word with what its token says in place of it.
  func withClaims(_ slot: Int, _ report: DriverStatusReport) -> DriverStatusReport {
    guard let vehicle = sessions[slot].token?.grants?.vehicle else { return report }
    return DriverStatusReport(
      status: report.status, vehicleType: vehicle.vehicleType ?? report.vehicleType, tags: vehicle.tags ?? report.tags)
  }

  // MARK: Limits of the session's own

  @inline(__always) func rate(of slot: Int) -> Double {
    guard let token = sessions[slot].token else { return limits.sessionRate }
    return token.grants?.limits?.rate ?? limits.sessionRate
  }

  @inline(__always) func burst(of slot: Int) -> Double {
    guard let token = sessions[slot].token else { return limits.sessionBurst }
    return token.grants?.limits?.burst ?? limits.sessionBurst
  }

  /// Whether the session's credential names the trip that a driver's message is about. Asked for each fix.
  @inline(__always) func names(_ slot: Int, _ trip: Identifier?) -> Bool {
    guard let trip else { return false }
    guard let token = sessions[slot].token else { return true }
    return token.grants?.names(trip: trip) ?? false
  }

  // MARK: Refresh

  /// Swaps the token in place. What the new one no longer opens is given up, with `unsubscribed`, `grant_ended`.
  mutating func refresh(_ slot: Int, _ messageID: MessageID, _ request: Refresh) {
    guard let access, sessions[slot].token != nil else {
      return refuse(slot, messageID, .forbidden, "this session has no token to refresh")
    }
    unitsDone += access.unitsOfCheck
    let claims: Claims
    do throws(TokenError) {
      claims = try access.check(request.token.utf8, now: now.timestamp)
    } catch {
      let refusal = CredentialError(error)
      return refuse(slot, messageID, refusal.code, refusal.text)
    }
    guard claims.subject == sessions[slot].id, claims.role == sessions[slot].role else {
      return refuse(slot, messageID, .forbidden, "the new token is for another sub or role")
    }
    let credential = Credential(claims)
    let grants = sessions[slot].token?.grants
    take(slot, credential)
    tellVehicle(credential)
    armSessionTimer(slot)
    send(.ack(Ack(replyTo: messageID)), to: slot)
    if claims.role != .ops, !claims.grants.opensSame(as: grants) { reviewSubscriptions(slot) }
  }

  /// Loops know channels by number: the hub says their names, and `review` looks whether they are still granted.
  private mutating func reviewSubscriptions(_ slot: Int) {
    guard let credential = sessions[slot].credential else { return }
    let session = reference(sessions[slot].connection)
    let actor = Actor(role: credential.role, id: credential.id)
    fanOut.forEachChannel(of: sessions[slot].subscriptions) { inputs.append(.name(session, actor, $0)) }
  }

  /// Ends a subscription that the session's grants do not cover (any more).
  mutating func review(_ slot: Int, _ channel: ChannelHandle, _ name: Channel, isParty: Bool) {
    if mayKeep(slot, name, isParty: isParty) { return }
    end(slot, channel, name, .grantEnded)
  }

  /// Whether the session may follow a channel that the hub let it have, by the credential that it has now.
  func mayKeep(_ slot: Int, _ channel: Channel, isParty: Bool) -> Bool {
    switch sessions[slot].credential?.grant(for: channel) {
    case .granted, .whileUnclaimed: true
    case .onlyForParties: isParty
    case nil: false
    }
  }

  /// A trip has a driver now. Other drivers that followed it by development's word alone are let go; what a token names
  /// stays open.
  mutating func claimed(_ channel: ChannelHandle, _ name: Channel, by driver: Identifier) {
    for subscriber in fanOut.subscribers(of: channel) {
      let slot = Int(subscriber.connection.slot)
      guard let credential = sessions[slot].credential, credential.grant(for: name) == .whileUnclaimed,
        credential.id != driver
      else { continue }
      end(slot, channel, name, .revoked)
    }
  }

  // MARK: Reload

  /// Takes the newest keys and list, if there are new ones, and ends the sessions whose tokens are on the list.
  mutating func pickUpAccess() {
    let newest = shared.access.generation
    guard newest != accessGeneration else { return }
    accessGeneration = newest
    access = shared.access.current
    for slot in 0..<sessions.endIndex where sessions[slot].phase == .open {
      if let credential = sessions[slot].credential, isRevoked(credential) {
        close(slot, CloseCode(CloseReason.tokenExpired.rawValue), "token revoked")
      }
    }
  }
}
