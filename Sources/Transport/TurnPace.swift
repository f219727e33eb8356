// When a loop under load polls its sockets: not at the first byte of each, but after a pause in which they gather
// input.
//
// Of a message's cost, 85 % is the kernel's, a third of that for sleeping and waking: at 9,000 messages a second a loop
// sleeps before nearly each of them. Network cards moderate interrupts for the same reason. So does a loop: if its
// sockets were ready often in the last window, it sleeps for a pause before it polls again, and its next turn handles
// what arrived meanwhile. Measurements are in loadtest/NOTES.md.
//
// A loop with little load is woken at once: a pause would only delay a message. After a turn longer than two pauses
// there is a backlog, so there is no pause either. Other work does not wait: a call by the waker (a finished commit,
// another loop's messages) ends the pause, a due timer shortens it, and a loop with work left does not sleep at all. To
// its assistants a pausing loop is a sleeping one (EventLoop+Assists).

/// Whether a loop is under load, and how long it pauses because of that.
struct TurnPace {
  /// Nanoseconds; 0 for never.
  private let longest: Int64
  private(set) var isOn = false
  private var reports = 0
  private var windowBegan: Int64

  init(_ limits: EventLoopLimits, now: Int64) {
    longest = Int64(limits.turnPaceMicroseconds) * 1000
    windowBegan = now
  }

  /// Counts the sockets that a poll at `now` (uptime, ns) found ready.
  @inline(__always)
  mutating func count(_ ready: Int, at now: Int64) {
    reports &+= ready
    let passed = now &- windowBegan
    if passed >= EventLoopLimits.paceWindow { endWindow(passed, now) }
  }

  private mutating func endWindow(_ passed: Int64, _ now: Int64) {
    // A window that a long sleep has stretched counts for its length.
    let perSecond = Double(reports) * 1e9 / Double(passed)
    isOn = perSecond >= (isOn ? EventLoopLimits.pacedAbove : EventLoopLimits.pacedFrom)
    reports = 0
    windowBegan = now
  }

  /// Nanoseconds to pause instead of sleeping for `sleep`, after a turn that took `worked`; 0 for none.
  func pause(before sleep: Int64, after worked: Int64) -> Int64 {
    isOn && worked <= EventLoopLimits.backlogPaces * longest ? max(0, min(longest, sleep)) : 0
  }
}
