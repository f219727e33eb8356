// How much a session may ask for: a token bucket (RFC 3290 §A.1 for the principle) that may go below zero, because
// what has been read is handled; reading then stops until it is level again.

/// Tokens of one session, refilled by time.
struct TokenBucket {
  private var tokens: Float
  /// Uptime in milliseconds, wrapping after 49 days: only short differences are used.
  private var refilled: UInt32

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

  /// Nanoseconds until the bucket is level again; 0 when it is.
  mutating func wait(rate: Double, burst: Double, now: Int64) -> Int64 {
    refill(rate: rate, burst: burst, now: now)
    return tokens >= 0 ? 0 : TokenBucket.nanoseconds(Double(-tokens), rate)
  }

  /// Takes `cost` tokens if they are there, or if the bucket is full: for work that is refused otherwise, and then not
  /// done.
  mutating func chargeIfLevel(_ cost: Double, rate: Double, burst: Double, now: Int64) -> Bool {
    refill(rate: rate, burst: burst, now: now)
    guard tokens >= Float(min(cost, burst)) else { return false }
    tokens -= Float(cost)
    return true
  }

  /// Nanoseconds until that many tokens are there, or the bucket is full; 0 when that is so.
  mutating func wait(toHave count: Double, rate: Double, burst: Double, now: Int64) -> Int64 {
    refill(rate: rate, burst: burst, now: now)
    let count = min(count, burst)
    return tokens >= Float(count) ? 0 : TokenBucket.nanoseconds(count - Double(tokens), rate)
  }

  /// Whether nothing was taken that has not come back.
  mutating func isFull(rate: Double, burst: Double, now: Int64) -> Bool {
    refill(rate: rate, burst: burst, now: now)
    return tokens >= Float(burst)
  }

  /// How many tokens there are; fewer than none where it is overdrawn.
  mutating func level(rate: Double, burst: Double, now: Int64) -> Double {
    refill(rate: rate, burst: burst, now: now)
    return Double(tokens)
  }

  private mutating func refill(rate: Double, burst: Double, now: Int64) {
    let milliseconds = TokenBucket.milliseconds(now)
    let passed = milliseconds &- refilled
    guard passed > 0 else { return }
    refilled = milliseconds
    tokens = min(Float(burst), tokens + Float(Double(passed) / 1000 * rate))
  }

  /// The time that so many tokens take, a day at most: a token may grant a rate of next to nothing.
  private static func nanoseconds(_ tokens: Double, _ rate: Double) -> Int64 {
    Int64(min(tokens / rate, 86_400) * 1e9) + 1_000_000
  }

  private static func milliseconds(_ uptime: Int64) -> UInt32 { UInt32(truncatingIfNeeded: uptime / 1_000_000) }
}
