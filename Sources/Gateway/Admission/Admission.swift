// Who comes in at one loop: connections by address, and sessions. What all loops count together is in Admissions, what
// is asked of a request in HTTPContext.
import HubCore
import HubHTTP
import HubMessages
import HubTransport

/// What one loop has let in.
struct Admission {
  /// What becomes of a new connection.
  enum Verdict {
    case admitted
    /// Its address has too many: it is let in to be told so.
    case isOverLimit
    /// Many of those hang about: it is cut off.
    case cutOff
  }

  private let admissions: Admissions
  private var limits: Limits
  private var trustedProxies: [AddressBlock]
  private var countedAddresses = CountedAddresses()

  init(_ configuration: ServerConfiguration, _ admissions: Admissions) {
    self.admissions = admissions
    limits = configuration.limits
    trustedProxies = configuration.trustedProxies
  }

  /// New settings: who is in stays.
  mutating func take(_ configuration: ServerConfiguration) {
    limits = configuration.limits
    trustedProxies = configuration.trustedProxies
  }

  // MARK: Connections

  /// `isAdmin`: it came to the admin port.
  func peer(_ address: SocketAddress, isAdmin: Bool) -> HTTPPeer {
    // A trusted proxy is believed when it says who the client is.
    HTTPPeer(address: address, isAdmin: isAdmin, isProxy: trustedProxies.contains { $0.contains(address) })
  }

  /// Counts a new connection for its address.
  mutating func enter(_ slot: Int, from peer: HTTPPeer, now: Int64) -> Verdict {
    guard !peer.isAdmin, !peer.isProxy else { return .admitted }
    let count = count(slot, for: peer.address, now: now)
    guard count > limits.connectionsPerAddress else { return .admitted }
    return count > limits.connectionsPerAddress + limits.refusalsPerAddress ? .cutOff : .isOverLimit
  }

  /// The connection is gone.
  mutating func leave(_ slot: Int, now: Int64) {
    let key = countedAddresses[slot]
    guard key != 0 else { return }
    countedAddresses.set(slot, 0)
    admissions.leave(key, now: now)
  }

  /// Counts a connection for an address; gives how many that has now, 0 where nobody counts.
  private mutating func count(_ slot: Int, for address: SocketAddress, now: Int64) -> Int {
    guard limits.connectionsPerAddress > 0,
      let key = address.countedKey(onLoopback: limits.countsLoopbackConnections)
    else { return 0 }
    leave(slot, now: now)
    countedAddresses.set(slot, key)
    return admissions.enter(key, now: now)
  }

  // MARK: Sessions

  /// Takes room for a session: in total, for its identity, and for the client's address where a proxy speaks for it.
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
    // The hub is asked about a driver's newcomer: it says whether the driver replaces its session too often (409).
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

  /// Gives back what `beginSession` took, for a driver that the hub did not admit.
  mutating func dismissSession(_ slot: Int, from peer: HTTPPeer, _ credential: Credential, now: Int64) {
    endSession(of: credential, cells: 0)
    if peer.isProxy { leave(slot, now: now) }
  }

  /// A session that was admitted is over; it watched so many cells.
  func endSession(of credential: Credential, cells: Int) {
    admissions.sessionEnded(IdentityKey(credential), cells: cells)
  }
}

/// By which address each connection of a loop is counted; 0 where it is not. Beside the sessions' table, for where no
/// limit holds (loopback, by default) it has no entry at all.
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
