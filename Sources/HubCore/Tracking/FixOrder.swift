// Where a fix belongs in time: in front of the filter, which only ever sees fixes in order.
//
// The rules are the contract's ("Fixes in time"). Phones are wrong about the time, and traces are replayed, so how
// old a timestamp is by the hub's clock says nothing. What was published never goes back in time, so whatever is taken
// for the newest too early silences the driver until the time has come; therefore a leap ahead waits until the next
// fix confirms it, which takes that they agree: between them no more time passed than at the hub.
//
// Three things more, for what that alone gets wrong:
// - A receiver can be wrong about the time for two fixes that agree (its count of GPS weeks rolls over). So where a
//   driver was followed for a minute and then leaps into the hub's future, two fixes have to confirm it.
// - Leaps of which each is far ahead of the one before, and about as far as it, confirm each other when there are three
//   in a row (four into the hub's future): a drive with a fix every quarter of an hour, replayed fast, is nothing
//   but leaps. What it then goes on with is no leap any more, up to `strides` times as far.
// - A clock that was ahead and is set right would leave the driver silent until the right time has caught up:
//   `ClockChange` tells it from a backlog, and goes on without going back. The hub counts such fixes
//   (`fixesBehindClock`).

/// The order of one driver's fixes by their own timestamps. 96 bytes, the small members where optionals leave room;
/// allocates only where a clock was set back.
struct FixOrder: Sendable, Equatable {
  /// What to do with a fix.
  enum Placement: Equatable {
    /// Newer than all before it.
    case next
    /// It confirms the leap of `held`, which comes first; both are in order.
    case confirms(held: TrackMeasurement)
    /// A leap ahead; the next fix decides.
    case held
    /// Older than the newest.
    case history
    /// Of one millisecond with the newest, or with the one held back.
    case duplicate
    /// Live, and older than the newest by so many milliseconds because the driver's clock was set back. It is not
    /// believed yet.
    case clockDoubted(behind: Int64)
    /// The driver's clock was set back and is believed from this fix on, which is the newest. By the old clock it would
    /// be `back` milliseconds later.
    case clockBelieved(back: Int64)
  }

  /// Leaps in a row, each ahead of the one before, that confirm each other.
  static let leapsInARow: UInt8 = 3
  /// How many times as far as the step before, ahead of the hub's clock, is no leap; and how far apart the lengths of
  /// two leaps may be that are of one row.
  static let strides: Int64 = 4
  /// Milliseconds that two fixes may be further apart by their own clock than by the hub's and agree: they may come in
  /// one batch, or of a drive that is replayed faster than it was recorded.
  static let agreement: Int64 = 60_000
  /// Nanoseconds of the hub's uptime without a leap after which a leap into the hub's future needs two fixes more.
  static let steady: Int64 = 60_000_000_000

  /// The timestamp of the newest fix in order, or nil before the first.
  private(set) var newest: Int64?
  /// How many leaps in a row the held one is the last of, and how many of them agree.
  private var leaps: UInt8 = 0
  private var agreeing: UInt8 = 0
  /// How many held fixes were dropped: the next one did not confirm them, or their place was refused. Wraps.
  private(set) var dropped: UInt8 = 0
  /// How far the held one leapt, in milliseconds.
  private var heldLeap: Float = 0
  /// When the newest came, in nanoseconds of the hub's uptime, and since when there was no leap.
  private(set) var newestReceived: Int64 = 0
  private var steadySince: Int64 = 0
  /// How much further than the hub's clock the newest was ahead of the fix before it, in milliseconds: a day at most.
  private var stride: Int32 = 0
  /// How much later than the newest fix the newest live envelope was, in milliseconds; `min` where none is known.
  private var sentAfter = Int32.min
  private(set) var held: TrackMeasurement?
  private var heldReceived: Int64 = 0
  /// Not nil where the driver's clock was set back, and what was published is ahead of it.
  var change: ClockChange?

  init() {}

  /// One whose newest fix came at `uptime`, and was published by the time `published` where that was not its own (both
  /// ms).
  init(newest: Int64, receivedAt uptime: Int64, published: Int64? = nil) {
    self.newest = newest
    newestReceived = uptime
    // It was sent when it was measured, or later.
    sentAfter = 0
    if let published, published > newest {
      change = .believed(PublishedClock(milliseconds: published, received: uptime))
    }
  }

  /// By the phone's clock, when the newest live fix was sent, in milliseconds; the distant past where that is not
  /// known. Batches have no part in it.
  var newestSent: Int64 {
    guard let newest, sentAfter != .min else { return .min / 2 }
    return newest &+ Int64(sentAfter)
  }

