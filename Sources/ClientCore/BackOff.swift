// When to try again: exponential, with chance on top, so that clients which lost one hub together do not come back to
// it together (protocol/connecting.md, "Heartbeat and reconnect").

/// The delays of one client. Chance is a parameter: `unit` is uniform, 0 ≤ unit < 1.
struct BackOff: Equatable {
  /// Failures in a row.
  private(set) var failures = 0

  /// A connection that stood long enough was a good one.
  mutating func connectionStood(seconds: Double, limits: ClientLimits) {
    if seconds >= limits.stableSeconds { failures = 0 }
  }

  /// Seconds from the last failure to the next attempt.
  private(set) var delay = 0.0

  /// One more failure: draws the delay after it.
  mutating func failed(_ rule: ReconnectRule, limits: ClientLimits, unit: Double) {
    let isFirst = failures == 0
    failures += 1
    let growing = limits.delay(before: failures)
    delay =
      switch rule {
      case .never: .infinity
      case .spread where isFirst: limits.spreadSeconds * unit
      case .backOff, .spread: growing * (1 + limits.jitter * unit)
      case .notBefore(let seconds): max(seconds, growing) * (1 + limits.jitter * unit)
      }
  }
}
