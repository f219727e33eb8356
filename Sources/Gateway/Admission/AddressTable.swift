// Open connections and request rate of each client address: shared by all loops, since one client's connections are on
// any of them. It is locked when a connection opens or closes and for an HTTP request, never for a message.
//
// It is bounded: an address in use has connections or incomplete input, which have limits of their own; of the others
// the table keeps a limited number, until their bucket is full again.
import HubHTTP
import HubTransport
import Synchronization

/// The rest of an address's rate, in units of work.
struct RequestAllowance {
  var limit: Int
  var left: Int
  var secondsUntilFull: Int

  /// The fields that inform clients before they are refused (draft-ietf-httpapi-ratelimit-headers-03).
  var fields: [OutgoingField] {
    [
      OutgoingField("RateLimit-Limit", "\(limit)"), OutgoingField("RateLimit-Remaining", "\(left)"),
      OutgoingField("RateLimit-Reset", "\(secondsUntilFull)"),
    ]
  }
}

/// Connections and requests by address. IPv6 counts by /64 (`SocketAddress.limitKey`).
struct AddressTable: Sendable {
  private struct Entry {
    var connections: Int32 = 0
    /// Bytes of its incomplete input. A client behind a trusted proxy may have some, but no connection of its own.
    var kept = 0
    var bucket: TokenBucket

    var isInUse: Bool { connections > 0 || kept > 0 }
  }

  /// The rate of one address.
  struct Rate: Sendable {
    var perSecond: Double
    var burst: Double
  }

  private var entries: [UInt64: Entry] = [:]
  /// The limit of entries that are not in use.
  private let idleLimit: Int
  private let rate: Rate
  /// Entries in use.
  private(set) var active = 0

  init(idleLimit: Int, rate: Rate) {
    self.idleLimit = idleLimit
    self.rate = rate
  }

  var count: Int { entries.count }

  /// Adds a connection; gives the address's number of connections.
  mutating func enter(_ key: UInt64, now: Int64) -> Int {
    use(key, now) { entry in
      entry.connections += 1
      return Int(entry.connections)
    }
  }

  /// Removes a connection.
  mutating func leave(_ key: UInt64, now: Int64) {
    guard let entry = entries[key], entry.connections > 0 else { return }
    use(key, now) { $0.connections -= 1 }
  }

  /// Counts so many more (or fewer) bytes of incomplete input of the address; gives those of all its input.
  mutating func keep(_ more: Int, of key: UInt64, now: Int64) -> Int {
    use(key, now) { entry in
      entry.kept = max(0, entry.kept + more)
      return entry.kept
    }
  }

  /// Changes what an address uses.
  private mutating func use<R>(_ key: UInt64, _ now: Int64, _ change: (inout Entry) -> R) -> R {
    let (result, before, after) = withEntry(key, now) { entry in
      let before = entry.isInUse
      return (change(&entry), before, entry.isInUse)
    }
    if before != after { active += after ? 1 : -1 }
    if !after, let index = entries.index(forKey: key), isForgettable(&entries.values[index], now) {
      entries.remove(at: index)
    }
    sweep(now)
    return result
  }

  /// Charges a request of so many units, beside those that are `paid`; nil when it is within the rate, else the
  /// nanoseconds to wait. More than a full bucket is within the rate when the bucket is full.
  mutating func charge(_ key: UInt64, _ units: Double = 1, paid: Double = 0, now: Int64) -> Int64? {
    guard rate.perSecond > 0 else { return nil }
    let rate = rate
    let wait: Int64 = withEntry(key, now) { entry in
      if entry.bucket.chargeIfLevel(units, paid: paid, rate: rate.perSecond, burst: rate.burst, now: now) { return 0 }
      return max(1, entry.bucket.nanosecondsUntil(has: units, rate: rate.perSecond, burst: rate.burst, now: now))
    }
    sweep(now)
    return wait == 0 ? nil : wait
  }

  /// Charges an accepted request for more work.
  mutating func chargeMore(_ key: UInt64, _ units: Double, now: Int64) {
    guard rate.perSecond > 0 else { return }
    let rate = rate
    withEntry(key, now) { _ = $0.bucket.charge(units, rate: rate.perSecond, burst: rate.burst, now: now) }
    sweep(now)
  }

  /// The rest of the address's rate, and the seconds until it is full.
  mutating func allowance(_ key: UInt64, now: Int64) -> RequestAllowance {
    let rate = rate
    let left = withEntry(key, now) { $0.bucket.level(rate: rate.perSecond, burst: rate.burst, now: now) }
    let missing = rate.perSecond > 0 ? (rate.burst - left) / rate.perSecond : 0
    return RequestAllowance(
      limit: Int(rate.burst), left: max(0, Int(left)), secondsUntilFull: Int(min(missing, 86_400).rounded(.up)))
  }

  private mutating func withEntry<R>(_ key: UInt64, _ now: Int64, _ body: (inout Entry) -> R) -> R {
    body(&entries[key, default: Entry(bucket: TokenBucket(burst: rate.burst, now: now))])
  }

  private func isForgettable(_ entry: inout Entry, _ now: Int64) -> Bool {
    !entry.isInUse
      && (rate.perSecond == 0
        || entry.bucket.nanosecondsUntilFull(rate: rate.perSecond, burst: rate.burst, now: now) == 0)
  }

  /// Above the limit, removes entries with a full bucket and, if that does not suffice, all that are not in use, which
  /// get a new bucket. So a sweep of n entries comes once for at least n / 2 new ones.
  private mutating func sweep(_ now: Int64) {
    guard entries.count - active > idleLimit else { return }
    entries = entries.filter { _, entry in
      var entry = entry
      return !isForgettable(&entry, now)
    }
    if entries.count - active > idleLimit / 2 { entries = entries.filter { $0.value.isInUse } }
  }
}
