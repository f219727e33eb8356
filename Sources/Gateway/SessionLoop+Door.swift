// Who comes in: connections by address, and sessions. (Requests: HTTPContext.swift.)
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
    guard !exchange.peer.isAdmin, !exchange.peer.isProxy else { return }
    let count = enterAddress(slot, exchange.peer.address)
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

  /// Counts a connection for an address; gives how many that has now, 0 where nobody counts.
  private mutating func enterAddress(_ slot: Int, _ address: SocketAddress) -> Int {
    guard limits.connectionsPerAddress > 0,
      let key = address.countedKey(onLoopback: limits.countsLoopbackConnections)
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

  // MARK: Sessions

  /// Takes room for a session: in total, for its identity, and for the client's address where a proxy speaks for it.
  mutating func admitSession(
    _ slot: Int, _ exchange: Exchange, _ request: HTTPRequest, _ credential: Credential
  ) throws(Refusal) {
    if exchange.peer.isProxy {
      let count = enterAddress(slot, request.clientAddress(trusted: configuration.trustedProxies))
      if count > limits.connectionsPerAddress {
        leaveAddress(slot)
        var refusal = Refusal.tooManyConnections(limits)
        refusal.kind = .upgrade
        refusal.limit = .connectionsPerAddress
        throw refusal
      }
    }
    let role = credential.role
    var refusal: Refusal
    let retryAfter = Int(limits.retryAfterSeconds)
    switch shared.admissions.sessionBegins(role, IdentityKey(credential)) {
    case .admitted: return
    case .full:
      refusal = .upgrade(
        .serviceUnavailable, "this hub has as many sessions as it may", retryAfter: retryAfter)
      refusal.limit = .sessions
    case .identityFull:
      let most = limits.sessionsPerIdentity[role]
      refusal = .upgrade(
        .tooManyRequests, "one \(role.name) has at most \(most) sessions (max-sessions-per-\(role.name))",
        retryAfter: retryAfter)
      refusal.limit = .sessionsPerIdentity
    }
    leaveProxied(slot, exchange)
    throw refusal
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
    if exchange.peer.isProxy { leaveAddress(slot) }
  }
}
