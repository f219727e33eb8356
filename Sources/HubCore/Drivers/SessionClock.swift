// What a driver's clock shows beside the hub's: where the age of a position comes from.
import HubMessages

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
