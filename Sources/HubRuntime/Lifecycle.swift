// The end of a server: first a load balancer is given time to look elsewhere, then sessions are told to go.
import Synchronization

/// Whether the server takes work, is about to stop, or is stopping. Written by the thread that was told to stop.
package final class Lifecycle: Sendable {
  package enum Phase {
    case serving
    /// Readiness fails so that a load balancer looks elsewhere; sessions go on.
    case unready
    /// Sessions are told to go.
    case draining
  }

  private let stopRequested = Atomic<Int64>(.max)
  private let delay: Int64

  /// `delaySeconds`: between `requestStop` and the end of the sessions.
  package init(delaySeconds: Double) { delay = Int64(delaySeconds * 1e9) }

  /// The first call counts.
  package func requestStop(at uptime: Int64) {
    _ = stopRequested.compareExchange(expected: .max, desired: uptime, ordering: .relaxed)
  }

  /// When sessions are told to go (uptime, ns), once that was asked for.
  package var drainsAt: Int64 {
    let requested = stopRequested.load(ordering: .relaxed)
    return requested == .max ? .max : requested + delay
  }

  package var isShuttingDown: Bool { stopRequested.load(ordering: .relaxed) != .max }

  package func phase(at uptime: Int64) -> Phase {
    let requested = stopRequested.load(ordering: .relaxed)
    if requested == .max { return .serving }
    return uptime - requested < delay ? .unready : .draining
  }
}
