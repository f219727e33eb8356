// A driver's clock relative to the hub's, from which the age of a position is computed.
import HubMessages

/// The offset between a session's clock and the hub's: the smallest (receive time − envelope timestamp), since network
/// delay only makes it larger.
struct SessionClock {
  /// Nil before the first observation.
  @Packed private(set) var offsetMilliseconds: Int64?
  /// The offset is an earlier session's: valid until this session has its own.
  private var isInherited = false

  /// Times are between `Timestamp.accepted`'s bounds, and so is their difference.
  static let largestOffset = Timestamp.accepted.upperBound.milliseconds

  /// Milliseconds by which the hub's wall clock leads its uptime at once where it was set, and was not only read late.
  static let leastStep: Int64 = 100

  init() {}

  /// For a driver that was known before.
  init(inheriting offsetMilliseconds: Int64?) {
    self.offsetMilliseconds = offsetMilliseconds
    isInherited = true
  }

  mutating func observe(sent: Timestamp, received: Timestamp) {
    let difference = received.milliseconds - sent.milliseconds
    offsetMilliseconds = isInherited ? difference : min(offsetMilliseconds ?? difference, difference)
    isInherited = false
  }

  /// The hub's clock was set forward. Without this the smallest difference would be one by its former clock for ever.
  mutating func move(by milliseconds: Int64) {
    offsetMilliseconds = offsetMilliseconds.map { min($0 + milliseconds, SessionClock.largestOffset) }
  }

  /// The time of the session's clock at `now` of the hub's.
  func sessionTime(at now: Timestamp) -> Timestamp {
    Timestamp(milliseconds: now.milliseconds - (offsetMilliseconds ?? 0))
  }

  /// Seconds from the fix, converted to the hub's clock, to `now`; never negative.
  func age(of fix: Timestamp, at now: Timestamp) -> Double {
    let milliseconds = sessionTime(at: now).milliseconds - fix.milliseconds
    return Double(max(0, milliseconds)) / 1000
  }
}
