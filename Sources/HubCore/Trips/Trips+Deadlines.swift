// When a trip is looked at again: while it goes on, in case nobody ends it; and when it is over, to let its subscribers
// go and then to forget it.
import HubMessages

extension Trips {
  /// Has a trip looked at when nobody may have ended it, or when its grace is over.
  func arm(_ trip: Int, _ deadlines: inout Deadlines) {
    if self[trip].ended == nil {
      deadlines.arm(.tripSilence, handle(of: trip), at: self[trip].lastHeard + nanoseconds(timings.retention))
    } else {
      deadlines.arm(.trip, handle(of: trip), at: self[trip].closes)
    }
  }

  /// The entry that watches a trip while it goes on came up: cancels it where nothing was heard of it for the
  /// retention, and has it looked at again where that cannot be stored, or something was heard.
  mutating func checkSilence(
    _ trip: Int, at now: Moment, canStore: Bool, _ deadlines: inout Deadlines
  ) -> TripStep? {
    guard self[trip].ended == nil else { return nil }
    guard now.uptime >= self[trip].lastHeard + nanoseconds(timings.retention) else {
      arm(trip, &deadlines)
      return nil
    }
    guard canStore else {
      deadlines.arm(.tripSilence, handle(of: trip), at: now.uptime + nanoseconds(timings.storageRetry))
      return nil
    }
    return move(trip, to: .cancelled, at: now.timestamp, nil, now)
  }

  /// The entry of an ended trip came up: true where it is to be forgotten now. Else it is looked at again.
  func checkRetention(_ trip: Int, at uptime: Int64, canStore: Bool, _ deadlines: inout Deadlines) -> Bool {
    guard let ended = self[trip].ended else { return false }
    let forgets = ended + nanoseconds(timings.retention)
    if uptime >= forgets, canStore { return true }
    let look =
      uptime >= forgets ? uptime + nanoseconds(timings.storageRetry) : self[trip].isClosed ? forgets : self[trip].closes
    deadlines.arm(.trip, handle(of: trip), at: look)
    return false
  }
}
