// When a failed delivery is tried again. The steps are those of the specification's example
// (https://github.com/standard-webhooks/standard-webhooks, "Deliverability and reliability"), with chance on top, so
// that webhooks which failed together do not come back together.

/// The delays between the tries of one event.
public enum RetrySchedule {
  /// Seconds after the first failure, the second one, and so on; the last one repeats.
  static let seconds = [5.0, 30, 120, 600, 1800, 3600, 7200]
  /// The share of a delay by which chance makes it shorter or longer.
  static let jitter = 0.2

  /// Nanoseconds from the failure to the next try, after this many failures (1 or more). `unit` is chance: uniform,
  /// 0 ≤ unit < 1. A receiver's Retry-After makes the delay longer, never shorter.
  public static func delay(afterFailures failures: Int, retryAfterSeconds: Double?, unit: Double) -> Int64 {
    let step = seconds[min(max(failures, 1), seconds.count) - 1] * (1 - jitter + 2 * jitter * unit)
    return Int64(max(step, wait(retryAfterSeconds)) * 1e9)
  }

  /// Seconds that a receiver asked for, as far as it is heard.
  static func wait(_ retryAfterSeconds: Double?) -> Double {
    min(max(retryAfterSeconds ?? 0, 0), maximumRetryAfterSeconds)
  }
}
