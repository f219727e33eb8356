// One loop's seconds: its next tick, stalls, and changes of the wall clock.
import HubSystem

/// One loop's clock state.
struct LoopClock {
  /// When the loop's next tick is due (uptime, ns): once a second, or earlier on request.
  private(set) var nextTick: Int64
  /// The wall clock minus the uptime, in milliseconds, at the start or when the clock was last found set.
  private var wallClockOffset: Int64

  init(_ reading: ClockReading) {
    nextTick = reading.uptimeNanoseconds
    wallClockOffset = reading.wallClockOffset
  }

  /// Sets the next tick to a second after this one.
  mutating func ticked(now: Int64) { nextTick = now + 1_000_000_000 }

  /// Sets the next tick to this time at the latest.
  mutating func tick(by uptime: Int64) { nextTick = min(nextTick, uptime) }

  /// For how long this loop did not turn though a tick was due: its machine was suspended or overloaded (ns; 0 for less
  /// than a second).
  func stall(now: Int64, isFirstTurn: Bool) -> Int64 {
    let late = now - nextTick
    return late > 1_000_000_000 && !isFirstTurn ? late : 0
  }

  /// Makes the late tick due now, so that the stall is handled once.
  mutating func excuseStall(now: Int64) { nextTick = now }

  /// True where the wall clock was set, or has drifted, by over 0.1 s since this was true last, or the start.
  mutating func wallClockWasSet(_ reading: ClockReading) -> Bool {
    let offset = reading.wallClockOffset
    guard abs(offset - wallClockOffset) > 100 else { return false }
    wallClockOffset = offset
    return true
  }
}

extension ClockReading {
  /// Milliseconds; grows when the wall clock is set forward, or runs faster.
  fileprivate var wallClockOffset: Int64 { unixMilliseconds - uptimeNanoseconds / 1_000_000 }
}
