// How one loop ends: sessions are closed, all at once or spread over a time, and the loop stops when they are gone, or
// when the time is over.
//
// Spread, because clients that are closed together reconnect together: a hub with 10,000 of them would cause 10,000
// handshakes in a second at the next one.
import HubMessages
import HubRuntime

/// A loop's part of a drain.
struct Drain {
  /// What the loop does now.
  enum Step: Equatable {
    /// Serves. Where it is known when the drain begins (uptime, ns), the loop checks again then.
    case serve(until: Int64?)
    /// Accepts no more connections, and closes the sessions in these slots.
    case dismiss(Range<Int>)
    /// Waits for sessions that are closing, or are not due yet.
    case wait
    case stop
  }

  private let seconds: Double
  /// When the first sessions were closed (uptime, ns); nil before the drain.
  private var began: Int64?
  /// The sessions in slots below this were closed.
  private var dismissed = 0

  init(seconds: Double) { self.seconds = seconds }

  var isDraining: Bool { began != nil }

  /// `slots`: the number of slots.
  mutating func step(_ lifecycle: Lifecycle, _ slots: Int, connections: Int, now: Int64) -> Step {
    switch lifecycle.phase(at: now) {
    case .serving: return .serve(until: nil)
    case .unready: return .serve(until: lifecycle.drainsAt)
    case .draining: break
    }
    let (isFirst, start) = (began == nil, began ?? now)
    began = start
    let spread = lifecycle.spread
    let share = now < start + spread ? Double(now - start) / Double(spread) : 1
    let due = dismissed..<max(dismissed, Int(Double(slots) * share))
    dismissed = due.upperBound
    if isFirst || !due.isEmpty { return .dismiss(due) }
    return connections == 0 || now >= start + spread + nanoseconds(seconds) ? .stop : .wait
  }
}
