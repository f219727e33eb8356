// From an upgrade to a session: for drivers the hub's word comes before the answer goes out.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport
import HubWebSocket

extension SessionLoop {
  mutating func beginUpgrade(
    _ slot: Int, _ exchange: Exchange, _ request: HTTPRequest, _ upgrade: Upgrade
  ) throws(Refusal) {
    try admission.beginSession(slot, from: exchange.peer, request, upgrade.credential, now: now.uptime)
    guard upgrade.credential.role == .driver else { return open(slot, exchange, upgrade, nil) }
    // A driver has one session: the hub decides before the upgrade is answered.
    exchange.state = .admitting(request, upgrade)
    inputs.append(
      .driverConnecting(reference(sessions[slot].connection), upgrade.credential.id, client: upgrade.client))
  }

  /// A newer session of the driver has taken over. A client that came again after it was told so gets 1000 in place of
  /// 4409: it connects again on every other code.
  mutating func closeReplaced(_ slot: Int, isRepeated: Bool) {
    guard isRepeated else { return close(slot, .replaced) }
    close(slot, .normal, "\(CloseReason.replaced.text)")
  }

  /// The hub admits the driver, and says how often it should send.
  mutating func admit(_ slot: Int, _ sampling: Connected.Sampling) {
    guard let exchange = sessions[slot].exchange, let upgrade = exchange.upgrade else { return }
    open(slot, exchange, upgrade, sampling)
    reconcileInput(slot)
  }

  /// The hub does not: too many sessions of this driver, or of all drivers.
  mutating func refuseDriver(_ session: SessionRef, _ refusal: Refusal) {
    guard let slot = slot(of: session), let exchange = sessions[slot].exchange,
      case .admitting(let request, let upgrade) = exchange.state
    else { return }
    admission.dismissSession(slot, from: exchange.peer, upgrade.credential, now: now.uptime)
    finish(slot, exchange, request, .failure(refusal))
  }

  /// Answers with 101 and `connected`, in one write, and handles what came right behind the request.
  private mutating func open(_ slot: Int, _ exchange: Exchange, _ upgrade: Upgrade, _ sampling: Connected.Sampling?) {
    let connection = sessions[slot].connection
    let start = loop.arena.count
    upgrade.handshake.write(into: &loop.arena, subprotocols: UpgradeEndpoint.subprotocols)
    loop.send(start..<loop.arena.count, to: connection)
    counters.count(status: 101)

    let agreed = upgrade.handshake.compression
    let rights = SessionRights(
      upgrade.credential, expires: upgrade.credential.sessionEnd(by: access, now: now.timestamp))
    exchange.state = .over
    sessions[slot].beginSession(
      OpenSession(
        rights: rights, form: upgrade.form, encoding: fanOut.open(slot, upgrade.form, agreed),
        pacing: Pacing(rights.rate(limits), now: now.uptime)),
      allowsCompression: agreed != nil)
    if upgrade.form == .binary { counters.binarySessions += 1 }
    if agreed != nil { counters.compressedSessionsOpened += 1 }
    counters.sessions[Int(upgrade.credential.role.rawValue)] += 1
    counters.sessionsOpened += 1
    sendConnected(slot, upgrade.credential, sampling)
    tellVehicle(upgrade.credential)
    if shared.log.level == .debug { logOpened(connection, upgrade.credential) }
    armSessionTimer(slot)
    if upgrade.credential.isRevoked(by: access) {  // while the hub was asked
      return closeRevoked(slot)
    }

    guard exchange.input.count > 0 else { return }
    exchange.input.withMutableBytes { receivedFrames(slot, $0) }
  }

  private func logOpened(_ connection: ConnectionID, _ credential: Credential) {
    shared.log(
      .debug, "session_opened",
      ["session": "\(sessionID(connection))", "role": "\(credential.role.name)", "id": "\(credential.id)"])
  }

  private mutating func sendConnected(_ slot: Int, _ credential: Credential, _ sampling: Connected.Sampling?) {
    let connected = Connected(
      sessionID: sessionID(sessions[slot].connection), role: credential.role, id: credential.id,
      heartbeatInterval: configuration.heartbeatInterval, serverTime: now.timestamp,
      limits: Connected.Limits(
        maxMessageBytes: limits.messageBytes, maxBatch: LocationBatch.maximumCount,
        rate: sessions[slot].open.rights.rate(limits).units),
      sampling: sampling)
    send(.connected(connected), to: slot)
  }

  /// Names a session in logs and support cases: loop, slot and generation.
  func sessionID(_ connection: ConnectionID) -> InlineText {
    InlineText("s\(index)-\(connection.slot)-\(connection.generation)") ?? InlineText()
  }
}
