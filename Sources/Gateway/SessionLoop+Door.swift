// Who comes in: connections by address, requests by address and rate, web pages by their origin, and what is only for
// those who operate the hub.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport

/// By which address each connection of a loop is counted; 0 where it is not. Beside the sessions' table, for where no
/// limit holds (loopback, by default) it has no entry at all.
struct CountedAddresses {
  private var keys: [UInt64] = []

  subscript(slot: Int) -> UInt64 { slot < keys.count ? keys[slot] : 0 }

  mutating func set(_ slot: Int, _ key: UInt64) {
    if slot >= keys.count {
      if key == 0 { return }
      keys.append(contentsOf: repeatElement(0, count: slot + 1 - keys.count))
    }
    keys[slot] = key
  }
}

extension SessionLoop {
  // MARK: Connections

  /// Counts a new connection for its address. Over the limit it is let in to be told so; where many of those hang
  /// about, it is cut off.
  mutating func countConnection(_ slot: Int, _ exchange: Exchange) {
    guard !exchange.isAdmin, !exchange.isFromProxy else { return }
    let count = enterAddress(slot, exchange.peer)
    guard count > limits.connectionsPerAddress else { return }
    exchange.isOverAddressLimit = true
    counters.count(.connectionsPerAddress)
    if count > limits.connectionsPerAddress + limits.refusalsPerAddress {
      loop.abort(sessions[slot].connection, reset: true)
    }
  }

  func isTrustedProxy(_ peer: SocketAddress) -> Bool {
    configuration.trustedProxies.contains { $0.contains(peer) }
  }

  /// What an address is counted by; nil where a limit does not hold for it.
  private func limitedKey(_ address: SocketAddress, onLoopback: Bool) -> UInt64? {
    guard onLoopback || !address.isLoopback else { return nil }
    // ::1 has 0, which means "not counted". Nothing else can have 1: ::/8 is reserved (RFC 4291 §2.4).
    return max(1, address.limitKey)
  }

  /// Counts a connection for an address; gives how many that has now, 0 where nobody counts.
  private mutating func enterAddress(_ slot: Int, _ address: SocketAddress) -> Int {
    guard limits.connectionsPerAddress > 0,
      let key = limitedKey(address, onLoopback: limits.countsLoopbackConnections)
    else { return 0 }
    leaveAddress(slot)
    countedAddresses.set(slot, key)
    return shared.admissions.enter(key, now: now.uptime)
  }

  mutating func leaveAddress(_ slot: Int) {
    let key = countedAddresses[slot]
    guard key != 0 else { return }
    countedAddresses.set(slot, 0)
    shared.admissions.leave(key, now: now.uptime)
  }

  // MARK: Requests

  /// What is looked at before a request is; false where it has been answered.
  mutating func admitRequest(_ slot: Int, _ exchange: Exchange, _ request: RequestHead) -> Bool {
    if exchange.isOverAddressLimit {
      exchange.keepsAlive = false
      refuseAddress(slot, exchange)
      return false
    }
    guard isWithinRate(slot, exchange, request) else { return false }
    switch configuration.origins.verdict(on: request.fields) {
    case .noOrigin: return true
    case .allowed(let origin):
      exchange.origin = origin
      return true
    case .refused:
      counters.originsRefused += 1
      respond(
        slot, exchange, .forbidden, .forbidden,
        "pages of this origin may not use this hub; its operator can allow them with --allow-origin")
      return false
    }
  }

  private mutating func refuseAddress(_ slot: Int, _ exchange: Exchange) {
    respond(
      slot, exchange, .tooManyRequests, .rateLimited,
      "this address has more than \(limits.connectionsPerAddress) connections",
      retryAfter: Int(limits.retryAfterSeconds))
  }

  private mutating func isWithinRate(_ slot: Int, _ exchange: Exchange, _ request: RequestHead) -> Bool {
    exchange.rateKey = 0
    guard limits.requestRate > 0, !exchange.isAdmin,
      let key = limitedKey(clientAddress(exchange, request), onLoopback: limits.countsLoopbackRequests)
    else { return true }
    exchange.rateKey = key
    let units = WorkUnits.of(bytes: exchange.body.count)
    guard let wait = shared.admissions.charge(key, units, now: now.uptime) else { return true }
    counters.count(.requestRate)
    // To ask on costs a new connection. A proxy's is shared by others, who are within their rate.
    if !exchange.isFromProxy { exchange.keepsAlive = false }
    respond(
      slot, exchange, .tooManyRequests, .rateLimited,
      "more than \(limits.requestRate) requests a second of one address, large bodies counted as many",
      retryAfter: Int(wait / 1_000_000_000) + 1)
    return false
  }

  /// Charges a request's address for what was found in its body, beyond what its bytes were charged for.
  mutating func charge(_ exchange: Exchange, fixes: Int = 0, positions: Int = 0) {
    let bytes = exchange.body.count
    let more = WorkUnits.of(bytes: bytes, fixes: fixes, positions: positions) - WorkUnits.of(bytes: bytes)
    unitsDone += more
    guard exchange.rateKey != 0, more > 0 else { return }
    shared.admissions.chargeMore(exchange.rateKey, more, now: now.uptime)
  }

