// How one loop ends: sessions are closed, all at once or spread over a time, and the loop stops when they have gone, or
// when their time is over.
//
// Spread, because clients that are told to go together come back together: a hub with 10,000 of them would give the
// next one 10,000 handshakes in a second.
import HubRuntime

/// A loop's part of a drain.
struct Drain {
  /// What a loop is to do now.
  enum Step: Equatable {
    /// To serve; and where an end is known, to look again then (uptime, ns).
    case serve(until: Int64?)
    /// To take no more connections, and to close the sessions in these slots.
    case dismiss(Range<Int>)
    /// To wait for those who have not gone, or whose turn has not come.
    case wait
    case stop
  }

  private let seconds: Double
  /// When the first sessions were told to go (uptime, ns); nil before the drain.
  private var began: Int64?
  /// Slots below this were told.
  private var told = 0

  init(seconds: Double) { self.seconds = seconds }

  var isDraining: Bool { began != nil }

  /// `slots`: all that sessions may be in.
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
    let due = told..<max(told, Int(Double(slots) * share))
    told = due.upperBound
    if isFirst || !due.isEmpty { return .dismiss(due) }
    return connections == 0 || now >= start + spread + nanoseconds(seconds) ? .stop : .wait
  }
}
