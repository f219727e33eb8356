// Which fixes of a driver are on stable storage, in a few numbers: for a pong's `storedThrough`, and for the driver's
// record in a snapshot. They are in a table of their own, which stays empty without a journal.
//
// Fixes keep coming while earlier ones are being stored, so one number for each would grow. Two marks are kept: the
// awaited one, and the newest behind it. When the first is stored the second becomes the awaited one, so the answer is
// at most one commit behind. Only fixes that came while nothing could be stored are listed one by one, until they come
// again. An example: fixes up to 12:00:05 are stored, one of 12:00:07 is in the record with ticket 7, and the newest,
// of 12:00:09, in the one with ticket 9:
//
//     … 12:00:05 storedThrough │ 12:00:07 firstPending, ticket 7 │ 12:00:09 newestPending, ticket 9
//
// When ticket 7 is stored, storedThrough becomes 12:00:07, and firstPending 12:00:09 with ticket 9. A fix of 12:00:03
// that comes late, in the record with ticket 8, is oldestLate: until it is stored, the answer is just before 12:00:03.
import HubMessages

struct StorageMarks: ~Copyable {
  /// Up to which of its fixes everything is stored when records up to `ticket` are.
  struct Mark: BitwiseCopyable {
    var milliseconds: Int64
    var ticket: UInt64

    static var none: Mark { Mark(milliseconds: .min, ticket: 0) }
  }

  /// The marks of one driver, in a cache line.
  struct Row: BitwiseCopyable {
    /// All is stored up to here, but for late fixes and those without a record.
    var storedThrough = Int64.min
    /// The record that is awaited, with its newest fix.
    var firstPending = Mark.none
    /// The newest record behind that, with its newest fix.
    var newestPending = Mark.none
    /// The oldest unstored fix behind stored ones, and the record that it waits for.
    var oldestLate = Mark(milliseconds: .max, ticket: 0)
    /// From here on there may be more fixes without a record than `unrecorded` has room for.
    var unlistedFrom = Int64.max

    mutating func reconcile(_ ticket: UInt64) {
      if firstPending.ticket > 0, firstPending.ticket <= ticket {
        storedThrough = firstPending.milliseconds
        firstPending = newestPending
        newestPending = .none
        if firstPending.ticket > 0, firstPending.ticket <= ticket {
          storedThrough = firstPending.milliseconds
          firstPending = .none
        }
      }
    }
  }

  private var rows: PagedSlab<Row>
  var unrecorded = UnrecordedFixes()

  /// Has room for `drivers` drivers; their rows are allocated later, 1,024 at a time.
  init(drivers: Int) { rows = PagedSlab(limit: drivers, pageShift: 10, filler: Row()) }

  @inline(__always)
  private mutating func makeRoom(for driver: Int) { if driver >= rows.count { rows.grow(to: driver + 1) } }

  /// Notes the record of a published fix.
  @inline(__always)
  mutating func published(_ time: Timestamp, _ driver: Int, ticket: UInt64, storedThrough: UInt64) {
    makeRoom(for: driver)
    rows[driver].reconcile(storedThrough)
    let mark = Mark(milliseconds: time.milliseconds, ticket: ticket)
    if rows[driver].firstPending.ticket == 0 || rows[driver].firstPending.ticket == ticket {
      rows[driver].firstPending = mark
    } else {
      rows[driver].newestPending = mark
    }
  }

  /// Notes the record of an unpublished fix, which may be older than what is stored.
  mutating func unpublished(_ time: Timestamp, _ driver: Int, ticket: UInt64, storedThrough: UInt64) {
    makeRoom(for: driver)
    if rows[driver].oldestLate.ticket <= storedThrough { rows[driver].oldestLate.milliseconds = .max }
    rows[driver].oldestLate.milliseconds = min(rows[driver].oldestLate.milliseconds, time.milliseconds)
    rows[driver].oldestLate.ticket = max(rows[driver].oldestLate.ticket, ticket)
  }

  /// Notes an accepted fix that could not be recorded; false without room for its time. Then no fix of this time or
  /// later counts as stored while the hub runs.
  mutating func noteUnrecorded(_ time: Timestamp, _ driver: Int, hasRoom: Bool) -> Bool {
    makeRoom(for: driver)
    if unrecorded.contains(time, driver) { return true }
    guard hasRoom else {
      rows[driver].unlistedFrom = min(rows[driver].unlistedFrom, time.milliseconds)
      return false
    }
    unrecorded.insert(time, driver)
    return true
  }

  /// Whether a fix of this time may have been accepted without a record.
  func mayLackRecord(_ time: Timestamp, _ driver: Int) -> Bool {
    driver < rows.count && time.milliseconds >= rows[driver].unlistedFrom || unrecorded.contains(time, driver)
  }

  /// The timestamp up to which all fixes that came are stored; nil where none is.
  mutating func storedThrough(_ ticket: UInt64, _ driver: Int) -> Timestamp? {
    guard driver < rows.count else { return nil }
    rows[driver].reconcile(ticket)
    if rows[driver].oldestLate.ticket <= ticket { rows[driver].oldestLate.milliseconds = .max }
    let first = min(
      rows[driver].oldestLate.milliseconds, unrecorded.first(of: driver) ?? .max, rows[driver].unlistedFrom)
    let timestamp = Timestamp(milliseconds: min(rows[driver].storedThrough, first == .max ? .max : first - 1))
    return Timestamp.accepted.contains(timestamp) ? timestamp : nil
  }

  /// Restores a driver's newest fix.
  mutating func restore(newest: Timestamp, _ driver: Int) {
    makeRoom(for: driver)
    rows[driver].storedThrough = newest.milliseconds
  }

  /// Clears the row of a driver that is forgotten, for the next with its index.
  mutating func forget(_ driver: Int) {
    if driver < rows.count { rows[driver] = Row() }
    unrecorded.forget(driver)
  }
}

/// Times (ms, ascending) of fixes that were accepted without a record while storage was full, and have not come again.
/// They are kept one by one because only the sender can repeat them, and a repetition between two of them says nothing
/// about the others.
struct UnrecordedFixes {
  private var times: [Int: [Int64]] = [:]
  /// The number of unrecorded fixes of all drivers.
  private(set) var count = 0

  func count(of driver: Int) -> Int { times[driver]?.count ?? 0 }
  func first(of driver: Int) -> Int64? { times[driver]?.first }
  func contains(_ time: Timestamp, _ driver: Int) -> Bool {
    times[driver]?.containsAscending(time.milliseconds) ?? false
  }

  /// Precondition: it is not in the list. O(n) for n of this driver.
  mutating func insert(_ time: Timestamp, _ driver: Int) {
    let index = times[driver, default: []].lowerBound(time.milliseconds)
    times[driver, default: []].insert(time.milliseconds, at: index)
    count += 1
  }

  mutating func remove(_ time: Timestamp, _ driver: Int) {
    guard contains(time, driver), let index = times[driver]?.lowerBound(time.milliseconds) else { return }
    times[driver]?.remove(at: index)
    if times[driver]?.isEmpty == true { times[driver] = nil }
    count -= 1
  }

  mutating func forget(_ driver: Int) {
    count -= count(of: driver)
    times[driver] = nil
  }
}
