// Ends the sessions whose token was revoked. Tokens are revoked by `sub` or `jti`, so all sessions of the loop are
// checked, which takes 10 ms for 100,000: in steps, with pauses. However many revocations come, that is a few percent
// of the loop's time, and each is complete within half a second. No revoked token is accepted meanwhile.
import HubCore
import HubMessages
import HubTokens

struct RevocationSweep {
  private let slotsPerStep: Int
  /// The first slot of the next step; at the table's end the sweep is over.
  private var next = 0
  /// Whether something was revoked since the sweep began, so that it has to run once more.
  private var mustRepeat = false
  /// When the next step is due (uptime, ns).
  private(set) var nextStep = Int64.max

  init(slotsPerStep: Int = Limits.sessionsPerSweep) { self.slotsPerStep = slotsPerStep }

  /// Refuses the revoked tokens from now on, and begins to look for their sessions.
  mutating func apply(_ change: RevocationChange, to access: TokenAccess?, now: Int64) {
    access?.stored.apply(change)
    if !change.added.isEmpty { begin(now: now) }
  }

  /// Begins a sweep since something was revoked; one that is under way runs once more.
  mutating func begin(now: Int64) {
    guard nextStep == .max else {
      mustRepeat = true
      return
    }
    (next, nextStep) = (0, now)
  }

  /// Checks some sessions if a step is due; gives the slots of those whose token is revoked. O(sessions of a step).
  mutating func step(_ sessions: borrowing SessionTable, by access: TokenAccess?, now: Moment) -> [Int] {
    guard now.uptime >= nextStep else { return [] }
    let end = min(sessions.endIndex, next + max(slotsPerStep, sessions.endIndex / Limits.sweepSteps))
    let found = (next..<end).filter { sessions[$0].isRevoked(by: access, now: now.timestamp) }
    (next, nextStep) = (end, now.uptime + Limits.sweepPause)
    if next == sessions.endIndex {
      nextStep = mustRepeat ? nextStep : .max
      (next, mustRepeat) = (0, false)
    }
    return found
  }
}
