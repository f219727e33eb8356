// The two clocks a server needs, read once a turn: the monotonic clock for timers and intervals, and the wall clock for
// timestamps. A turn sees one value of each, so its events agree with each other.

import Glibc

/// One reading of the monotonic and the wall clock.
public struct ClockReading: Sendable, Hashable {
  /// CLOCK_MONOTONIC in nanoseconds: never goes back, has no relation to the date.
  public var uptimeNanoseconds: Int64
  /// CLOCK_REALTIME in milliseconds since 1970: may jump when it is set.
  public var unixMilliseconds: Int64

  public init(uptimeNanoseconds: Int64, unixMilliseconds: Int64) {
    self.uptimeNanoseconds = uptimeNanoseconds
    self.unixMilliseconds = unixMilliseconds
  }

  /// Reads both clocks; about 50 ns, no system call on common machines (vDSO).
  public static func read() -> ClockReading {
    ClockReading(
      uptimeNanoseconds: nanoseconds(of: CLOCK_MONOTONIC),
      unixMilliseconds: nanoseconds(of: CLOCK_REALTIME) / 1_000_000)
  }

  /// The monotonic clock by itself, in nanoseconds.
  public static func uptime() -> Int64 { nanoseconds(of: CLOCK_MONOTONIC) }

  static func nanoseconds(of clock: clockid_t) -> Int64 {
    var time = timespec()
    // Fails only for an unknown clock or a bad pointer: neither can be.
    let outcome = unsafe clock_gettime(clock, &time)
    precondition(outcome == 0, "clock_gettime refused a clock that every Linux has")
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
