// What a driver's fixes are on stable storage, in a few numbers for each driver: for a pong's `storedThrough`, and for the
// driver's record in a snapshot.
//
// Fixes go on coming while earlier ones are on their way to the disk, and one number for each fix would grow. So two marks
// are kept: the one that is waited for, and the newest behind it. When the first is stored the second takes its place;
// what is told is at most one commit behind.
import Messages

struct DriverStorage {
  /// Through which of its fixes everything is stored when records up to `ticket` are.
  private struct Mark {
    var milliseconds: Int64
    var ticket: UInt64

    static var none: Mark { Mark(milliseconds: .min, ticket: 0) }
  }

  /// The journal has something of this driver.
  var isKnown = false
  /// The newest fix that was published and has its record.
  private(set) var newest: Timestamp?
  /// When that fix came, or else the driver's word, by the hub's wall clock.
  var heard = Timestamp(milliseconds: 0)
  /// Stored through here, but for the gap.
  private var stored = Int64.min
  private var waiting = Mark.none
  private var behind = Mark.none
  /// The oldest fix that is not stored though newer ones may be, and with which records it will be.
  private var gap = Mark(milliseconds: .max, ticket: 0)
  /// The gap's ticket where something in it was not recorded, for want of room: only its sender can mend that.
  private static var never: UInt64 { .max }

  /// A published fix has its record.
  mutating func published(_ time: Timestamp, ticket: UInt64, storedThrough: UInt64) {
    newest = time
    settle(storedThrough)
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

  /// A fix was taken in that could not be recorded.
  mutating func missed(_ time: Timestamp, storedThrough: UInt64) {
    unpublished(time, ticket: Self.never, storedThrough: storedThrough)
  }

  /// Something was taken in without a record, and has not come again.
  var hasMissed: Bool { gap.ticket == Self.never }

  /// Whether the newest fix, which is of this time, may have been taken in without a record.
  func hasNoRecord(ofPublished time: Timestamp) -> Bool {
    if gap.ticket == Self.never, time.milliseconds >= gap.milliseconds { return true }
    return newest.map { time > $0 } ?? true
  }

  /// The sender has sent all of its fixes from `first` to `last` again, and they are recorded, as it does with those newer
  /// than `storedThrough`.
  mutating func repeated(from first: Timestamp, through last: Timestamp, ticket: UInt64) {
    guard gap.ticket == Self.never, first.milliseconds <= gap.milliseconds, last.milliseconds >= gap.milliseconds
    else { return }
    if let newest = newest, last < newest {
      gap.milliseconds = last.milliseconds + 1
    } else {
      gap.ticket = ticket
    }
  }

  /// The timestamp through which all fixes that came are stored; nil where none is.
  mutating func storedThrough(_ ticket: UInt64) -> Timestamp? {
    settle(ticket)
    if gap.ticket <= ticket { gap.milliseconds = .max }
    let through = min(stored, gap.milliseconds == .max ? .max : gap.milliseconds - 1)
    let timestamp = Timestamp(milliseconds: through)
    return Timestamp.accepted.contains(timestamp) ? timestamp : nil
  }

  private mutating func settle(_ ticket: UInt64) {
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

  /// As it was read back.
  mutating func restore(newest: Timestamp?, heard: Timestamp) {
    isKnown = true
    self.heard = heard
    guard let newest else { return }
    self.newest = newest
    stored = newest.milliseconds
  }
}
