// Counts of all loops of a server: sessions, connections and requests by address, sessions and watched cells by
// identity, bytes of incomplete input. Each has its limit in Limits.swift; the loop that reaches it notifies the peer.
import HubCore
import HubMessages
import HubSystem
import Synchronization

/// The outcome of an upgrade at the limits of sessions.
enum SessionAdmission {
  case admitted
  /// The hub is at its limit.
  case full
  /// The identity is at its limit.
  case identityFull
}

final class Admissions: Sendable {
  private let addresses: Locked<AddressTable>
  private let openSessions = Atomic<Int>(0)
  private let incompleteBytes = Atomic<Int>(0)
  /// The limit of sessions in total; `Server` derives it from the limit of open files.
  let sessionLimit: Int
  private let incompleteLimit: Int
  private let incompletePerAddress: Int
  private let identities = Identities()
  private let areasPerIdentity: RoleLimits
  fileprivate let queriesPerIdentity: RoleLimits

  init(_ limits: Limits, sessionLimit: Int) {
    addresses = Locked(
      AddressTable(
        idleLimit: limits.idleAddresses,
        rate: AddressTable.Rate(perSecond: limits.requestRate, burst: limits.requestBurst)))
    self.sessionLimit = sessionLimit
    incompleteLimit = limits.incompleteBytes
    incompletePerAddress = max(limits.incompleteBytesPerAddress, limits.messageBytes)
    areasPerIdentity = limits.areasPerIdentity
    queriesPerIdentity = limits.hub.queriesPerIdentity
  }

  // MARK: Addresses

  /// Adds a connection of the address; gives its number of connections.
  func enter(_ key: UInt64, now: Int64) -> Int { addresses.withLock { $0.enter(key, now: now) } }

  func leave(_ key: UInt64, now: Int64) { addresses.withLock { $0.leave(key, now: now) } }

  /// Charges a request of so many units, beside those that are `paid`, to the address; gives the nanoseconds to wait
  /// where it is over the rate.
  func charge(_ key: UInt64, _ units: Int, paid: Int = 0, now: Int64) -> Int64? {
    addresses.withLock { $0.charge(key, Double(units), paid: Double(paid), now: now) }
  }

  /// Charges more work of a request to the address.
  func chargeMore(_ key: UInt64, _ units: Int, now: Int64) {
    addresses.withLock { $0.chargeMore(key, Double(units), now: now) }
  }

  /// The rest of an address's rate.
  func allowance(_ key: UInt64, now: Int64) -> RequestAllowance {
    addresses.withLock { $0.allowance(key, now: now) }
  }

  /// Addresses in the table.
  var addressCount: Int { addresses.withLock { $0.count } }

  // MARK: Sessions

  /// Reserves room for a session; `sessionEnded` releases it if it was admitted.
  func sessionBegins(_ role: HubMessages.Role, _ identity: IdentityKey, limit: Int) -> SessionAdmission {
    guard openSessions.add(1, ordering: .relaxed).newValue <= role.share(of: sessionLimit) else {
      openSessions.subtract(1, ordering: .relaxed)
      return .full
    }
    if identities.with(identity, { $0.begin(identity, limit: limit) }) { return .admitted }
    openSessions.subtract(1, ordering: .relaxed)
    return .identityFull
  }

  /// `cells`: the number that the session watched.
  func sessionEnded(_ identity: IdentityKey, cells: Int) {
    openSessions.subtract(1, ordering: .relaxed)
    identities.with(identity) { $0.end(identity, cells: cells) }
  }

  /// Keeps what a session leaves of its rate for the identity's next one.
  func keep(_ leftover: Leftover, of identity: IdentityKey, now: Int64) {
    identities.with(identity) { $0.keep(leftover, of: identity, now: now) }
  }

  /// What another session of the identity has left of its rate; nil for all of it.
  func takeLeftover(of identity: IdentityKey, now: Int64) -> TokenBucket? {
    identities.with(identity) { $0.takeLeftover(of: identity, now: now) }
  }

  /// How many sessions an id has open, in each role that has any.
  func openSessions(of id: Identifier) -> [HubMessages.Role: Int] {
    var counts: [HubMessages.Role: Int] = [:]
    for role in HubMessages.Role.allCases {
      let identity = IdentityKey(role, id)
      let count = identities.with(identity) { $0.sessions(of: identity) }
      if count > 0 { counts[role] = count }
    }
    return counts
  }

  /// Counts so many more (or fewer) watched cells; false, without a change, above the identity's limit.
  func watches(_ role: HubMessages.Role, _ identity: IdentityKey, more: Int) -> Bool {
    identities.with(identity) { $0.watch(identity, more: more, limit: areasPerIdentity[role]) }
  }

  /// Whether an identity may watch so many more cells.
  func mayWatch(_ role: HubMessages.Role, _ identity: IdentityKey, more: Int) -> Bool {
    identities.with(identity) { $0.cells(of: identity) } + more <= areasPerIdentity[role]
  }

  /// Begins a question; false where the identity has `limit` of them. Where true, `answered` follows.
  fileprivate func asks(_ identity: IdentityKey, atMost limit: Int) -> Bool {
    identities.with(identity) { $0.ask(identity, limit: limit) }
  }

  fileprivate func answered(_ identity: IdentityKey) { identities.with(identity) { $0.answered(identity) } }

  /// Identities with a session.
  var identityCount: Int { identities.count }

  // MARK: Incomplete input

  /// Counts so many more (or fewer) kept bytes of a connection from an address (0: not counted); false above the limit
  /// of all together, or of that address.
  func keeps(_ more: Int, of address: UInt64, now: Int64) -> Bool {
    let all = incompleteBytes.add(more, ordering: .relaxed).newValue
    let ofAddress = address == 0 ? 0 : addresses.withLock { $0.keep(more, of: address, now: now) }
    return more <= 0 || all <= incompleteLimit && ofAddress <= incompletePerAddress
  }

  var incomplete: Int { incompleteBytes.load(ordering: .relaxed) }
}

/// A question of an identity, which counts as under way until this object is freed.
final class QuestionReservation: Sendable {
  private let identity: IdentityKey
  private let admissions: Admissions

  /// Nil where the identity has `limit` questions under way, or as many as its role may.
  init?(of asker: Credential, atMost limit: Int = .max, in admissions: Admissions) {
    let identity = IdentityKey(asker)
    guard admissions.asks(identity, atMost: min(limit, admissions.queriesPerIdentity[asker.role])) else { return nil }
    (self.identity, self.admissions) = (identity, admissions)
  }

  /// For a request without a token, by its address. Nil where the address has `limit` questions under way.
  init?(ofAddress key: UInt64, atMost limit: Int, in admissions: Admissions) {
    let identity = IdentityKey(address: key)
    guard admissions.asks(identity, atMost: limit) else { return nil }
    (self.identity, self.admissions) = (identity, admissions)
  }

  deinit { admissions.answered(identity) }
}
