// What a driver's fixes are on stable storage, in a few numbers for each driver: for a pong's `storedThrough`, and for
// the driver's record in a snapshot.
//
// Fixes go on coming while earlier ones are on their way to the disk, and one number for each fix would grow. So two
// marks are kept: the one that is waited for, and the newest behind it. When the first is stored the second takes its
// place; what is told is at most one commit behind. Only of fixes that came while nothing could be stored each has its
// time here, until it comes again.
import HubMessages

struct DriverStorage {
  /// Through which of its fixes everything is stored when records up to `ticket` are.
  private struct Mark {
    var milliseconds: Int64
    var ticket: UInt64

    static var none: Mark { Mark(milliseconds: .min, ticket: 0) }
  }

  /// The newest fix that was published and has its record.
  private(set) var newest: Timestamp?
  /// The journal has something of this driver.
  var isKnown = false
  /// It was said that the driver is offline, and not that it is back. Without a journal as well.
  var isOffline = false
  /// How often the driver sends, as its newest record of fixes says (`StoredTracking.sendingInterval`).
  var sendingInterval: UInt16 = 0
  /// When that fix came, or else the driver's word, by the hub's wall clock.
  var heard = Timestamp(milliseconds: 0)
  /// Stored through here, but for the gap.
  private var stored = Int64.min
  private var waiting = Mark.none
  private var behind = Mark.none
  /// The oldest fix that is not stored though newer ones may be, and with which records it will be.
  private var gap = Mark(milliseconds: .max, ticket: 0)
  /// Times (ms, ascending) of fixes that were taken in without a record, for want of room, and have not come again:
  /// only their sender can mend that. One by one, because what comes again between two of them says nothing of the
  /// others.
  private(set) var missed: [Int64] = []
  /// From here on there may be more of them than have a place in `missed`.
  private var missedFrom = Int64.max

  /// A published fix has its record.
  mutating func published(_ time: Timestamp, ticket: UInt64, storedThrough: UInt64) {
    newest = time
    reconcile(storedThrough)
    if waiting.ticket == 0 || waiting.ticket == ticket {
      waiting = Mark(milliseconds: time.milliseconds, ticket: ticket)
    } else {
      behind = Mark(milliseconds: time.milliseconds, ticket: ticket)
    }
  }

  /// A fix that was not published has its record: it may be older than what is stored.
  mutating func unpublished(_ time: Timestamp, ticket: UInt64, storedThrough: UInt64) {
    if gap.ticket <= storedThrough { gap.milliseconds = .max }
    gap.milliseconds = min(gap.milliseconds, time.milliseconds)
    gap.ticket = max(gap.ticket, ticket)
  }

  /// A fix was taken in that could not be recorded. Where there is no room for its time, nothing from it on counts as
  /// stored for as long as the hub runs. True where it takes a place.
  mutating func miss(_ time: Timestamp, hasRoom: Bool) -> Bool {
    let value = time.milliseconds
    let index = missed.lowerBound(value)
    if index < missed.count, missed[index] == value { return false }
    guard hasRoom else {
      missedFrom = min(missedFrom, value)
      return false
    }
    missed.insert(value, at: index)
    return true
  }

  /// A fix has its record: true where it had been missed.
  mutating func find(_ time: Timestamp) -> Bool {
    let index = missed.lowerBound(time.milliseconds)
    guard index < missed.count, missed[index] == time.milliseconds else { return false }
    missed.remove(at: index)
    return true
  }

  /// Whether the newest fix, which is of this time, may have been taken in without a record.
  func hasNoRecord(ofPublished time: Timestamp) -> Bool {
    if time.milliseconds >= missedFrom || missed.containsAscending(time.milliseconds) { return true }
    return newest.map { time > $0 } ?? true
  }

  /// The timestamp through which all fixes that came are stored; nil where none is.
  mutating func storedThrough(_ ticket: UInt64) -> Timestamp? {
    reconcile(ticket)
    if gap.ticket <= ticket { gap.milliseconds = .max }
    let first = min(gap.milliseconds, missed.first ?? .max, missedFrom)
    let timestamp = Timestamp(milliseconds: min(stored, first == .max ? .max : first - 1))
    return Timestamp.accepted.contains(timestamp) ? timestamp : nil
  }

  private mutating func reconcile(_ ticket: UInt64) {
    if waiting.ticket > 0, waiting.ticket <= ticket {
      stored = waiting.milliseconds
      waiting = behind
      behind = .none
      if waiting.ticket > 0, waiting.ticket <= ticket {
        stored = waiting.milliseconds
        waiting = .none
      }
    }
  }

  /// A message's fixes, or another word of the driver, have a record. They came at `time`.
  mutating func note(heard time: Timestamp, hasPublished: Bool) {
    isKnown = true
    if hasPublished || newest == nil { heard = time }
  }

  /// It is said that the driver is offline, and there is a record of it where there is a journal.
  mutating func goOffline(at time: Timestamp, isStored: Bool) {
    isOffline = true
    guard isStored else { return }
    if !isKnown { heard = time }
    isKnown = true
  }

  /// Its newest fix, as it was read back.
  mutating func restore(newest: Timestamp) {
    self.newest = newest
    stored = newest.milliseconds
  }
  /// When `heard` was by this hub's uptime. Where the wall clock was set back no time has passed.
  func uptimeHeard(at now: Moment) -> Int64 {
    let passed = now.timestamp.milliseconds - heard.milliseconds
    return now.uptime - min(max(passed, 0), 1 << 40) * 1_000_000
  }
}
