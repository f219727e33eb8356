// Fixes on their way into the journal: one record for each message that brought some. `location_update` waits for
// nothing and its fix is stored soon; the `ack` of a batch waits.
//
// The record is made when the whole message was handled, because it ends with what the trip has come to; until then its
// fixes are in a buffer of their own, as events may be recorded meanwhile.
import HubMessages

extension Hub {
  /// Whether the fixes of a message will be recorded.
  @inline(__always)
  var recordsFixes: Bool { storage.isOn && storage.hasRoom }

  /// A fix was taken in: it goes into its message's record.
  @inline(__always)
  mutating func record(_ fix: Fix, _ disposition: StoredFix.Disposition, _ position: Position?, driver: Int) {
    storage.add(fix, disposition, position)
    drivers.noteRecord(
      of: fix.timestamp, disposition, isPublished: position != nil, driver: driver, ticket: storage.ticket,
      storedThrough: storage.storedThrough)
    // While nothing could be stored nobody could be told that it is back.
    if position != nil, drivers[driver].durable.isOffline { publishOnline(driver) }
  }

  /// A message's fixes were handled: those that were taken in become a record.
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
    storage.write(.driver(drivers.durable(driver, trips)))
  }
}
