// A driver's clock relative to the hub's, from which the age of a position is computed.
import HubMessages

/// The offset between a session's clock and the hub's: the smallest (receive time − envelope timestamp) of the present
/// window of time and of the one before it, since network delay only makes it larger. So one message by a wrong clock,
/// or a clock that was set right, counts for two windows, not for the rest of the session.
struct SessionClock {
  /// Nil before the first observation.
  @Packed private(set) var offsetMilliseconds: Int64?
  /// Milliseconds by which all observations of the window were above the offset; `.max` also stands for more.
  private var excess = UInt16.max
  /// The last 15 bits of the number of the newest observation's window. `noWindow`: the offset, if any, is an earlier
  /// session's, and valid until this session has its own.
  private var window = noWindow

  private static let noWindow = UInt16.max
  /// A window is 2^18 ms, some 4.4 minutes by the hub's clock, in which even a stationary driver sends twice.
  static let windowBits: Int64 = 18

  /// Times are between `Timestamp.accepted`'s bounds, and so is their difference.
  static let largestOffset = Timestamp.accepted.upperBound.milliseconds

  /// Milliseconds by which the wall clock must jump ahead of the uptime to count as set; reading them takes time, too.
  static let stepThreshold: Int64 = 100

  init() {}

  /// For a driver that was known before.
  init(inheriting offsetMilliseconds: Int64?) { self.offsetMilliseconds = offsetMilliseconds }

  @inline(__always)
  mutating func observe(sent: Timestamp, received: Timestamp) {
    let difference = received.milliseconds &- sent.milliseconds
    let window = UInt16(truncatingIfNeeded: received.milliseconds >> SessionClock.windowBits & 0x7FFF)
    if window == self.window, difference &- (offsetMilliseconds ?? 0) >= Int64(excess) { return }
    take(difference, in: window)
  }

  /// Takes the first observation of a window, or one that is smaller than those before it.
  @inline(never)
  private mutating func take(_ difference: Int64, in window: UInt16) {
    var offset = offsetMilliseconds ?? difference
    if window != self.window {
      // Of earlier windows only the last one's smallest difference counts, where it is known.
      offset = self.window == SessionClock.noWindow || excess == .max ? difference : offset + Int64(excess)
      excess = .max
      self.window = window
    }
    offset = min(offset, difference)
    excess = min(excess, UInt16(clamping: difference - offset))
    offsetMilliseconds = offset
  }

  /// Adjusts the offset to the hub's clock, which was set forward. Else a difference by the former clock would stay the
  /// smallest until the end of the next window.
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
