// When a loop under load looks at its sockets: not at the first byte of each, but after they have had a while to
// gather.
//
// Of what a message costs a hub, 85 % is the kernel's, and a third of that goes into falling asleep and being woken: at
// 9,000 messages a second a loop sleeps before nearly each of them. Network cards had the same trouble with interrupts,
// and moderate them: under load they wait some microseconds, so that one interrupt serves many packets. So does a loop:
// if its sockets were ready often of late, it pauses before it looks at them again, and its next turn handles what came
// meanwhile. It sleeps in the pause, and costs nothing. Figures, with the pace and without, stand in loadtest/NOTES.md.
//
// Who has little to do is woken at once: a pause would only make one message later. After a turn that took longer than
// two pauses there is a backlog, and sockets have gathered enough meanwhile. What is not a socket does not wait either: a call by the waker (a commit that is done, another loop's messages) ends the pause, a timer that is due
// shortens it, and a loop with work left does not sleep at all. To its assistants a loop that pauses is one that sleeps
// (EventLoop+Assists).

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

  /// A look at the sockets has found so many ready (uptime, ns).
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

  /// How long a loop pauses that would sleep for so long, after a turn that took `worked` (ns); 0 for not at all.
  func pause(before sleep: Int64, after worked: Int64) -> Int64 {
    isOn && worked <= EventLoopLimits.backlogPaces * longest ? max(0, min(longest, sleep)) : 0
  }
}
