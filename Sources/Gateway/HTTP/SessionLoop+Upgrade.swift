// From an upgrade to a session: for drivers the hub's word comes before the answer goes out.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTransport

extension SessionLoop {
  mutating func beginUpgrade(_ upgrade: Upgrade, of request: HTTPRequest, _ exchange: Exchange) throws(Refusal) {
    try admission.beginSession(exchange.slot, from: exchange.peer, request, upgrade.credential, now: now.uptime)
    guard upgrade.credential.role == .driver else { return open(upgrade, exchange) }
    // A driver has one session: the hub decides before the upgrade is answered.
    exchange.state = .admitting(request, upgrade)
    inputs.append(.driverConnecting(reference(exchange.connection), upgrade.credential.id, client: upgrade.client))
  }

  /// The hub admits the driver, and says how often it should send.
  mutating func admit(_ slot: Int, _ sampling: Connected.Sampling) {
    guard let exchange = sessions[slot].exchange, let upgrade = exchange.upgrade else { return }
    open(upgrade, exchange, sampling)
    reconcileInput(slot)
  }

  /// The hub does not: too many sessions of this driver, or of all drivers.
  mutating func refuseDriver(_ session: SessionRef, _ status: Status, _ message: String, _ retryAfter: Double) {
    guard let slot = slot(of: session), let exchange = sessions[slot].exchange,
      case .admitting(let request, let upgrade) = exchange.state
    else { return }
    admission.dismissSession(slot, from: exchange.peer, upgrade.credential, now: now.uptime)
    let refusal = Refusal(.rateLimited, message, status: status, retryAfter: Int(retryAfter.rounded(.up))) {
      $0.handshakesRefused += 1
    }
    finish(.failure(refusal), to: request, exchange)
  }

  /// Answers with 101 and `connected`, in one write, and handles what came right behind the request.
  private mutating func open(_ upgrade: Upgrade, _ exchange: Exchange, _ sampling: Connected.Sampling? = nil) {
    let (slot, credential, agreed) = (exchange.slot, upgrade.credential, upgrade.handshake.compression)
    loop.send(to: exchange.connection) {
      upgrade.handshake.write(into: &$0, subprotocols: UpgradeEndpoint.subprotocols)
    }
    counters.count(status: 101)
    let rights = SessionRights(credential, expires: credential.sessionEnd(by: access, now: now.timestamp))
    let rate = rights.rate(usualRate)
    exchange.state = .over
    sessions[slot].beginSession(
      OpenSession(
        rights: rights, form: upgrade.form, encoding: fanOut.open(slot, upgrade.form, agreed),
        pacing: Pacing(rate, now: now.uptime)),
      allowsCompression: agreed != nil)
    counters.sessionOpened(credential.role, upgrade.form, isCompressed: agreed != nil)
    let id = reference(exchange.connection).name
    send(.connected(upgrade.connected(id, rate: rate.units, sampling, configuration, now: now.timestamp)), to: slot)
    tellVehicle(credential)
    if shared.log.level == .debug {
      shared.log(
        .debug, "session_opened",
        ["session": "\(id)", "role": "\(credential.role.name)", "id": "\(credential.id)"])
    }
    armSessionTimer(slot)
    if credential.isRevoked(by: access) { return closeRevoked(slot) }  // while the hub was asked
    if !exchange.input.isEmpty { exchange.input.withMutableBytes { receivedFrames(slot, $0) } }
  }
}
