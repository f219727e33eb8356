// Fixes on their way into the journal: one record for each message that brought some. `location_update` waits for
// nothing and its fix is stored soon; the `ack` of a batch waits.
//
// The record is made when the whole message was handled, because it ends with what the trip has come to; until then its
// fixes are in a buffer of their own, as events may be recorded meanwhile.
import HubMessages

extension Hub {
  /// Whether the fixes of a message will be recorded.
  @inline(__always)
  var recordsFixes: Bool { channels.storage.isOn && channels.storage.hasRoom }

  /// A fix was taken in: it goes into its message's record.
  @inline(__always)
  mutating func record(_ fix: Fix, _ disposition: StoredFix.Disposition, _ position: Position?, driver: Int) {
    channels.storage.add(fix, disposition, position)
    let (ticket, through) = (channels.storage.ticket, channels.storage.storedThrough)
    if position != nil {
      drivers[driver].durable.published(fix.timestamp, ticket: ticket, storedThrough: through)
      // While nothing could be stored nobody could be told that it is back.
      if drivers[driver].durable.isOffline { publishOnline(driver) }
    } else {
      drivers[driver].durable.unpublished(fix.timestamp, ticket: ticket, storedThrough: through)
    }
    // What `confirmed` records is where it was published; what was measured may still be missing.
    if !drivers[driver].durable.missed.isEmpty, disposition != .confirmed {
      drivers.noteFound(fix.timestamp, driver: driver)
    }
  }

  /// A message's fixes were handled: those that were taken in become a record.
  @inline(__always)
  mutating func recordFixes(driver: Int, trip: Int?, received: Timestamp) {
    guard channels.storage.hasFixes else { return }
    if let trip { drivers[driver].lastTrip = trips.handle(of: trip) }
    drivers[driver].durable.note(heard: received, hasPublished: channels.storage.hasPublishedFixes)
    drivers[driver].durable.sendingInterval = drivers[driver].storedSendingInterval
    channels.storage.writeFixes(
      driverID: drivers[driver].id, tripID: trip.map { trips[$0].id }, received: received,
      tracking: drivers[driver].tracking, progress: trip.map { trips[$0].progress },
      published: drivers[driver].tracker.publishedApart)
  }

  mutating func recordDriver(_ driver: Int) {
    guard channels.storage.isOn else { return }
    drivers[driver].durable.note(heard: now.timestamp, hasPublished: false)
    channels.storage.write(.driver(durable(driver)))
  }

  func durable(_ driver: Int) -> DurableDriver {
    let positionTrip = tripOfPosition(of: driver)
    return drivers[driver].durable(
      drivers.profiles.profile(drivers[driver].profile),
      trip: (positionTrip ?? lastTrip(of: driver)).map { trips[$0].id }, isPositionOnTrip: positionTrip != nil)
  }
}