  /// No fix of the driver is known to be newer, by whichever clock: of a clock that was set back, what was published is
  /// ahead of all that came by the old one. Milliseconds; nil before the first.
  var latest: Int64? { newest.map { max($0, change?.published?.milliseconds ?? $0) } }

  /// Places a fix that came at `uptime` (nanoseconds, monotonic). A fix that is history or a duplicate says nothing
  /// about a held one, which goes on waiting; any other that does not confirm it drops it. O(1).
  ///
  /// A driver's first fix has none before it to leap from: it counts as a leap where it is further ahead of `hubClock`
  /// (Unix milliseconds, where the caller has one) than a leap may be. How far it is behind says nothing.
  /// `sent` is the time of a live fix's envelope, in milliseconds; nil for a fix of a batch or without an envelope.
  mutating func place(
    _ fix: TrackMeasurement, sent: Int64?, receivedAt uptime: Int64, hubClock: Int64?, leapMilliseconds: Int64
  ) -> Placement {
    let time = fix.milliseconds
    if let newest, time <= newest { return placeBehind(newest, fix, sent: sent, receivedAt: uptime) }
    if let held {
      if time == held.milliseconds { return .duplicate }
      let step = FixOrder.excess(from: held.milliseconds, heldReceived, to: time, uptime)
      let future = hubClock.map { time &- $0 > leapMilliseconds } ?? false
      if isConfirmed(by: time, held: held.milliseconds, step, receivedAt: uptime, future: future, leapMilliseconds) {
        self.held = nil
        steadySince = uptime
        advance(to: time, sent: sent, receivedAt: uptime, stride: step)
        return .confirms(held: held)
      }
      self.held = nil
      countDropped()
    }
    let step = newest.map { FixOrder.excess(from: $0, newestReceived, to: time, uptime) }
    if let ahead = step ?? hubClock.map({ time &- $0 }), ahead > max(leapMilliseconds, longestStep) {
      if leaps == 0 {
        leaps = 1
        heldLeap = Float(ahead)
      }
      held = fix
      heldReceived = uptime
      return .held
    }
    if newest == nil { steadySince = uptime }
    advance(to: time, sent: sent, receivedAt: uptime, stride: step ?? 0)
    return .next
  }

  mutating func countDropped() { dropped &+= 1 }

  /// How far ahead of the hub's clock is no leap after the last step, in milliseconds.
  private var longestStep: Int64 { Int64(stride) * FixOrder.strides }

  @inline(__always)
  private mutating func advance(to time: Int64, sent: Int64?, receivedAt uptime: Int64, stride: Int64) {
    if sent != nil || sentAfter != .min { sentAfter = Int32(clamping: (sent ?? newestSent) &- time) }
    newest = time
    newestReceived = uptime
    self.stride = Int32(truncatingIfNeeded: min(max(stride, 0), 86_400_000))
    leaps = 0
    agreeing = 0
    if change != nil { endDoubt() }
  }

  /// The clock that was set back is the driver's from a fix of `time` on, which was sent at `sent` (ms).
  mutating func believe(
    _ published: PublishedClock?, newest old: Int64, fix time: Int64, sent: Int64, receivedAt uptime: Int64
  ) {
    if held != nil { countDropped() }
    held = nil
    steadySince = uptime
    advance(to: time, sent: sent, receivedAt: uptime, stride: 0)
    change = .believed(PublishedClock(milliseconds: published?.milliseconds ?? old, received: uptime))
  }

  /// Whether the fix behind the held one confirms it; `step` is how much further it is ahead than the hub's clock.
  /// Where not, it counts as the next of the row, or begins another.
  private mutating func isConfirmed(
    by time: Int64, held: Int64, _ step: Int64, receivedAt uptime: Int64, future: Bool, _ leapMilliseconds: Int64
  ) -> Bool {
    // Before the first there is nothing that could be silenced, nor a stride to go by.
    let slack = newest == nil ? leapMilliseconds : max(FixOrder.agreement, longestStep)
    let needed: UInt8 = future && newest != nil && uptime &- steadySince >= FixOrder.steady ? 2 : 1
    if time > held, step <= slack {
      agreeing += 1
      return agreeing >= needed
    }
    agreeing = 0
    let (leap, strides) = (Float(step), Float(FixOrder.strides))
    guard time > held, leap <= heldLeap * strides, heldLeap <= leap * strides else {
      leaps = 0
      return false
    }
    leaps += 1
    heldLeap = leap
    return leaps >= FixOrder.leapsInARow + needed - 1
  }

  /// How many milliseconds more passed between two fixes by their own clock than by the hub's.
  private static func excess(from first: Int64, _ firstReceived: Int64, to second: Int64, _ received: Int64) -> Int64 {
    let passedAtHub = max(0, received &- firstReceived) / 1_000_000
    return (second &- first) &- passedAtHub
  }
}
