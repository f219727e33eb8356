// How one loop ends: sessions are closed, and the loop stops when they have, or when their time is over.
import HubRuntime

/// A loop's part of a drain.
struct Drain {
  /// What a loop is to do now.
  enum Step {
    /// To serve; and where an end is known, to look again then (uptime, ns).
    case serve(until: Int64?)
    /// To close all sessions.
    case begin
    /// To wait for those who have not gone.
    case wait
    case stop
  }

  private let seconds: Double
  /// When the loop stops whoever is still there (uptime, ns); nil before the drain.
  private var deadline: Int64?

  init(seconds: Double) { self.seconds = seconds }

  var isDraining: Bool { deadline != nil }

  mutating func step(_ lifecycle: Lifecycle, connections: Int, now: Int64) -> Step {
    switch lifecycle.phase(at: now) {
    case .serving: return .serve(until: nil)
    case .unready: return .serve(until: lifecycle.drainsAt)
    case .draining: break
    }
    guard let deadline else {
      self.deadline = now + nanoseconds(seconds)
      return .begin
    }
    return connections == 0 || now >= deadline ? .stop : .wait
  }
}
