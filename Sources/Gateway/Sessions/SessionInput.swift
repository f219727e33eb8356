// Input of a session that may not be handled yet. Its states:
//
//     read → handled                     nothing blocks it: nearly always
//     read → held → resumed → handled    `TurnBudget.holdIfBlocked` keeps it, and the socket is not read, until
//         .rate      the session is within its rate: its timer asks `Pacing.check`
//         .turn      the next turn, in order (`TurnBudget.resumeNextTurn`)
//         .answers   its subscriptions are answered, and its outbox is read
//
// What resumes may be held again: a session over its rate handles one message at a time.
import HubMessages
import HubTransport

extension Session {
  /// What blocks a session's input.
  enum BlockReason {
    /// The session is over its rate.
    case rate
    /// The turn's work is used up. Many sessions may each send expensive messages within their rates at the same time;
    /// positions must be handled in between.
    case turn
    /// The limit of unanswered subscriptions is reached.
    case answers
  }

  /// What blocks further input; nil where nothing does, and for an ended session.
  @inline(__always)
  mutating func blockReason(hasUnits: Bool, _ usual: Pacing.Rate, maximumUnanswered: Int, now: Int64) -> BlockReason? {
    guard phase == .open else { return nil }
    if open.pacing.isInDebt, updateDebt(usual, now) { return .rate }
    if !hasUnits, open.rights.role != .driver { return .turn }
    return open.subscriptions.unanswered >= maximumUnanswered ? .answers : nil
  }

  private mutating func updateDebt(_ usual: Pacing.Rate, _ now: Int64) -> Bool {
    let rate = open.rights.rate(usual)
    return open.pacing.updateDebt(rate, now: now)
  }

  /// Holds input that has to wait; if it is held input already, it is `taken` bytes from its start.
  mutating func hold(
    _ rest: UnsafeRawBufferPointer, taken: Int, of waiting: HeldInput?, for reason: BlockReason, now: Int64
  ) {
    if case .rate = reason { open.pacing.beginPause(now: now) }
    unsafe open.pacing.hold(rest, taken: taken, of: waiting)
  }

  /// Takes the held input, where nothing holds it any more.
  mutating func takeHeld() -> HeldInput? {
    guard isHolding, open.subscriptions.unanswered == 0, !open.pacing.isPaused else { return nil }
    return open.pacing.takeHeld()
  }

  /// Whether the socket may be read again. `limit`: of the bytes behind a request whose answer is due.
  func mayRead(atMost limit: Int) -> Bool {
    if phase == .open { return !open.pacing.isHolding && !open.pacing.isPaused }
    return exchange?.mayRead(atMost: limit) ?? true
  }

  // MARK: Charging

  /// Charges an open session for work.
  @inline(__always)
  mutating func charge(_ cost: Double, _ usual: Pacing.Rate, now: Int64) {
    guard phase == .open else { return }
    let rate = open.rights.rate(usual)
    open.pacing.charge(cost, rate, now: now)
  }
}
