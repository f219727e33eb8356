// A session's rate: a token bucket (see RFC 3290 §A.1) that may be overdrawn, because what was read is handled; reading
// then stops until it is level again.

/// Tokens of one session, refilled by time.
struct TokenBucket {
  private var tokens: Float
  /// Uptime in milliseconds, wrapping after 49 days: only short differences are used.
  private var refilled: UInt32
  /// The largest step back in time, in milliseconds: loops that share a bucket charge it with the times of their own
  /// turns. A larger difference is that of a later time, wrapped around zero.
  private static let longestStepBack: UInt32 = 3_600_000

  init(burst: Double, now: Int64) {
    tokens = Float(burst)
    refilled = TokenBucket.milliseconds(now)
  }

  /// Takes `cost` tokens; false when the bucket is now overdrawn.
  mutating func charge(_ cost: Double, rate: Double, burst: Double, now: Int64) -> Bool {
    refill(rate: rate, burst: burst, now: now)
    tokens -= Float(cost)
    return tokens >= 0
  }

  /// Nanoseconds until the bucket is level; 0 when it is.
  mutating func nanosecondsUntilLevel(rate: Double, burst: Double, now: Int64) -> Int64 {
    refill(rate: rate, burst: burst, now: now)
    return tokens >= 0 ? 0 : TokenBucket.nanoseconds(Double(-tokens), rate)
  }

  /// Takes `cost` tokens if the bucket has them, or is full apart from what the same work has `paid` before. Otherwise
  /// it takes none and gives false: the work is refused.
  mutating func chargeIfLevel(_ cost: Double, paid: Double = 0, rate: Double, burst: Double, now: Int64) -> Bool {
    refill(rate: rate, burst: burst, now: now)
    guard tokens >= Float(min(cost, burst - paid)) else { return false }
    tokens -= Float(cost)
    return true
  }

  /// Nanoseconds until the bucket has `count` tokens, or is full; 0 where it already is so.
  mutating func nanosecondsUntil(has count: Double, rate: Double, burst: Double, now: Int64) -> Int64 {
    refill(rate: rate, burst: burst, now: now)
    let count = min(count, burst)
    return tokens >= Float(count) ? 0 : TokenBucket.nanoseconds(count - Double(tokens), rate)
  }

  /// Nanoseconds until the bucket is full; 0 when it is.
  mutating func nanosecondsUntilFull(rate: Double, burst: Double, now: Int64) -> Int64 {
    nanosecondsUntil(has: burst, rate: rate, burst: burst, now: now)
  }

  /// The number of tokens; negative where it is overdrawn.
  mutating func level(rate: Double, burst: Double, now: Int64) -> Double {
    refill(rate: rate, burst: burst, now: now)
    return Double(tokens)
  }

  private mutating func refill(rate: Double, burst: Double, now: Int64) {
    let milliseconds = TokenBucket.milliseconds(now)
    guard refilled &- milliseconds > TokenBucket.longestStepBack else { return }
    let passed = milliseconds &- refilled
    refilled = milliseconds
    tokens = min(Float(burst), tokens + Float(Double(passed) / 1000 * rate))
  }

  /// The time that so many tokens take, at most a day: a token may grant a tiny rate.
  private static func nanoseconds(_ tokens: Double, _ rate: Double) -> Int64 {
    Int64(min(tokens / rate, 86_400) * 1e9) + 1_000_000
  }

  private static func milliseconds(_ uptime: Int64) -> UInt32 { UInt32(truncatingIfNeeded: uptime / 1_000_000) }
}
