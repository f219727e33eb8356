// Input of a session that has to wait: for its rate, for the next turn, for the answers to what it asked before.
import HubMessages
import HubTransport

extension Session {
  enum Wait {
    /// The session is over its rate.
    case rate
    /// Enough was done in this turn. A crowd of sessions may each send dear messages within its rate, in the same
    /// moment; positions come in and leave between them.
    case turn
    /// Enough subscriptions are under way.
    case answers
  }

  /// Why what came has to wait; nil where it has not, and for a session that is over. `isBehindMessage`: a message was
  /// handled before it.
  @inline(__always)
  mutating func mustWait(
    isBehindMessage: Bool, hasUnits: Bool, _ usual: Pacing.Rate, maximumUnanswered: Int, now: Int64
  ) -> Wait? {
    guard phase == .open else { return nil }
    if open.pacing.isInDebt, isOverRate(usual, now) { return .rate }
    if !hasUnits, open.rights.role != .driver { return .turn }
    guard isBehindMessage else { return nil }
    return open.subscriptions.unanswered >= maximumUnanswered ? .answers : nil
  }

  private mutating func isOverRate(_ usual: Pacing.Rate, _ now: Int64) -> Bool {
    let rate = open.rights.rate(usual)
    return open.pacing.isOver(rate, now: now)
  }

  /// Keeps what was read and has to wait: it lies `taken` bytes on in what has waited before, if that is where it comes
  /// from.
  mutating func hold(
    _ rest: UnsafeRawBufferPointer, taken: Int, of waiting: HeldInput?, for wait: Wait, now: Int64
  ) {
    if case .rate = wait { open.pacing.beginPause(now: now) }
    unsafe open.pacing.hold(rest, taken: taken, of: waiting)
  }

  /// What waits, where nothing keeps it any more.
  mutating func takeHeld() -> HeldInput? {
    guard isHolding, open.subscriptions.unanswered == 0, !open.pacing.isPaused else { return nil }
    return open.pacing.takeHeld()
  }

  /// Whether the socket may be read again.
  var mayRead: Bool { phase != .open || !open.pacing.isHolding && !open.pacing.isPaused }

  // MARK: Charging

  /// Charges an open session for work.
  @inline(__always)
  mutating func charge(_ cost: Double, _ usual: Pacing.Rate, now: Int64) {
    guard phase == .open else { return }
    let rate = open.rights.rate(usual)
    open.pacing.charge(cost, rate, now: now)
  }
}
