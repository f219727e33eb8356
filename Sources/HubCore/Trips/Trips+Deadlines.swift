// Deadlines of trips: of an active one, in case nobody ends it; of an ended one, to unsubscribe its subscribers and
// then to forget it.
import HubMessages

extension Trips {
  /// Arms a trip's deadline for its abandonment, or for the end of its grace.
  func arm(_ trip: Int, _ deadlines: inout Deadlines) {
    if self[trip].ended == nil {
      deadlines.arm(.tripSilence, handle(of: trip), at: self[trip].lastHeard + nanoseconds(timings.retention))
    } else {
      deadlines.arm(.trip, handle(of: trip), at: self[trip].closes)
    }
  }

  /// Handles an active trip's deadline: cancels it where nothing came for the retention; arms it again where that
  /// cannot be stored, or something came.
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

  /// Handles an ended trip's deadline: true where it is to be forgotten now. Else arms it again.
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
