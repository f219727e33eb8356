// Delays before reconnecting: exponential with jitter, so that clients which lost a hub together do not return together
// (protocol/connecting.md, "Heartbeat and reconnect").

/// The delays of one client. Randomness is a parameter: `unit` is uniform, 0 ≤ unit < 1.
struct BackOff: Equatable {
  /// Consecutive failures.
  private(set) var failures = 0

  /// Resets the failures if the connection lasted long enough.
  mutating func connectionStood(seconds: Double, limits: ClientLimits) {
    if seconds >= limits.stableSeconds { failures = 0 }
  }

  /// Seconds from the last failure to the next attempt.
  private(set) var delay = 0.0

  /// Counts a failure and draws the delay after it.
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
