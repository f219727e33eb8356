// Deadlines of the hub: a bucket of entries for each second. Entries are never cancelled: when one is due the hub
// checks whether the record still exists and the reason still holds, and arms it again if it is too early.

struct Deadlines {
  enum Kind: UInt8 {
    /// A driver may have become stale.
    case driverStaleness
    /// A driver's `driver_offline` could not be stored, and may still be due.
    case lateOffline
    /// An offline driver may have been shown long enough.
    case driverAbsence
    /// A driver may be forgotten.
    case driverRetention
    /// An older session of a driver may be due for its notice that it was replaced.
    case replacedSession
    /// A trip may have been abandoned.
    case tripSilence
    /// An ended trip's grace or retention may be over.
    case trip
    /// A family of tokens, or a revocation, may have ended.
    case tokenFamily, revocation
    /// The grace of a used refresh token may be over.
    case tokenGrace
    /// A driver's time to answer an offer may be over.
    case offers
  }

  struct Entry {
    var kind: Kind
    var handle: Handle
  }

  private var buckets: [Int64: [Entry]] = [:]
  private var lastSecond: Int64
  /// The entries of the second taken last, and how many of them were given.
  private var due: [Entry] = []
  private var index = 0
  private(set) var count = 0

  /// Whether an entry may be due. Called in each turn.
  @inline(__always)
  func mayBeDue(at uptime: Int64) -> Bool { index < due.count || uptime >= (lastSecond &+ 1) &* 1_000_000_000 }

  init(uptime: Int64) { lastSecond = uptime / 1_000_000_000 }

  /// Arms an entry for the first full second after `uptime` (ns). O(1).
  mutating func arm(_ kind: Kind, _ handle: Handle, at uptime: Int64) {
    let second = max(uptime / 1_000_000_000 + 1, lastSecond + 1)
    buckets[second, default: []].append(Entry(kind: kind, handle: handle))
    count += 1
  }

  /// Takes the next entry that is due; nil when there is none left. O(1), and O(1) for each second that passed.
  mutating func next(uptime: Int64) -> Entry? {
    if index == due.count {
      if uptime / 1_000_000_000 <= lastSecond { return nil }
      due = takeNextSecond(uptime: uptime)
      index = 0
      if due.isEmpty { return nil }
    }
    index += 1
    count -= 1
    return due[index - 1]
  }

  /// The entries of the next second that has any and is over; empty when there is none.
  private mutating func takeNextSecond(uptime: Int64) -> [Entry] {
    let now = uptime / 1_000_000_000
    // After a long pause: skip seconds without entries.
    if now - lastSecond > Int64(buckets.count) * 4 + 64 {
      guard let first = buckets.keys.filter({ $0 <= now }).min() else {
        lastSecond = now
        return []
      }
      lastSecond = first - 1
    }
    while lastSecond < now {
      lastSecond += 1
      if let due = buckets.removeValue(forKey: lastSecond) { return due }
    }
    return []
  }
}
