// Puts fixes in order of time, before the filter, which only sees them in order.
//
// The rules are those of protocol/tracking.md. Phones' clocks are wrong, and traces are replayed, so the age of a
// timestamp by the hub's clock says nothing. Published times never go back, so accepting a wrong future time would
// silence the driver until that time has come. Therefore a leap ahead is held until the next fix confirms it: if the
// times of the two are no farther apart than their arrivals at the hub.
//
// Three rules cover what this alone gets wrong:
// - A receiver can be wrong about the time for two fixes that agree (its count of GPS weeks rolls over). So where a
//   driver was followed for a minute and then leaps into the hub's future, two fixes have to confirm it.
// - Leaps that are each far ahead of the one before, and of similar length, confirm each other when there are three in
//   a row (four into the hub's future): a drive with a fix every quarter of an hour, replayed fast, consists of leaps.
//   After that an advance counts as a leap only if it is more than `advanceRatio` times as long.
// - A clock that was ahead and is corrected would silence the driver until the correct time has caught up:
//   `ClockChange` distinguishes it from a backlog. The hub counts such fixes (`fixesBehindClock`).
//
// An example, of a driver that has just begun; what counts is the unexplained advance, by which more time passed from
// the fix before by the fixes' clock than by the hub's:
//
//     fix of     arrives    unexplained
//     12:00:00   12:00:00                  in order
//     13:00:00   12:00:01   59:59 min      held: more than `leapMilliseconds` (10 min)
//     13:00:01   12:00:02   0 s            confirms it, by the advance from the held fix: both are in order
//
// Had the third been of 12:00:02, it would be in order after the first, and the held one dropped: its time was wrong.

/// The order of one driver's fixes by their own timestamps. 56 bytes; allocates only for a leap, and where a clock was
/// set back.
struct FixOrder: Sendable, Equatable {
  /// Where in time a fix belongs.
  enum Decision: Equatable {
    /// Newer than all before it.
    case next
    /// It confirms the leap of `held`, which is before it; both are in order.
    case confirms(held: TrackMeasurement)
    /// A leap ahead; the next fix decides.
    case held
    /// Older than the newest.
    case history
    /// It has the timestamp of the newest fix, or of the held one.
    case duplicate
    /// Live, and older than the newest by so many milliseconds because the driver's clock was set back, which is not
    /// accepted yet.
    case clockDoubted(behind: Int64)
    /// The driver's clock was set back, and is accepted from this fix on, which is the newest. By the old clock its
    /// time would be `back` milliseconds later.
    case clockBelieved(back: Int64)
  }

  /// Leaps in a row, each ahead of the one before, that confirm each other.
  static let leapsInARow: UInt8 = 3
  /// An unexplained advance up to this many times the one before is no leap; and the largest ratio of two
  /// consecutive leaps that confirm each other.
  static let advanceRatio: Int64 = 4
  /// Milliseconds that two agreeing fixes may be further apart by their own clock than by the hub's: they may come in
  /// one batch, or be replayed faster than recorded.
  static let agreement: Int64 = 60_000
  /// Nanoseconds of the hub's uptime without a leap after which a leap into the hub's future needs two more fixes.
  static let steady: Int64 = 60_000_000_000

  /// The timestamp of the newest fix in order, or nil before the first.
  @Packed private(set) var newest: Int64?
  /// The number of leaps in a row that end with the held one, and how many of them agree.
  private var leapCount: UInt8 = 0
  private var agreeingCount: UInt8 = 0
  /// The length of the held fix's leap, in milliseconds.
  private var heldLeapLength: Float = 0
  /// When the newest fix arrived, and since when there was no leap (uptime, ns).
  private(set) var newestReceived: Int64 = 0
  private var steadySince: Int64 = 0
  /// The unexplained advance of the newest fix, in milliseconds: a day at most.
  private var lastAdvance: Int32 = 0
  /// How much later than the newest fix the newest live envelope was, in milliseconds; `min` where none is known.
  private var sentAfter = Int32.min
  private var held: HeldFix?
  /// Not nil where the driver's clock was set back, and published times are ahead of it.
  var change: ClockChange?

  init() {}

  /// The order after a fix that arrived at `uptime`, published with the time `published` where that was not its own
  /// (ms).
  init(newest: Int64, receivedAt uptime: Int64, published: Int64? = nil) {
    self.newest = newest
    newestReceived = uptime
    // It was sent when it was measured or later.
    sentAfter = 0
    if let published, published > newest {
      change = .believed(PublishedClock(milliseconds: published, received: uptime))
    }
  }

  /// When the newest live fix was sent, by the phone's clock, in milliseconds; the distant past where unknown. Batches
  /// do not count.
  var newestSent: Int64 {
    guard let newest, sentAfter != .min else { return .min / 2 }
    return newest &+ Int64(sentAfter)
  }

  /// The latest time of any fix of the driver, by whichever clock, in milliseconds: after a clock was set back the
  /// published time, which is ahead of all fixes by the old one. Nil before the first.
  var latest: Int64? { newest.map { max($0, change?.published?.milliseconds ?? $0) } }

