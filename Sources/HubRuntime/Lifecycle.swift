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
  private let delay: Atomic<Int64>
  private let spreadOver: Atomic<Int64>
  private let loops = Atomic(0)

  /// `delaySeconds`: between `requestStop` and the end of the sessions.
  /// `spreadSeconds`: over which they are told to go.
  package init(delaySeconds: Double, spreadSeconds: Double = 0) {
    delay = Atomic(Int64(delaySeconds * 1e9))
    spreadOver = Atomic(Int64(spreadSeconds * 1e9))
  }

  /// For a stop that is asked for from now on.
  package func setDrain(delaySeconds: Double, spreadSeconds: Double) {
    delay.store(Int64(delaySeconds * 1e9), ordering: .relaxed)
    spreadOver.store(Int64(spreadSeconds * 1e9), ordering: .relaxed)
  }

  /// Nanoseconds over which sessions are told to go.
  package var spread: Int64 { spreadOver.load(ordering: .relaxed) }

  /// The first call counts.
  package func requestStop(at uptime: Int64) {
    _ = stopRequested.compareExchange(expected: .max, desired: uptime, ordering: .relaxed)
  }

  /// When sessions are told to go (uptime, ns), once that was asked for.
  package var drainsAt: Int64 {
    let requested = stopRequested.load(ordering: .relaxed)
    return requested == .max ? .max : requested + delay.load(ordering: .relaxed)
  }

  /// A loop that has sessions begins and ends.
  package func loopBegins() { loops.add(1, ordering: .relaxed) }
  package func loopEnds() { loops.subtract(1, ordering: .releasing) }

  /// Whether sessions may be there.
  package var hasLoops: Bool { loops.load(ordering: .acquiring) > 0 }

  package var isShuttingDown: Bool { stopRequested.load(ordering: .relaxed) != .max }

  package func phase(at uptime: Int64) -> Phase {
    let requested = stopRequested.load(ordering: .relaxed)
    if requested == .max { return .serving }
    return uptime - requested < delay.load(ordering: .relaxed) ? .unready : .draining
  }
}
