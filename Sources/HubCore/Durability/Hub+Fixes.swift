// Fixes on their way into the journal: one record for each message that brought some, and what a hub that reads them back
// makes of them. `location_update` waits for nothing and its fix is stored soon; the `ack` of a batch waits.
//
// The record is made when the whole message was handled, because it ends with what the trip has come to; until then its
// fixes are in a buffer of their own, as events may be recorded meanwhile.
import Messages

extension Hub {
  /// Whether the fixes of a message will be recorded.
  @inline(__always)
  var recordsFixes: Bool { storage.isOn && storage.hasRoom }

  /// A fix was taken in: it goes into its message's record.
  @inline(__always)
  mutating func record(_ fix: Fix, _ standing: StoredFix.Standing, _ position: Position?, driver: Int) {
    storage.add(fix, standing, position)
    let (ticket, through) = (storage.ticket, storage.storedThrough)
    if position != nil {
      drivers[driver].durable.published(fix.timestamp, ticket: ticket, storedThrough: through)
    } else {
      drivers[driver].durable.unpublished(fix.timestamp, ticket: ticket, storedThrough: through)
    }
    // What `confirmed` records is where it was published; what was measured may still be missing.
    if !drivers[driver].durable.missed.isEmpty, standing != .confirmed { noteFound(fix.timestamp, driver: driver) }
  }

  /// A fix was taken in while nothing could be recorded.
  mutating func noteMissed(_ time: Timestamp, driver: Int) {
    counters.fixesNotStored += 1
    let hasRoom =
      missedFixes < limits.missedFixes && drivers[driver].durable.missed.count < limits.missedFixesPerDriver
    if drivers[driver].durable.miss(time, hasRoom: hasRoom) {
      missedFixes += 1
    } else if !hasRoom {
      counters.tableLimitHits += 1
    }
  }

  /// The journal has the fix.
  mutating func noteFound(_ time: Timestamp, driver: Int) {
    if drivers[driver].durable.find(time) { missedFixes -= 1 }
  }

  /// A message's fixes were handled: those that were taken in become a record.
  @inline(__always)
  mutating func recordFixes(driver: Int, trip: Int?, received: Timestamp) {
    guard storage.hasFixes else { return }
    drivers[driver].durable.isKnown = true
    drivers[driver].durable.heard = received
    storage.writeFixes(
      driverID: drivers[driver].id, tripID: trip.map { trips[$0].id }, received: received,
      progress: trip.map { trips[$0].progress })
  }

  mutating func recordDriver(_ driver: Int) {
    guard storage.isOn else { return }
    drivers[driver].durable.isKnown = true
    if drivers[driver].durable.newest == nil { drivers[driver].durable.heard = now.timestamp }
    storage.write(.driver(durable(driver)))
  }

  func durable(_ driver: Int) -> DurableDriver {
    DurableDriver(
      id: drivers[driver].id, status: drivers[driver].reported, profile: profiles.profile(drivers[driver].profile),
      newest: drivers[driver].durable.newest, heard: drivers[driver].durable.heard)
  }

  // MARK: Reading back

  mutating func load(_ fixes: DurableFixes) -> Bool {
    if let id = fixes.tripID {
      guard let trip = findTrip(id) else { return false }
      if let progress = fixes.progress { trips[trip].progress = progress }
    }
    // A driver that the table has no room for begins anew when it comes.
    if let driver = findOrInsertDriver(fixes.driverID) {
      drivers[driver].durable.restore(newest: fixes.newest, heard: fixes.received)
    }
    return true
  }

  mutating func load(_ durable: DurableDriver) {
    guard let driver = findOrInsertDriver(durable.id) else { return }
    drivers[driver].reported = durable.status
    if let profile = profiles.replace(drivers[driver].profile, with: durable.profile) {
      drivers[driver].profile = profile
    } else {
      counters.tableLimitHits += 1
    }
    drivers[driver].durable.restore(newest: durable.newest, heard: durable.heard)
  }

  /// A driver that was read back: what is older than its newest fix is history, and it is forgotten when it would have been.
  mutating func resumeTime(_ driver: Int) {
    guard drivers[driver].durable.isKnown else { return }
    let passed = max(0, now.timestamp.milliseconds - drivers[driver].durable.heard.milliseconds)
    let heard = now.uptime - min(passed, 1 << 40) * 1_000_000
    drivers[driver].lastFix = heard
    drivers[driver].disconnected = heard
    if let newest = drivers[driver].durable.newest { drivers[driver].tracker.resume(after: newest, receivedAt: heard) }
  }
}
