// What all loops of a server count together: sessions, connections and requests by address, sessions and watched cells
// by identity, bytes of input that is not complete. Each number has its limit in Limits.swift; the loop that reaches it
// tells the peer.
import HubCore
import HubMessages
import HubSystem
import Synchronization

/// What becomes of an upgrade at the limits of sessions.
enum SessionAdmission {
  case admitted
  /// The hub has no room for one more.
  case full
  /// The identity has as many as it may.
  case identityFull
}

final class Admissions: Sendable {
  private let addresses: Locked<AddressTable>
  private let openSessions = Atomic<Int>(0)
  private let incompleteBytes = Atomic<Int>(0)
  /// Sessions in total; nobody knows it better than `Server`, which knows the limit of open files.
  let sessionLimit: Int
  private let incompleteLimit: Int
  private let identities = Identities()
  private let areasPerIdentity: RoleLimits
  private let queriesPerIdentity: RoleLimits

  init(_ limits: Limits, sessionLimit: Int) {
    addresses = Locked(
      AddressTable(
        idleLimit: limits.idleAddresses,
        rate: AddressTable.Rate(perSecond: limits.requestRate, burst: limits.requestBurst)))
    self.sessionLimit = sessionLimit
    incompleteLimit = limits.incompleteBytes
    areasPerIdentity = limits.areasPerIdentity
    queriesPerIdentity = limits.hub.queriesPerIdentity
  }

  // MARK: Addresses

  /// A connection of the address comes; gives how many it has now.
  func enter(_ key: UInt64, now: Int64) -> Int { addresses.withLock { $0.enter(key, now: now) } }

  func leave(_ key: UInt64, now: Int64) { addresses.withLock { $0.leave(key, now: now) } }

  /// A request of the address, of so many units of work; the nanoseconds that it should wait where it is over the rate.
  func charge(_ key: UInt64, _ units: Int, now: Int64) -> Int64? {
    addresses.withLock { $0.charge(key, Double(units), now: now) }
  }

  /// More work that a request of the address has brought.
  func chargeMore(_ key: UInt64, _ units: Int, now: Int64) {
    addresses.withLock { $0.chargeMore(key, Double(units), now: now) }
  }

  /// What an address may still ask for.
  func allowance(_ key: UInt64, now: Int64) -> RequestAllowance {
    addresses.withLock { $0.allowance(key, now: now) }
  }

  /// Addresses in the table.
  var addressCount: Int { addresses.withLock { $0.count } }

  // MARK: Sessions

  /// Room for one more session, which `sessionEnded` gives back where it was admitted.
  func sessionBegins(_ role: HubMessages.Role, _ identity: IdentityKey, limit: Int) -> SessionAdmission {
    guard openSessions.add(1, ordering: .relaxed).newValue <= role.share(of: sessionLimit) else {
      openSessions.subtract(1, ordering: .relaxed)
      return .full
    }
    if identities.begin(identity, limit: limit) { return .admitted }
    openSessions.subtract(1, ordering: .relaxed)
    return .identityFull
  }

  /// `cells`: what the session watched.
  func sessionEnded(_ identity: IdentityKey, cells: Int) {
    openSessions.subtract(1, ordering: .relaxed)
    identities.end(identity, cells: cells)
  }

  /// How many sessions an id has open, in each role that has any.
  func openSessions(of id: Identifier) -> [HubMessages.Role: Int] {
    var counts: [HubMessages.Role: Int] = [:]
    for role in HubMessages.Role.allCases {
      let count = identities.sessions(of: IdentityKey(role, id))
      if count > 0 { counts[role] = count }
    }
    return counts
  }

  /// A session watches so many cells more (or fewer); false, and nothing has changed, where its identity may not.
  func watches(_ role: HubMessages.Role, _ identity: IdentityKey, more: Int) -> Bool {
    identities.watch(identity, more: more, limit: areasPerIdentity[role])
  }

  /// Somebody asks for the journal's past; false where its identity has as many questions under way as it may. Where
  /// true, `answered` follows.
  func asks(_ role: HubMessages.Role, _ identity: IdentityKey) -> Bool {
    identities.ask(identity, limit: queriesPerIdentity[role])
  }

  func answered(_ identity: IdentityKey) { identities.answered(identity) }

  var sessionCount: Int { openSessions.load(ordering: .relaxed) }
  /// Identities with a session.
  var identityCount: Int { identities.count }

  // MARK: Incomplete input

  /// Notes that a connection keeps so many bytes more (or fewer); false where that passes the limit of all together.
  func keeps(_ more: Int) -> Bool {
    let all = incompleteBytes.add(more, ordering: .relaxed).newValue
    return more <= 0 || all <= incompleteLimit
  }

  var incomplete: Int { incompleteBytes.load(ordering: .relaxed) }
}
