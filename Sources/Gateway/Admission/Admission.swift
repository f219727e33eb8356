// Admission at one loop: connections by address, and sessions. Counts of all loops are in Admissions, checks of
// requests in HTTPContext.
import HubCore
import HubHTTP
import HubMessages
import HubTransport

/// What one loop has admitted.
struct Admission {
  /// The outcome for a new connection.
  enum Verdict {
    case admitted
    /// Its address has too many: it is admitted to get a refusal.
    case isOverLimit
    /// Its address has too many that wait for a refusal, or is over its rate of requests: it is reset.
    case cutOff
  }

  private let admissions: Admissions
  private let hasTLS: Bool
  private var limits: Limits
  private var trustedProxies: [AddressBlock]
  private var countedAddresses = CountedAddresses()

  init(_ configuration: ServerConfiguration, _ admissions: Admissions) {
    self.admissions = admissions
    hasTLS = configuration.tls != nil
    limits = configuration.limits
    trustedProxies = configuration.trustedProxies
  }

  /// Takes new settings; existing connections stay.
  mutating func take(_ configuration: ServerConfiguration) {
    limits = configuration.limits
    trustedProxies = configuration.trustedProxies
  }

  // MARK: Connections

  /// The key of the address for which a connection's incomplete input counts; 0 where it is not counted. `request`: the
  /// one whose body is being read; behind a trusted proxy it states the client.
  func address(_ slot: Int, reading request: HTTPRequest?) -> UInt64 {
    let key = countedAddresses[slot]
    guard key == 0, limits.connectionsPerAddress > 0, let request, request.peer.isProxy else { return key }
    return request.clientAddress(trusted: trustedProxies).countedKey(onLoopback: limits.countsLoopbackConnections) ?? 0
  }

  /// `isAdmin`: it came to the admin port.
  func peer(_ address: SocketAddress, isAdmin: Bool) -> HTTPPeer {
    // A trusted proxy states who the client is.
    HTTPPeer(address: address, isAdmin: isAdmin, isProxy: trustedProxies.contains { $0.contains(address) })
  }

  /// Counts a new connection for its address. With TLS its handshake is charged as a request.
  mutating func enter(_ slot: Int, from peer: HTTPPeer, _ counters: inout LoopCounters, now: Int64) -> Verdict {
    guard !peer.isAdmin, !peer.isProxy else { return .admitted }
    if hasTLS, let key = peer.address.countedKey(onLoopback: limits.countsLoopbackRequests),
      admissions.charge(key, 1, now: now) != nil
    {
      counters.count(.requestRate)
      return .cutOff
    }
    let count = count(slot, for: peer.address, now: now)
    guard count > limits.connectionsPerAddress else { return .admitted }
    counters.count(.connectionsPerAddress)
    return count > limits.connectionsPerAddress + limits.refusalsPerAddress ? .cutOff : .isOverLimit
  }

  /// Counts a closed connection.
  mutating func leave(_ slot: Int, now: Int64) {
    let key = countedAddresses[slot]
    guard key != 0 else { return }
    countedAddresses.set(slot, 0)
    admissions.leave(key, now: now)
  }

  /// Counts a connection for an address; gives that address's number of connections, 0 where it has no limit.
  private mutating func count(_ slot: Int, for address: SocketAddress, now: Int64) -> Int {
    guard limits.connectionsPerAddress > 0,
      let key = address.countedKey(onLoopback: limits.countsLoopbackConnections)
    else { return 0 }
    leave(slot, now: now)
    countedAddresses.set(slot, key)
    return admissions.enter(key, now: now)
  }

  // MARK: Sessions

  /// Reserves room for a session: in total, for its identity, and for the client's address behind a proxy.
  mutating func beginSession(
    _ slot: Int, from peer: HTTPPeer, _ request: HTTPRequest, _ credential: Credential, now: Int64
  ) throws(Refusal) {
    if peer.isProxy {
      let count = count(slot, for: request.clientAddress(trusted: trustedProxies), now: now)
      if count > limits.connectionsPerAddress {
        leave(slot, now: now)
        throw Refusal.tooManyConnections(limits) {
          $0.handshakesRefused += 1
          $0.count(.connectionsPerAddress)
        }
      }
    }
    let role = credential.role
    let most = credential.isShare ? limits.sessionsPerSharer : limits.sessionsPerIdentity[role]
    // For a driver the hub decides, which knows whether its sessions are replaced too often (409).
    let limit = most + (role == .driver ? 1 : 0)
    let outcome = admissions.sessionBegins(role, IdentityKey(credential), limit: limit)
    if outcome != .admitted, peer.isProxy { leave(slot, now: now) }
    switch outcome {
    case .admitted: return
    case .full:
      throw refusal(.serviceUnavailable, "this hub has as many sessions as it may", .sessions)
    case .identityFull:
      let message =
        credential.isShare
        ? "the links that one rider shares have at most \(most) sessions together"
        : "one \(role.name) has at most \(most) sessions (max-sessions-per-\(role.name))"
      throw refusal(.tooManyRequests, message, .sessionsPerIdentity)
    }
  }

  private func refusal(_ status: Status, _ message: String, _ limit: LimitHit) -> Refusal {
    Refusal(.rateLimited, message, status: status, retryAfter: Int(limits.retryAfterSeconds)) {
      $0.handshakesRefused += 1
      $0.count(limit)
    }
  }

  /// Releases what `beginSession` reserved, for a driver that the hub did not admit.
  mutating func dismissSession(_ slot: Int, from peer: HTTPPeer, _ credential: Credential, now: Int64) {
    admissions.sessionEnded(IdentityKey(credential), cells: 0)
    if peer.isProxy { leave(slot, now: now) }
  }

  /// The pace of a new session, which begins with what another one of its identity has left.
  func pacing(of credential: Credential, _ rate: Pacing.Rate, now: Int64) -> Pacing {
    guard rate.units > 0 else { return Pacing(rate, now: now) }
    return Pacing(rate, admissions.takeLeftover(of: IdentityKey(credential), now: now), now: now)
  }

  /// Ends a session that is open, or was admitted, and watched so many cells; keeps what it leaves of its rate.
  func end(_ session: inout Session, of credential: Credential, cells: Int, _ usual: Pacing.Rate, now: Int64) {
    admissions.sessionEnded(IdentityKey(credential), cells: cells)
    guard session.phase == .open else { return }
    let rate = session.open.rights.rate(usual)
    guard let leftover = session.open.pacing.leftover(rate, now: now) else { return }
    admissions.keep(leftover, of: IdentityKey(credential), now: now)
  }
}

/// The address by which each connection of a loop is counted; 0 where it is not. Apart from the sessions' table, since
/// it is empty where no limit applies (loopback, by default).
private struct CountedAddresses {
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
