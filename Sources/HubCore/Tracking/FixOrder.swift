// Where a fix belongs in time: in front of the filter, which only ever sees fixes in order.
//
// The rules are the contract's ("Fixes in time"). Phones are wrong about the time, and traces are replayed, so how
// old a timestamp is by the hub's clock says nothing. But one fix with a clock far ahead would make history of all
// that follow and silence the driver; so a leap ahead waits until a second fix says the same.
//
// Two things more, for what that rule alone gets wrong:
// - Leaps of which each is far ahead of the one before confirm each other when there are three in a row: a drive with a
//   fix every quarter of an hour, replayed fast, is nothing but leaps. What it then goes on with is no leap any more,
//   up to `strides` times as far.
// - A clock that was ahead, and agreed with itself for two fixes or for an hour, may be set right: then all that comes is
//   history. Where such fixes come in step with the hub's clock for half a minute, while none comes that is newer, the
//   newest was wrong, and time goes on from them. A backlog comes faster than it was recorded, and never does that.

/// The order of one driver's fixes by their own timestamps. At most 112 bytes, no allocation.
struct FixOrder: Sendable, Equatable {
  /// What to do with a fix.
  enum Placement: Equatable {
    /// Newer than all before it.
    case next
    /// It confirms the leap of `held`, which comes first; both are in order.
    case confirms(held: TrackMeasurement)
    /// A leap ahead; the next fix decides.
    case held
    /// The newest was wrong: the track begins anew with this one, which is older.
    case restarts
    /// Older than the newest.
    case history
    /// The same millisecond as the newest, or as the one held back.
    case duplicate
  }

  /// Leaps in a row, each ahead of the one before, that confirm each other.
  static let leapsInARow: UInt8 = 3
  /// How many times as far as the step before, ahead of the hub's clock, is no leap.
  static let strides: Int64 = 4
  /// Milliseconds for which fixes far behind the newest must come in step with the hub's clock, how many there must be,
  /// how long the longest pause between them, and how far out of step they may be.
  static let restartAfter: Int64 = 30_000
  static let restartFixes: UInt16 = 4
  static let restartPause: Int64 = 60_000
  static let restartSlack: Int64 = 5000

  /// The timestamp of the newest fix in order, or nil before the first.
  private(set) var newest: Int64?
  /// When that one came, in nanoseconds of the hub's uptime.
  private var newestReceived: Int64 = 0
  private(set) var held: TrackMeasurement?
  private var heldReceived: Int64 = 0
  /// How much further than the hub's clock the newest was ahead of the fix before it, in milliseconds.
  private var stride: Int64 = 0
  /// The fixes behind the newest that came in step with the hub's clock: the first, the last, and how many.
  private var behindFirst: Int64 = 0
  private var behindFirstReceived: Int64 = 0
  private var behindLast: Int64 = 0
  private var behindCount: UInt16 = 0
  private var leaps: UInt8 = 0
  /// How many held fixes were dropped: the next one did not confirm them, or their place was refused. Wraps.
  private(set) var dropped: UInt32 = 0

  init() {}

  /// One whose newest fix came at `uptime`.
  init(newest: Int64, receivedAt uptime: Int64) {
    self.newest = newest
    newestReceived = uptime
  }

  /// Places a fix that came at `uptime` (nanoseconds, monotonic). A fix that is history or a duplicate says nothing
  /// about a held one, which goes on waiting; any other that does not confirm it drops it. O(1).
  ///
  /// A driver's first fix has none before it to leap from: it counts as a leap where it is further ahead of `hubClock`
  /// (Unix milliseconds, where the caller has one) than a leap may be. How far it is behind says nothing.
  mutating func place(
    _ fix: TrackMeasurement, receivedAt uptime: Int64, hubClock: Int64?, leapMilliseconds: Int64
  ) -> Placement {
    let time = fix.milliseconds
    if let newest {
      if time == newest { return .duplicate }
      if time < newest { return behind(time, newest: newest, receivedAt: uptime, leapMilliseconds) }
    }
    if held?.milliseconds == time { return .duplicate }
    behindCount = 0
    let leap = max(leapMilliseconds, stride * FixOrder.strides)
    if let held {
      let step = FixOrder.excess(from: held.milliseconds, heldReceived, to: time, uptime)
      self.held = nil
      let isNext = time > held.milliseconds
      leaps = isNext ? leaps + 1 : 1
      if isNext, step <= leap || leaps >= FixOrder.leapsInARow {
        advance(to: time, receivedAt: uptime, stride: step)
        return .confirms(held: held)
      }
      countDropped()
    }
    let step = newest.map { FixOrder.excess(from: $0, newestReceived, to: time, uptime) }
    if let ahead = step ?? hubClock.map({ time &- $0 }), ahead > leap {
      held = fix
      heldReceived = uptime
      leaps = max(leaps, 1)
      return .held
    }
    advance(to: time, receivedAt: uptime, stride: step ?? 0)
    return .next
  }

  mutating func countDropped() { dropped &+= 1 }

  private mutating func advance(to time: Int64, receivedAt uptime: Int64, stride: Int64) {
    newest = time
    newestReceived = uptime
    // A day at most, so that four of them do not overflow.
    self.stride = min(max(stride, 0), 86_400_000)
    leaps = 0
  }

  /// A fix that is older than the newest: history, unless it is one of those that show that the newest was wrong.
  private mutating func behind(
    _ time: Int64, newest: Int64, receivedAt uptime: Int64, _ leapMilliseconds: Int64
  ) -> Placement {
    guard newest &- time > leapMilliseconds else {
      behindCount = 0
      return .history
    }
    let step = FixOrder.excess(from: behindFirst, behindFirstReceived, to: time, uptime)
    let isInStep =
      behindCount > 0 && time > behindLast && time &- behindLast <= FixOrder.restartPause
      && abs(step) <= FixOrder.restartSlack
    guard isInStep else {
      (behindFirst, behindFirstReceived, behindLast, behindCount) = (time, uptime, time, 1)
      return .history
    }
    behindLast = time
    behindCount = min(behindCount + 1, FixOrder.restartFixes)
    guard behindCount == FixOrder.restartFixes, time &- behindFirst >= FixOrder.restartAfter else { return .history }
    behindCount = 0
    if held != nil { countDropped() }
    held = nil
    advance(to: time, receivedAt: uptime, stride: 0)
    return .restarts
  }

  /// How many milliseconds more passed between two fixes by their own clock than by the hub's.
  private static func excess(from first: Int64, _ firstReceived: Int64, to second: Int64, _ received: Int64) -> Int64 {
    let passedAtHub = max(0, received &- firstReceived) / 1_000_000
    return (second &- first) &- passedAtHub
  }
}