  func clientAddress(_ exchange: Exchange, _ request: RequestHead) -> SocketAddress {
    guard exchange.isFromProxy else { return exchange.peer }
    return client(exchange, request).address
  }

  private func client(_ exchange: Exchange, _ request: RequestHead) -> ClientAddress {
    ClientAddress(of: request.fields, peer: exchange.peer, trusted: configuration.trustedProxies)
  }

  // MARK: Sessions

  /// Room for a session: in total, for its identity, and for the client's address where a proxy speaks for it. False
  /// where it has been refused.
  mutating func admitSession(
    _ slot: Int, _ exchange: Exchange, _ request: RequestHead, _ credential: Credential
  ) -> Bool {
    if exchange.isFromProxy {
      let count = enterAddress(slot, clientAddress(exchange, request))
      if count > limits.connectionsPerAddress {
        leaveAddress(slot)
        counters.count(.connectionsPerAddress)
        counters.handshakesRefused += 1
        refuseAddress(slot, exchange)
        return false
      }
    }
    let role = credential.role
    switch shared.admissions.sessionBegins(role, IdentityKey(credential)) {
    case .admitted: return true
    case .full:
      counters.count(.sessions)
      refuseSession(slot, exchange, .serviceUnavailable, "this hub has as many sessions as it may")
    case .identityFull:
      counters.count(.sessionsPerIdentity)
      refuseSession(
        slot, exchange, .tooManyRequests,
        "one \(role.name) has at most \(limits.sessionsPerIdentity[role]) sessions (max-sessions-per-\(role.name))")
    }
    return false
  }

  private mutating func refuseSession(_ slot: Int, _ exchange: Exchange, _ status: Status, _ message: String) {
    leaveProxied(slot, exchange)
    counters.handshakesRefused += 1
    respond(slot, exchange, status, .rateLimited, message, retryAfter: Int(limits.retryAfterSeconds))
  }

  /// Gives back what `admitSession` took, for a driver that the hub did not admit.
  mutating func dismissSession(_ slot: Int, _ exchange: Exchange) {
    leaveSession(slot)
    leaveProxied(slot, exchange)
  }

  /// A session that was admitted is over, whether it was open or not yet.
  mutating func leaveSession(_ slot: Int) {
    guard let credential = sessions[slot].credential ?? sessions[slot].exchange?.upgrade?.credential else { return }
    shared.admissions.sessionEnded(IdentityKey(credential), cells: fanOut.cellCount(slot))
  }

  private mutating func leaveProxied(_ slot: Int, _ exchange: Exchange) {
    if exchange.isFromProxy { leaveAddress(slot) }
  }

  // MARK: Web pages

  /// The CORS protocol's question before a request that a page may not send unasked (Fetch standard, "CORS-preflight").
  func isPreflight(_ exchange: Exchange, _ request: RequestHead) -> Bool {
    request.method == .options && exchange.origin != nil && request.fields["access-control-request-method"] != nil
  }

  mutating func answerPreflight(_ slot: Int, _ exchange: Exchange, _ endpoint: Endpoint) {
    respond(
      slot, exchange,
      Response(
        .noContent,
        fields: [
          OutgoingField("Access-Control-Allow-Methods", endpoint.allowedMethods),
          OutgoingField("Access-Control-Allow-Headers", "Authorization, Content-Type"),
          OutgoingField("Access-Control-Max-Age", "3600"),
        ]))
  }

  /// What a browser must be told before its page may read an answer.
  func corsFields(_ exchange: Exchange) -> [OutgoingField] {
    var fields: [OutgoingField] = []
    if let origin = exchange.origin {
      fields.append(OutgoingField("Access-Control-Allow-Origin", origin))
      fields.append(OutgoingField("Access-Control-Expose-Headers", "Retry-After"))
    }
    // Also where no origin was sent: a cache may not give that answer to a page (Fetch standard, "CORS protocol and
    // HTTP caches").
    if exchange.origin != nil || !configuration.origins.isEmpty { fields.append(OutgoingField("Vary", "Origin")) }
    return fields
  }

  // MARK: Operators

  /// Whether the metrics may be seen: without a credential on the admin port, or from this machine where there is no
  /// admin port, both only under an allowed host; or by ops. False where it has been refused.
  mutating func admitOperator(_ slot: Int, _ exchange: Exchange, _ request: RequestHead) -> Bool {
    let needsNone =
      exchange.isAdmin || configuration.adminPort == nil && client(exchange, request).isThisMachine
    let own = exchange.isAdmin ? configuration.adminHost : nil
    if needsNone, configuration.hosts.allows(request.fields, own: own) { return true }
    do throws(CredentialError) {
      if try credential(of: request, exchange).role == .ops { return true }
    } catch {
      let text = "without a credential metrics are shown only where \(CredentialError.hosts)"
      refuse(slot, exchange, needsNone ? CredentialError(text: text) : error)
      return false
    }
    respond(slot, exchange, .forbidden, .forbidden, "only ops may see this")
    return false
  }
}
