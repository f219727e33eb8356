// Fixes recorded in the journal: one record for each message with fixes. A `location_update` does not wait for it; the
// `ack` of a batch does.
//
// The record is made when the whole message is handled, because it ends with the trip's progress. Until then its fixes
// are in a buffer of their own, since events may be recorded meanwhile.
import HubMessages

extension Hub {
  /// Adds an accepted fix to its message's record.
  @inline(__always)
  mutating func record(_ fix: Fix, _ disposition: StoredFix.Disposition, _ position: Position?, driver: Int) {
    storage.add(fix, disposition, position)
    drivers.noteRecord(
      of: fix.timestamp, disposition, isPublished: position != nil, driver: driver, ticket: storage.ticket,
      storedThrough: storage.storedThrough)
    // `driver_online` is still due if the driver came back while nothing could be stored.
    if position != nil, drivers[driver].durable.isOffline { publishOnline(driver) }
  }

  /// Writes the accepted fixes of a handled message as a record.
  @inline(__always)
  mutating func recordFixes(driver: Int, trip: Int?, received: Timestamp) {
    guard storage.hasFixes else { return }
    drivers.noteRecord(
      driver, trip: trip.map { trips.handle(of: $0) }, heard: received, hasPublished: storage.hasPublishedFixes)
    storage.writeFixes(
      driverID: drivers[driver].id, tripID: trip.map { trips[$0].id }, received: received,
      tracking: drivers[driver].tracking, progress: trip.map { trips[$0].progress },
      published: drivers[driver].tracker.publishedApart)
  }

  mutating func recordDriver(_ driver: Int) {
    guard storage.isOn else { return }
    drivers.noteRecord(driver, heard: now.timestamp)
    storage.write(.driver(trips.durable(driver: driver, of: drivers)))
  }
}
