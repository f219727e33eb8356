// What each identity (`sub` and role) has open: shared by all loops, since one rider's sessions are on any of them. It
// is locked when a session begins and ends, and when a view of the map changes; never for a position.
//
// It is bounded: only identities with a session or an awaited answer have an entry and, for up to a minute, those with
// ended sessions whose rate is not full again: one for each session that they had at once. What identities hold in the
// hub's own tables (queries, trips) the hub counts.
import HubBytes
import HubCore
import HubMessages
import HubSystem
import Synchronization

/// A hash of an identity with a key of this process, so that nobody can choose to collide with another. Two of a
/// million collide once in 37 million runs.
struct IdentityKey: Hashable, Sendable {
  let hash: UInt64

  init(_ role: HubMessages.Role, _ id: Identifier) {
    // Seeded for each process, and SipHash: as a dictionary protects itself from hostile keys.
    var hasher = Hasher()
    hasher.combine(role.rawValue)
    hasher.combine(id.text.count)
    for word in 0..<(id.text.count + 7) / 8 { hasher.combine(id.text.word(word)) }
    hash = UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// The identity of a client without a token, by the key of its address.
  init(address key: UInt64) {
    var hasher = Hasher()
    hasher.combine(key)
    hash = UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// The identity of a credential. All holders of one maker's shares, also of ended shares, are one identity; else one
  /// rider could have any number of them.
  init(_ credential: Credential) {
    let length = TripShare.prefix.utf8.count + TripShare.makerLength
    let maker = credential.isShare ? Identifier(String(credential.id.description.prefix(length))) : nil
    self.init(credential.role, maker ?? credential.id)
  }
}

/// Sessions, watched cells, and questions (to the journal's past, for feeds of vehicles, for images of the map), by
/// identity: only of those that have any. Each is counted by itself, since most have one session and nothing else.
struct IdentityTable: Sendable {
  private typealias Counts = [IdentityKey: UInt32]

  private var sessions: Counts = [:]
  private var cells: Counts = [:]
  private var questions: Counts = [:]
  /// What ended sessions have left of their rates. New ones begin with it; else reconnecting would give a full rate.
  private var leftovers: [IdentityKey: [Leftover]] = [:]
  /// The number of identities with leftovers at which those that are over are removed.
  private var sweepsAt = 64

  var count: Int {
    sessions.count + questions.keys.count { sessions[$0] == nil }
      + cells.keys.count { sessions[$0] == nil && questions[$0] == nil }
  }

  /// The number of an identity's open sessions.
  func sessions(of key: IdentityKey) -> Int { Int(sessions[key] ?? 0) }

  /// The number of cells that an identity watches.
  func cells(of key: IdentityKey) -> Int { Int(cells[key] ?? 0) }

  /// Begins a session; false at the identity's `limit`.
  mutating func begin(_ key: IdentityKey, limit: Int) -> Bool { Self.add(1, to: &sessions, key, limit: limit) }

  /// Ends a session that watched so many cells.
  mutating func end(_ key: IdentityKey, cells count: Int) {
    _ = Self.add(-1, to: &sessions, key)
    _ = Self.add(-count, to: &cells, key)
  }

  /// Keeps what an ended session has left of its rate.
  mutating func keep(_ leftover: Leftover, of key: IdentityKey, now: Int64) {
    leftovers[key, default: []].append(leftover)
    guard leftovers.count >= sweepsAt else { return }
    leftovers = leftovers.filter { $0.value.contains { $0.end > now } }
    sweepsAt = max(64, 2 * leftovers.count)
  }

  /// Takes the leftover that was kept last; nil where none is kept.
  mutating func takeLeftover(of key: IdentityKey, now: Int64) -> TokenBucket? {
    guard var kept = leftovers[key] else { return nil }
    kept.removeAll { $0.end <= now }
    let last = kept.popLast()
    leftovers[key] = kept.isEmpty ? nil : kept
    return last?.bucket
  }

  var leftoverCount: Int { leftovers.values.reduce(0) { $0 + $1.count } }

  /// Begins a question; false at the identity's `limit`.
  mutating func ask(_ key: IdentityKey, limit: Int) -> Bool { Self.add(1, to: &questions, key, limit: limit) }

  /// Ends a question.
  mutating func answered(_ key: IdentityKey) { _ = Self.add(-1, to: &questions, key) }

  /// Counts so many more, or fewer, watched cells; false, without a change, above the identity's `limit`.
  mutating func watch(_ key: IdentityKey, more: Int, limit: Int) -> Bool {
    precondition(sessions[key] != nil, "who watches has a session")
    return Self.add(more, to: &cells, key, limit: limit)
  }

  private static func add(_ more: Int, to counts: inout Counts, _ key: IdentityKey, limit: Int = .max) -> Bool {
    if more == 0 { return true }
    let count = Int(counts[key] ?? 0) + more
    precondition(count >= 0, "what never began has ended")
    guard more < 0 || count <= limit else { return false }
    counts[key] = count == 0 ? nil : UInt32(count)
    return true
  }
}

/// The tables of all identities, a part of them behind each lock: growing one copies it and blocks only its part.
final class Identities: Sendable {
  private static let parts = 64

  private let tables: [Locked<IdentityTable>]

  init() { tables = (0..<Self.parts).map { _ in Locked(IdentityTable()) } }

  /// Calls `body` with the table that has the identity, which is locked meanwhile.
  func with<R>(_ key: IdentityKey, _ body: (inout IdentityTable) -> R) -> R {
    tables[Int(key.hash % UInt64(Self.parts))].withLock(body)
  }

  var count: Int { tables.reduce(0) { $0 + $1.withLock { $0.count } } }

  /// Rates that ended sessions have left.
  var leftoverCount: Int { tables.reduce(0) { $0 + $1.withLock { $0.leftoverCount } } }
}
