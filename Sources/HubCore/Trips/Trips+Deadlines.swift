// Deadlines of trips: of an active one, in case nobody ends it; of an ended one, to unsubscribe its subscribers and
// then to forget it.
//
// Times from before a restart are computed from the wall clock, which may be wrong when a machine starts. So no trip
// from before is cancelled or forgotten in the first minutes after a start, and then they are computed once more.
import HubMessages

extension Trips {
  /// Arms a trip's deadline for its abandonment, or for the end of its grace.
  func arm(_ trip: Int, _ deadlines: inout Deadlines) {
    if self[trip].ended == nil {
      deadlines.arm(.tripSilence, handle(of: trip), at: endOfRetention(trip))
    } else {
      deadlines.arm(.trip, handle(of: trip), at: self[trip].closes)
    }
  }

  /// When a trip's retention is over.
  private func endOfRetention(_ trip: Int) -> Int64 {
    let end = self[trip].retained + nanoseconds(timings.retention)
    guard self[trip].retained < start else { return end }
    return max(end, start + nanoseconds(min(timings.returning, timings.retention)))
  }

  /// Whether a trip's retention is over. Where it began before a restart, the trip's times are computed anew first.
  private mutating func reviewRetention(_ trip: Int, at now: Moment) -> Bool {
    guard now.uptime >= endOfRetention(trip) else { return false }
    if self[trip].retained < start { slab[trip].resume(at: now, grace: nanoseconds(timings.tripGrace)) }
    return now.uptime >= endOfRetention(trip)
  }

  /// Handles an active trip's deadline: cancels the trip where nothing was heard of it for a retention. Else, or where
  /// that cannot be stored, arms the deadline again.
  mutating func checkSilence(
    _ trip: Int, at now: Moment, canStore: Bool, _ deadlines: inout Deadlines
  ) -> TripStep? {
    guard self[trip].ended == nil else { return nil }
    guard reviewRetention(trip, at: now) else {
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
  mutating func checkRetention(_ trip: Int, at now: Moment, canStore: Bool, _ deadlines: inout Deadlines) -> Bool {
    guard self[trip].ended != nil else { return false }
    let isOver = reviewRetention(trip, at: now)
    if isOver, canStore { return true }
    let look =
      isOver
      ? now.uptime + nanoseconds(timings.storageRetry)
      : self[trip].isClosed ? endOfRetention(trip) : self[trip].closes
    deadlines.arm(.trip, handle(of: trip), at: look)
    return false
  }
}
