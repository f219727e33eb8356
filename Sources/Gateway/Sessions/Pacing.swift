// The rate of one session, and what happens above it: input waits, then the session is warned, then closed. Violations
// of the message rules are counted here, too.
import HubBytes
import HubMessages

/// A session's pace: its budget, its debt, and the input that waits because of it.
struct Pacing {
  /// Units of work (`WorkUnits`): `units` a second on average (0 for no limit), and `burst` at once.
  struct Rate {
    let units: Double
    let burst: Double

    init(units: Double, burst: Double) {
      self.units = units
      self.burst = burst
    }

    /// The rate of sessions whose token has none.
    init(_ limits: borrowing Limits) { self.init(units: limits.sessionRate, burst: limits.sessionBurst) }
  }

  /// The decision about a session.
  enum Outcome {
    /// It is within its rate.
    case proceed
    /// It is over its rate: input waits until then (uptime, ns), when it is checked again.
    case pause(until: Int64)
    /// Warn that it has been over its rate for long, and check again.
    case warn
    case close(CloseReason)
  }

  private var bucket: TokenBucket
  /// Nil until there are violations or held input.
  private var violations: Violations?
  /// Whether the session has overdrawn its budget and was not level at any check since.
  private(set) var isInDebt = false
  /// Reading has stopped, and input waits, because it came while the session was in debt.
  private(set) var isPaused = false

  /// `leftover`: what another session of the same identity has left; nil for a full bucket.
  init(_ rate: Rate, _ leftover: TokenBucket? = nil, now: Int64) {
    bucket = leftover ?? TokenBucket(burst: rate.burst, now: now)
    isInDebt = leftover != nil
  }

  /// What the session leaves to the identity's next one, and when that is not needed any more (uptime, ns); nil where
  /// the bucket is full.
  mutating func leftover(_ rate: Rate, now: Int64) -> Leftover? {
    guard rate.units > 0 else { return nil }
    let time = bucket.nanosecondsUntilFull(rate: rate.units, burst: rate.burst, now: now)
    return time == 0 ? nil : Leftover(bucket: bucket, end: now + min(time, nanoseconds(Limits.leftoverSeconds)))
  }

  // MARK: The rate

  /// Charges for work. What was read is handled, so the budget may be overdrawn. That alone is no violation, but input
  /// that comes before the budget is level again is one.
  @inline(__always)
  mutating func charge(_ cost: Double, _ rate: Rate, now: Int64) {
    guard rate.units > 0 else { return }
    if !bucket.charge(cost, rate: rate.units, burst: rate.burst, now: now) { isInDebt = true }
  }

  /// Whether a session that was in debt still is; its input has to wait then.
  mutating func updateDebt(_ rate: Rate, now: Int64) -> Bool {
    isInDebt = nanosecondsUntilLevel(rate, now) > 0
    return isInDebt
  }

  /// Input came from a session in debt: it waits, and nothing more is read, until the session is level.
  mutating func beginPause(now: Int64) {
    let violations = ownViolations()
    // A pause soon after the last one belongs to the same violation.
    if now - violations.resumedAt > nanoseconds(1) {
      violations.overRateSince = now
      violations.wasWarnedOfRate = false
    }
    isPaused = true
  }

  /// Checks a paused session.
  mutating func check(_ rate: Rate, _ limits: borrowing Limits, now: Int64) -> Outcome {
    let violations = ownViolations()
    let over = now - violations.overRateSince
    if violations.wasWarnedOfRate, over >= nanoseconds(limits.rateCloseSeconds) { return .close(.overRate) }
    if over >= nanoseconds(limits.rateWarningSeconds), !violations.wasWarnedOfRate {
      violations.wasWarnedOfRate = true
      violations.overRateSince = now - nanoseconds(limits.rateWarningSeconds)  // however late the warning is
      return .warn
    }
    guard nanosecondsUntilLevel(rate, now) == 0 else { return .pause(until: nextCheck(rate, limits, now: now)) }
    isPaused = false
    isInDebt = false
    violations.resumedAt = now
    return .proceed
  }

  /// When a paused session is to be checked (uptime, ns).
  mutating func nextCheck(_ rate: Rate, _ limits: borrowing Limits, now: Int64) -> Int64 {
    // A session far over its rate is due to be warned, or closed, before its bucket is level.
    let violations = ownViolations()
    let patience = violations.wasWarnedOfRate ? limits.rateCloseSeconds : limits.rateWarningSeconds
    return min(now + nanosecondsUntilLevel(rate, now), violations.overRateSince + nanoseconds(patience))
  }

  private mutating func nanosecondsUntilLevel(_ rate: Rate, _ now: Int64) -> Int64 {
    // `refresh` may have brought a token without a limit.
    if rate.units == 0 { return 0 }
    return bucket.nanosecondsUntilLevel(rate: rate.units, burst: rate.burst, now: now)
  }

  // MARK: Violations

  /// Counts a bad message: too many within a window of time end the session.
  mutating func countBadMessage(_ limits: borrowing Limits, now: Int64) -> Outcome {
    let violations = ownViolations()
    if now - violations.badMessagesSince > nanoseconds(limits.badMessageWindowSeconds) {
      violations.badMessagesSince = now
      violations.badMessages = 0
    }
    violations.badMessages += 1
    return violations.badMessages > limits.badMessages ? .close(.tooManyBadMessages) : .proceed
  }

  /// Created when first needed.
  private mutating func ownViolations() -> Violations {
    if let violations { return violations }
    let new = Violations()
    violations = new
    return new
  }

  // MARK: Input that waits

  var isHolding: Bool { violations?.held != nil }
  var heldBytes: Int { violations?.held?.bytes.count ?? 0 }

  /// Holds `rest`, which was read and has to wait. It is copied, unless it is in the held input already, `taken` bytes
  /// from its start.
  mutating func hold(_ rest: UnsafeRawBufferPointer, taken: Int, of waiting: HeldInput?) {
    let violations = ownViolations()
    if let waiting {
      waiting.done += taken
      violations.held = waiting
    } else {
      violations.held = HeldInput()
      unsafe append(rest)
    }
  }

  /// Appends to the held input.
  mutating func append(_ bytes: UnsafeRawBufferPointer) { unsafe violations?.held?.bytes.append(bytes) }

  /// Takes the held input to continue with it.
  mutating func takeHeld() -> HeldInput? {
    defer { violations?.held = nil }
    return violations?.held
  }
}

/// A bucket that a session has left.
struct Leftover: Sendable {
  let bucket: TokenBucket
  /// When it is full, or forgotten (uptime, ns).
  let end: Int64
}

/// Bad messages, time over the rate, and held input. Most sessions never have any, so it is allocated separately.
private final class Violations {
  var held: HeldInput?
  var badMessages = 0
  /// Uptime in ns: start of the bad messages' window; since when over the rate; when reading was last resumed.
  var badMessagesSince: Int64 = 0
  var overRateSince: Int64 = 0
  var resumedAt = Int64.min / 2
  var wasWarnedOfRate = false
}

/// Frames that were read and wait.
final class HeldInput {
  var bytes = ByteBuffer()
  /// The number of bytes at the start that are handled. They stay until all are handled: a session over its rate
  /// handles one message at a time, and removing each would move the rest.
  fileprivate(set) var done = 0
}
