// The retries of a failed delivery. The steps are those of the specification's example
// (https://github.com/standard-webhooks/standard-webhooks, "Deliverability and reliability"), with jitter, so that
// webhooks which failed together are not retried together.
import HubMessages

/// The delays between the tries of one event.
enum RetrySchedule {
  /// Seconds after the first failure, the second one, and so on; the last one repeats.
  static let seconds = [5.0, 30, 120, 600, 1800, 3600, 7200]
  /// The fraction of a delay by which jitter changes it at most.
  static let jitter = 0.2

  /// Nanoseconds from the failure to the next try, after this many failures (1 or more). `unit` is random: uniform, 0 ≤
  /// unit < 1. A receiver's Retry-After makes the delay longer, never shorter.
  static func delay(afterFailures failures: Int, retryAfterSeconds: Double?, unit: Double) -> Int64 {
    let step = seconds[min(max(failures, 1), seconds.count) - 1] * (1 - jitter + 2 * jitter * unit)
    return nanoseconds(max(step, wait(retryAfterSeconds)))
  }

  /// A receiver's Retry-After in seconds, up to the limit.
  static func wait(_ retryAfterSeconds: Double?) -> Double {
    min(max(retryAfterSeconds ?? 0, 0), maximumRetryAfterSeconds)
  }
}
