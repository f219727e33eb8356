// The end of a server: readiness fails first, so that a load balancer looks elsewhere; then sessions are closed.
import HubMessages
import Synchronization

/// Whether the server is serving, unready, or draining. Written by the thread that requests the stop.
package final class Lifecycle: Sendable {
  package enum Phase {
    case serving
    /// Readiness fails, so that a load balancer looks elsewhere; sessions stay.
    case unready
    /// Sessions are closed.
    case draining
  }

  private let stopRequested = Atomic<Int64>(.max)
  private let delay: Atomic<Int64>
  private let spreadOver: Atomic<Int64>
  private let loops = Atomic(0)

  /// `delaySeconds`: between `requestStop` and the first closes. `spreadSeconds`: the time over which sessions are
  /// closed.
  package init(delaySeconds: Double, spreadSeconds: Double = 0) {
    delay = Atomic(nanoseconds(delaySeconds))
    spreadOver = Atomic(nanoseconds(spreadSeconds))
  }

  /// For later calls of `requestStop`.
  package func setDrain(delaySeconds: Double, spreadSeconds: Double) {
    delay.store(nanoseconds(delaySeconds), ordering: .relaxed)
    spreadOver.store(nanoseconds(spreadSeconds), ordering: .relaxed)
  }

  /// Nanoseconds over which sessions are closed.
  package var spread: Int64 { spreadOver.load(ordering: .relaxed) }

  /// Requests the stop, as of `uptime` (ns). Only the first call counts.
  package func requestStop(at uptime: Int64) {
    _ = stopRequested.compareExchange(expected: .max, desired: uptime, ordering: .relaxed)
  }

  /// When sessions begin to be closed (uptime, ns), once requested.
  package var drainsAt: Int64 {
    let requested = stopRequested.load(ordering: .relaxed)
    return requested == .max ? .max : requested + delay.load(ordering: .relaxed)
  }

  /// A loop with sessions begins or ends.
  package func loopBegins() { loops.add(1, ordering: .relaxed) }
  package func loopEnds() { loops.subtract(1, ordering: .releasing) }

  /// Whether there may be sessions.
  package var hasLoops: Bool { loops.load(ordering: .acquiring) > 0 }

  package var isShuttingDown: Bool { stopRequested.load(ordering: .relaxed) != .max }

  package func phase(at uptime: Int64) -> Phase {
    let requested = stopRequested.load(ordering: .relaxed)
    if requested == .max { return .serving }
    return uptime - requested < delay.load(ordering: .relaxed) ? .unready : .draining
  }
}
