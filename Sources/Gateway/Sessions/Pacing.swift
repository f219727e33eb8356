// How much one session may ask for, and what becomes of one that asks for more: what it has sent waits, then it is
// told, then it ends. Who breaks the rules of messages is counted beside it.
import HubBytes
import HubMessages

/// A session's pace: what it has left to spend, what it owes, and what waits because of that.
struct Pacing {
  /// Units of work (`WorkUnits`) a second, on average (0 for no limit), and that may come at once.
  struct Rate {
    let units: Double
    let burst: Double

    init(units: Double, burst: Double) {
      self.units = units
      self.burst = burst
    }

    /// That of sessions whose token says nothing of it.
    init(_ limits: borrowing Limits) { self.init(units: limits.sessionRate, burst: limits.sessionBurst) }
  }

  /// What is to be done with a session.
  enum Outcome {
    /// It is within its rate.
    case proceed
    /// It is not: what comes waits until then (uptime, ns), when it is looked at again.
    case pause(until: Int64)
    /// It is to be told that it has been over its rate for long, and looked at again.
    case warn
    case close(CloseReason)
  }

  private var bucket: TokenBucket
  /// Nil while there are none, and nothing was ever held.
  private var violations: Violations?
  /// The session has spent more than it had, and was not seen to be level since.
  private(set) var isInDebt = false
  /// Reading has stopped, and what came waits, because the session was in debt when it came.
  private(set) var isPaused = false

  init(_ rate: Rate, now: Int64) { bucket = TokenBucket(burst: rate.burst, now: now) }

  // MARK: The rate

  /// Charges for work. What has been read is done, so the session may owe some of it then: that alone is within its
  /// rate. What comes before it is level again is not.
  @inline(__always)
  mutating func charge(_ cost: Double, _ rate: Rate, now: Int64) {
    guard rate.units > 0 else { return }
    if !bucket.charge(cost, rate: rate.units, burst: rate.burst, now: now) { isInDebt = true }
  }

  /// Whether what comes now has to wait: a session that was in debt still is.
  mutating func isOver(_ rate: Rate, now: Int64) -> Bool {
    isInDebt = wait(rate, now) > 0
    return isInDebt
  }

  /// Something came from a session in debt: it waits, and nothing more is read, until the session is level.
  mutating func beginPause(now: Int64) {
    let violations = ownViolations()
    // A pause soon after the last one belongs to the same excess.
    if now - violations.resumedAt > nanoseconds(1) {
      violations.overRateSince = now
      violations.wasWarnedOfRate = false
    }
    isPaused = true
  }

  /// Looks at a paused session.
  mutating func check(_ rate: Rate, _ limits: borrowing Limits, now: Int64) -> Outcome {
    let violations = ownViolations()
    let over = now - violations.overRateSince
    if violations.wasWarnedOfRate, over >= nanoseconds(limits.rateCloseSeconds) { return .close(.overRate) }
    if over >= nanoseconds(limits.rateWarningSeconds), !violations.wasWarnedOfRate {
      violations.wasWarnedOfRate = true
      violations.overRateSince = now - nanoseconds(limits.rateWarningSeconds)  // however late it is told
      return .warn
    }
    guard wait(rate, now) == 0 else { return .pause(until: nextCheck(rate, limits, now: now)) }
    isPaused = false
    isInDebt = false
    violations.resumedAt = now
    return .proceed
  }

  /// When a paused session is to be looked at (uptime, ns).
  mutating func nextCheck(_ rate: Rate, _ limits: borrowing Limits, now: Int64) -> Int64 {
    // Far over the rate the bucket is level again only after the session should have been told, or closed.
    let violations = ownViolations()
    let patience = violations.wasWarnedOfRate ? limits.rateCloseSeconds : limits.rateWarningSeconds
    return min(now + wait(rate, now), violations.overRateSince + nanoseconds(patience))
  }

  private mutating func wait(_ rate: Rate, _ now: Int64) -> Int64 {
    bucket.wait(rate: rate.units, burst: rate.burst, now: now)
  }

  // MARK: Violations

  /// A message was at fault: too many within a window of time end the session.
  mutating func countBadMessage(_ limits: borrowing Limits, now: Int64) -> Outcome {
    let violations = ownViolations()
    if now - violations.badMessagesSince > nanoseconds(limits.badMessageWindowSeconds) {
      violations.badMessagesSince = now
      violations.badMessages = 0
    }
    violations.badMessages += 1
    return violations.badMessages > limits.badMessages ? .close(.tooManyBadMessages) : .proceed
  }

  /// Made when they are first needed.
  private mutating func ownViolations() -> Violations {
    if let violations { return violations }
    let new = Violations()
    violations = new
    return new
  }

  // MARK: Input that waits

  var isHolding: Bool { violations?.held != nil }
  var heldBytes: Int { violations?.held?.bytes.count ?? 0 }

  /// `rest` is what was read and is to wait. It is copied, unless it lies `taken` bytes on in what has waited before.
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

  /// More came, behind what waits.
  mutating func append(_ bytes: UnsafeRawBufferPointer) { unsafe violations?.held?.bytes.append(bytes) }

  /// What waits, to be gone on with.
  mutating func takeHeld() -> HeldInput? {
    defer { violations?.held = nil }
    return violations?.held
  }
}

/// Messages at fault, messages beyond the rate, and what waits because of that. Most sessions never have any, so they
/// don't carry the room for it.
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
  /// So many of them are done with. They stay until all are: a session over its rate takes up one message at a time,
  /// and what lies behind it is not moved for each.
  fileprivate(set) var done = 0
}
