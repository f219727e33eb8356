// Which fixes of a driver are on stable storage, in a few numbers: for a pong's `storedThrough`, and for the driver's
// record in a snapshot.
//
// Fixes keep coming while earlier ones are being stored, so one number for each would grow. Two marks are kept: the
// awaited one, and the newest behind it. When the first is stored the second becomes the awaited one, so the answer is
// at most one commit behind. Only fixes that came while nothing could be stored are listed one by one, until they come
// again.
import HubMessages

struct DriverStorage {
  /// Up to which of its fixes everything is stored when records up to `ticket` are.
  private struct Mark {
    var milliseconds: Int64
    var ticket: UInt64

    static var none: Mark { Mark(milliseconds: .min, ticket: 0) }
  }

  /// The newest published fix that has a record.
  private(set) var newest: Timestamp?
  /// The journal has a record of this driver.
  var isKnown = false
  /// `driver_offline` was published, and no `driver_online` since. Also without a journal.
  var isOffline = false
  /// The interval in its newest record of fixes (`StoredTracking.sendingInterval`), in seconds.
  var sendingInterval: UInt16 = 0
  /// When that fix, or else the driver's last message, came by the hub's wall clock.
  var heard = Timestamp(milliseconds: 0)
  /// Stored up to here, but for the gap.
  private var stored = Int64.min
  private var waiting = Mark.none
  private var behind = Mark.none
  /// The oldest unstored fix behind stored ones, and the record that it waits for.
  private var gap = Mark(milliseconds: .max, ticket: 0)
  /// Times (ms, ascending) of fixes that were accepted without a record while storage was full, and have not come
  /// again. They are kept one by one because only the sender can repeat them, and a repetition between two of them says
  /// nothing about the others.
  private(set) var missed: [Int64] = []
  /// From here on there may be more of them than `missed` has room for.
  private var missedFrom = Int64.max

  /// Notes the record of a published fix.
  mutating func published(_ time: Timestamp, ticket: UInt64, storedThrough: UInt64) {
    newest = time
    reconcile(storedThrough)
    if waiting.ticket == 0 || waiting.ticket == ticket {
      waiting = Mark(milliseconds: time.milliseconds, ticket: ticket)
    } else {
      behind = Mark(milliseconds: time.milliseconds, ticket: ticket)
    }
  }

  /// Notes the record of an unpublished fix, which may be older than what is stored.
  mutating func unpublished(_ time: Timestamp, ticket: UInt64, storedThrough: UInt64) {
    if gap.ticket <= storedThrough { gap.milliseconds = .max }
    gap.milliseconds = min(gap.milliseconds, time.milliseconds)
    gap.ticket = max(gap.ticket, ticket)
  }

  /// Notes an accepted fix that could not be recorded. Without room for its time, nothing from it on counts as stored
  /// while the hub runs. True where it uses room.
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

  /// Notes a fix's record: true where it had been missed.
  mutating func find(_ time: Timestamp) -> Bool {
    let index = missed.lowerBound(time.milliseconds)
    guard index < missed.count, missed[index] == time.milliseconds else { return false }
    missed.remove(at: index)
    return true
  }

  /// Whether the newest fix, of this time, may have been accepted without a record.
  func hasNoRecord(ofPublished time: Timestamp) -> Bool {
    if time.milliseconds >= missedFrom || missed.containsAscending(time.milliseconds) { return true }
    return newest.map { time > $0 } ?? true
  }

  /// The timestamp up to which all fixes that came are stored; nil where none is.
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

  /// Notes a record of the driver's fixes or another message that came at `time`.
  mutating func note(heard time: Timestamp, hasPublished: Bool) {
    isKnown = true
    if hasPublished || newest == nil { heard = time }
  }

  /// Notes that `driver_offline` is published, and recorded where there is a journal.
  mutating func goOffline(at time: Timestamp, isStored: Bool) {
    isOffline = true
    guard isStored else { return }
    if !isKnown { heard = time }
    isKnown = true
  }

  /// Restores its newest fix.
  mutating func restore(newest: Timestamp) {
    self.newest = newest
    stored = newest.milliseconds
  }
  /// `heard` in this hub's uptime (ns). Where the wall clock was set back no time has passed.
  func uptimeHeard(at now: Moment) -> Int64 {
    let passed = now.timestamp.milliseconds - heard.milliseconds
    return now.uptime - min(max(passed, 0), 1 << 40) * 1_000_000
  }
}