  /// Decides where in time a fix belongs that arrived at `uptime` (nanoseconds, monotonic). History and duplicates
  /// leave a held fix waiting; any other fix that does not confirm it drops it. O(1).
  ///
  /// A driver's first fix counts as a leap where it is further ahead of `hubClock` (Unix milliseconds, where the caller
  /// has one) than `leapMilliseconds`; it may be behind by any time.
  /// `sent` is the time of a live fix's envelope, in milliseconds; nil for a fix of a batch or without an envelope.
  mutating func decide(
    _ fix: TrackMeasurement, sent: Int64?, receivedAt uptime: Int64, hubClock: Int64?, leapMilliseconds: Int64
  ) -> Decision {
    let time = fix.milliseconds
    if let newest, time <= newest { return decideLate(newest, fix, sent: sent, receivedAt: uptime) }
    if case .leap(let held, let heldReceived)? = held {
      if time == held.milliseconds { return .duplicate }
      let unexplained = FixOrder.unexplainedAdvance(from: held.milliseconds, heldReceived, to: time, uptime)
      let future = hubClock.map { time &- $0 > leapMilliseconds } ?? false
      if updateHeldLeap(
        by: time, held: held.milliseconds, unexplained, receivedAt: uptime, future: future, leapMilliseconds)
      {
        self.held = nil
        steadySince = uptime
        advance(to: time, sent: sent, receivedAt: uptime, unexplained: unexplained)
        return .confirms(held: held)
      }
      self.held = nil
    }
    let unexplained = newest.map { FixOrder.unexplainedAdvance(from: $0, newestReceived, to: time, uptime) }
    if let ahead = unexplained ?? hubClock.map({ time &- $0 }), ahead > max(leapMilliseconds, longestAdvance) {
      if leapCount == 0 {
        leapCount = 1
        heldLeapLength = Float(ahead)
      }
      held = .leap(fix, received: uptime)
      return .held
    }
    if newest == nil { steadySince = uptime }
    advance(to: time, sent: sent, receivedAt: uptime, unexplained: unexplained ?? 0)
    return .next
  }

  /// The longest unexplained advance that is no leap, in milliseconds.
  private var longestAdvance: Int64 { Int64(lastAdvance) * FixOrder.advanceRatio }

  @inline(__always)
  private mutating func advance(to time: Int64, sent: Int64?, receivedAt uptime: Int64, unexplained: Int64) {
    if sent != nil || sentAfter != .min { sentAfter = Int32(clamping: (sent ?? newestSent) &- time) }
    newest = time
    newestReceived = uptime
    lastAdvance = Int32(truncatingIfNeeded: min(max(unexplained, 0), 86_400_000))
    leapCount = 0
    agreeingCount = 0
    if change != nil { endDoubt() }
  }

  /// Accepts the clock that was set back, from a fix of `time` on, sent at `sent` (ms).
  mutating func believe(
    _ published: PublishedClock?, newest old: Int64, fix time: Int64, sent: Int64, receivedAt uptime: Int64
  ) {
    held = nil
    steadySince = uptime
    advance(to: time, sent: sent, receivedAt: uptime, unexplained: 0)
    change = .believed(PublishedClock(milliseconds: published?.milliseconds ?? old, received: uptime))
  }

  /// Classifies the fix after the held one, `unexplained` milliseconds ahead of it: it agrees with the held one, is the
  /// next leap in the row, or is neither. True where it confirms the held one.
  private mutating func updateHeldLeap(
    by time: Int64, held: Int64, _ unexplained: Int64, receivedAt uptime: Int64, future: Bool, _ leapMilliseconds: Int64
  ) -> Bool {
    // Before the first fix in order a wrong time silences nobody, and there is no last advance.
    let tolerance = newest == nil ? leapMilliseconds : max(FixOrder.agreement, longestAdvance)
    let neededConfirmations: UInt8 = future && newest != nil && uptime &- steadySince >= FixOrder.steady ? 2 : 1
    if time > held, unexplained <= tolerance {
      agreeingCount += 1
      return agreeingCount >= neededConfirmations
    }
    agreeingCount = 0
    let (leap, ratio) = (Float(unexplained), Float(FixOrder.advanceRatio))
    guard time > held, leap <= heldLeapLength * ratio, heldLeapLength <= leap * ratio else {
      leapCount = 0
      return false
    }
    leapCount += 1
    heldLeapLength = leap
    return leapCount >= FixOrder.leapsInARow + neededConfirmations - 1
  }

  /// How many more milliseconds passed between two fixes by their own clock than by the hub's.
  private static func unexplainedAdvance(from first: Int64, _ firstReceived: Int64, to second: Int64, _ received: Int64)
    -> Int64
  {
    let passedAtHub = max(0, received &- firstReceived) / 1_000_000
    return (second &- first) &- passedAtHub
  }
}

/// A fix that waits to be confirmed as a leap in time, and when it arrived (uptime, ns). Few drivers have one, so it is
/// in a box.
private indirect enum HeldFix: Sendable, Equatable {
  case leap(TrackMeasurement, received: Int64)
}
