// A driver as the hub holds it.
import HubGeo
import HubMessages

/// 816 bytes. A million of these are most of what a hub holds, so members stand in an order in which the small ones
/// fill the gaps that alignment leaves: behind the id, the tracker and optionals.
struct Driver {
  var id: Identifier
  /// What the driver said of itself; `on_trip` is derived from `activeTrips`.
  var reported = DriverStatus.available
  /// Exactly while this is false an entry of the deadlines watches for staleness.
  var isStale = false
  /// An entry of the deadlines waits to forget the driver. It stays when the driver comes back, so that one that comes
  /// and goes all day has two entries, not one for each time.
  var isRetentionArmed = false
  /// It is to be looked at with the next tick of areas.
  var isAreaNoted = false
  var hash: UInt64
  var tracker: Tracker
  /// Trips that it began and that are still known.
  var tripsBegun: UInt32 = 0
  /// Its vehicle type and tags in the hub's `profiles`; −1 for none.
  var profile: Int32 = -1
  /// The session that may send for this driver; nil when none is connected.
  var session: SessionRef?
  /// The first of the watched cells that it is in.
  var firstArea = AreaTable.none
  var activeTrips: Int32 = 0
  /// The trip that its fixes named last, so that the id need not be looked up again.
  var lastTrip: Handle?
  /// Inputs of it that wait in the second lane.
  var waiting: Int32 = 0
  /// The trip that the fix of `position` named.
  var positionTrip: Handle?
  /// The fences that it is in, and what is known of those near it.
  var fences = DriverFences()
  var clock = SessionClock()
  /// Index of the driver's channel, where it has one.
  var channel: Int?
  /// The newest published position, and its age when it was published.
  var position: Position?
  var positionAge = 0.0
  /// When its last trip ended, by the hub's wall clock: since then riders know it by another name.
  var lastTripEnded: Int64 = 0
  /// When the newest accepted fix came, and since when no session is there (uptime, ns).
  var lastFix: Int64
  var disconnected: Int64
  /// What decides how often it should send; the seconds between fixes that it was told last, and when (uptime, ns).
  var sampling = SamplingPolicy()
  var samplingInterval: Float = 0
  /// The seconds at which a driver without a session sends (`Hub.noteSending`); negative before its first message.
  var sendingInterval: Float = -1
  var samplingTold = Int64.min / 2
  /// What those who watch areas know it by.
  var pseudonym: UInt64 = 0
  var replacements = ReplacementWindow()
  /// The times of its fixes, kept once it has sent a batch.
  var fixTimes: FixTimes?
  /// What of it is on stable storage.
  var durable = DriverStorage()

  var status: DriverStatus { activeTrips > 0 ? .onTrip : reported }
}

/// The offset between a session's clock and the hub's, for `age`: the smallest of (receive time − envelope timestamp),
/// because what makes it larger is delay on the way.
struct SessionClock {
  /// Nil before the first observation.
  private(set) var offsetMilliseconds: Int64?
  /// The offset is an earlier session's: it holds until this one shows its own.
  private var isInherited = false

  /// Times are between `Timestamp.accepted`'s bounds, and so is their difference.
  static let largestOffset = Timestamp.accepted.upperBound.milliseconds

  init() {}

  /// Of a driver that was known before.
  init(inheriting offsetMilliseconds: Int64?) {
    self.offsetMilliseconds = offsetMilliseconds
    isInherited = true
  }

  mutating func observe(sent: Timestamp, received: Timestamp) {
    let difference = received.milliseconds - sent.milliseconds
    offsetMilliseconds = isInherited ? difference : min(offsetMilliseconds ?? difference, difference)
    isInherited = false
  }

  /// What the session's clock shows when the hub's shows `now`.
  func sessionTime(at now: Timestamp) -> Timestamp {
    Timestamp(milliseconds: now.milliseconds - (offsetMilliseconds ?? 0))
  }

  /// Seconds from the fix, moved to the hub's clock, to `now`; never negative.
  func age(of fix: Timestamp, at now: Timestamp) -> Double {
    let milliseconds = sessionTime(at: now).milliseconds - fix.milliseconds
    return Double(max(0, milliseconds)) / 1000
  }
}

/// Counts how often a driver's session was replaced lately; a driver app that runs twice must not throw itself out
/// for ever.
struct ReplacementWindow {
  private var times: [Int64] = []
  private var refusedUntil = Int64.min

  /// Seconds for which a newcomer is refused, or nil when it may replace the session; then the replacement is counted.
  mutating func replace(at uptime: Int64, timings: HubTimings) -> Double? {
    if uptime < refusedUntil { return Double(refusedUntil - uptime) / 1e9 }
    times.removeAll { $0 <= uptime - nanoseconds(timings.replacementWindow) }
    if times.count >= timings.replacements {
      refusedUntil = uptime + nanoseconds(timings.conflict)
      times.removeAll()
      return timings.conflict
    }
    times.append(uptime)
    return nil
  }
}

/// The newest fix times of one driver, to recognise a fix that came before, on whatever way.
struct FixTimes {
  private let capacity: Int
  /// Ascending.
  private var milliseconds: [Int64] = []

  /// Times from here on that are not in the list have not come.
  private(set) var vouchesFrom = Int64.min

  /// For a driver whose newest fix is known, if it has sent any. One that could not be recorded counts as never seen.
  /// `latest` is at or after all that it has sent: the newest, unless its clock was set back.
  init(capacity: Int, newest: Timestamp? = nil, isRecorded: Bool = true, vouchesFrom latest: Timestamp? = nil) {
    self.capacity = capacity
    guard let newest else { return }
    if isRecorded { milliseconds = [newest.milliseconds] }
    vouchesFrom = (latest ?? newest).milliseconds
  }

  func contains(_ time: Timestamp) -> Bool { milliseconds.containsAscending(time.milliseconds) }

  /// False when it was there already. O(log n) to find, O(n) to insert out of order.
  mutating func insert(_ time: Timestamp) -> Bool {
    let value = time.milliseconds
    var low = milliseconds.lowerBound(value)
    if low < milliseconds.count, milliseconds[low] == value { return false }
    if milliseconds.count == capacity {
      if low == 0 { return true }  // older than all that is remembered: cannot be told, counts as new
      vouchesFrom = max(vouchesFrom, milliseconds.removeFirst() + 1)
      low -= 1
    }
    milliseconds.insert(value, at: low)
    return true
  }
}

/// Seconds as nanoseconds of uptime.
@inline(__always) func nanoseconds(_ seconds: Double) -> Int64 { Int64(seconds * 1e9) }
