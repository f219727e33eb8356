// The seconds of one loop: when it looks after itself next, whether it stalled, and whether somebody has set the clock.
import HubMessages
import HubSystem

/// Seconds as nanoseconds.
func nanoseconds(_ seconds: Double) -> Int64 { Int64(seconds * 1e9) }

/// What one loop keeps of time.
struct LoopClock {
  /// When the loop looks after itself (uptime, ns): once a second, or earlier where it is told to.
  private(set) var nextTick: Int64
  /// What the wall clock says beyond the uptime, in milliseconds, as of the last tick.
  private var wallClockOffset: Int64

  init(_ reading: ClockReading) {
    nextTick = reading.uptimeNanoseconds
    wallClockOffset = reading.wallClockOffset
  }

  /// The next tick comes a second after this one.
  mutating func ticked(now: Int64) { nextTick = now + 1_000_000_000 }

  /// The next tick comes by then.
  mutating func tick(by uptime: Int64) { nextTick = min(nextTick, uptime) }

  /// For how long this loop did not turn, though it was due to: its machine was suspended, or had no time for it (ns; 0
  /// for less than a second).
  func stall(now: Int64, isFirstTurn: Bool) -> Int64 {
    let late = now - nextTick
    return late > 1_000_000_000 && !isFirstTurn ? late : 0
  }

  /// The stall is taken note of.
  mutating func excuseStall(now: Int64) { nextTick = now }

  /// True where somebody has set the wall clock since this was asked last.
  mutating func wallClockWasSet(_ reading: ClockReading) -> Bool {
    let offset = reading.wallClockOffset
    guard abs(offset - wallClockOffset) > 100 else { return false }
    wallClockOffset = offset
    return true
  }
}

extension Moment {
  init(_ reading: ClockReading) {
    self.init(uptime: reading.uptimeNanoseconds, timestamp: Timestamp(milliseconds: reading.unixMilliseconds))
  }
}

extension ClockReading {
  /// Milliseconds; grows as the wall clock is set forward, or runs faster.
  fileprivate var wallClockOffset: Int64 { unixMilliseconds - uptimeNanoseconds / 1_000_000 }
}
