// A token bucket like the hub's (protocol/rates.md), so that the hub never has to stop reading from this client.
import HubMessages

struct SendBudget {
  /// Messages a second; 0 for no limit.
  private(set) var rate = 0.0
  private var burst = 1.0
  private var tokens = 1.0
  private var refilled: Int64 = 0

  /// A full bucket, for a new connection.
  mutating func begin(rate: Double, burst: Double, now: Int64) {
    self.rate = rate
    self.burst = max(1, burst)
    tokens = self.burst
    refilled = now
  }

  /// Whether a message of this cost may be sent. One that costs more than a full bucket is sent when the bucket is
  /// full.
  mutating func allows(_ cost: Double, now: Int64) -> Bool {
    guard rate > 0 else { return true }
    refill(now)
    return tokens >= min(cost, burst)
  }

  mutating func charge(_ cost: Double, now: Int64) {
    guard rate > 0 else { return }
    refill(now)
    tokens -= cost
  }

  /// When a message of this cost may be sent (uptime, ns).
  func time(for cost: Double) -> Int64 {
    guard rate > 0 else { return refilled }
    let missing = min(cost, burst) - tokens
    return missing <= 0 ? refilled : refilled + nanoseconds(missing / rate) + 1_000_000
  }

  private mutating func refill(_ now: Int64) {
    guard now > refilled else { return }
    tokens = min(burst, tokens + Double(now - refilled) / 1e9 * rate)
    refilled = now
  }
}
