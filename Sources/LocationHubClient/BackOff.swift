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

  /// Seconds until the next attempt after one more failure.
  mutating func delay(_ rule: ReconnectRule, limits: ClientLimits, unit: Double) -> Double? {
    let isFirst = failures == 0
    // Beyond 2^30 the delay has long been the longest one.
    failures = min(failures + 1, 31)
    let growing = min(limits.firstDelay * Double(UInt64(1) << UInt64(failures - 1)), limits.longestDelay)
    switch rule {
    case .never: return nil
    case .backOff: return growing * (1 + limits.jitter * unit)
    case .spread: return isFirst ? limits.spreadSeconds * unit : growing * (1 + limits.jitter * unit)
    case .notBefore(let seconds): return max(seconds, growing) * (1 + limits.jitter * unit)
    }
  }
}
