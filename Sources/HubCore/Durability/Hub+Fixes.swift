// Fixes on their way into the journal: one record for each message that brought some, and what a hub that reads them
// back makes of them. `location_update` waits for nothing and its fix is stored soon; the `ack` of a batch waits.
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
  mutating func record(_ fix: Fix, _ standing: StoredFix.Standing, _ position: Position?, driver: Int) {
    storage.add(fix, standing, position)
    let (ticket, through) = (storage.ticket, storage.storedThrough)
    if position != nil {
      drivers[driver].durable.published(fix.timestamp, ticket: ticket, storedThrough: through)
      // While nothing could be stored nobody could be told that it is back.
      if drivers[driver].durable.isOffline { tellOnline(driver) }
    } else {
      drivers[driver].durable.unpublished(fix.timestamp, ticket: ticket, storedThrough: through)
    }
    // What `confirmed` records is where it was published; what was measured may still be missing.
    if !drivers[driver].durable.missed.isEmpty, standing != .confirmed { noteFound(fix.timestamp, driver: driver) }
  }

  /// A fix was taken in while nothing could be recorded.
  mutating func noteMissed(_ time: Timestamp, driver: Int) {
    counters.fixesNotStored += 1
    let isOwnLimit = drivers[driver].durable.missed.count >= limits.missedFixesPerDriver
    let hasRoom = !isOwnLimit && missedFixes < limits.missedFixes
    if drivers[driver].durable.miss(time, hasRoom: hasRoom) {
      missedFixes += 1
    } else if isOwnLimit {
      counters.count(.missedFixesPerDriver)
    } else if !hasRoom {
      counters.count(full: .missedFixes)
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
    drivers[driver].durable.note(heard: received, hasPublished: storage.hasPublishedFixes)
    drivers[driver].durable.sendingInterval = storedSendingInterval(driver)
    storage.writeFixes(
      driverID: drivers[driver].id, tripID: trip.map { trips[$0].id }, received: received,
      tracking: tracking(of: driver), progress: trip.map { trips[$0].progress },
      published: drivers[driver].tracker.publishedApart)
  }

  /// How the driver is followed now.
  @inline(__always)
  private func tracking(of driver: Int) -> StoredTracking {
    StoredTracking(
      clockOffset: drivers[driver].clock.offsetMilliseconds,
      sendingInterval: drivers[driver].durable.sendingInterval, motion: drivers[driver].tracker.storedMotion)
  }

  mutating func recordDriver(_ driver: Int) {
    guard storage.isOn else { return }
    drivers[driver].durable.note(heard: now.timestamp, hasPublished: false)
    storage.write(.driver(durable(driver)))
  }

  func durable(_ driver: Int) -> DurableDriver {
    let positionTrip = tripOfPosition(of: driver)
    return DurableDriver(
      id: drivers[driver].id, status: drivers[driver].reported, profile: profiles.profile(drivers[driver].profile),
      newest: drivers[driver].durable.newest, published: drivers[driver].tracker.publishedApart,
      heard: drivers[driver].durable.heard, isOffline: drivers[driver].durable.isOffline,
      lastTripEnded: drivers[driver].lastTripEnded,
      position: drivers[driver].position, tripID: (positionTrip ?? lastTrip(of: driver)).map { trips[$0].id },
      isPositionOnTrip: positionTrip != nil, tracking: tracking(of: driver))
  }

  // MARK: Reading back

  mutating func load(_ fixes: DurableFixes) -> Bool {
    var trip: Int?
    if let id = fixes.tripID {
      trip = findTrip(id)
      guard let trip else { return false }
      if let progress = fixes.progress { trips[trip].progress = progress }
    }
    // A driver that the table has no room for begins anew when it comes.
    guard let driver = findOrInsertDriver(fixes.driverID) else { return true }
    drivers[driver].durable.note(heard: fixes.received, hasPublished: fixes.newest != nil)
    let handle = trip.map { Handle(index: UInt32($0), generation: trips.generation(of: $0)) }
    if let handle { drivers[driver].lastTrip = handle }
    if let position = fixes.newest {
      drivers[driver].durable.restore(newest: position.timestamp)
      drivers[driver].durable.isOffline = false
      drivers[driver].positionTrip = handle
      drivers[driver].position = position
      drivers[driver].tracker.restore(published: fixes.published)
    }
    restore(fixes.tracking, driver: driver)
    return true
  }

  mutating func load(_ durable: DurableDriver) {
    guard let driver = findOrInsertDriver(durable.id) else { return }
    drivers[driver].reported = durable.status
    if let profile = profiles.replace(drivers[driver].profile, with: durable.profile) {
      drivers[driver].profile = profile
    } else {
      counters.count(full: .profiles)
    }
    drivers[driver].durable.isKnown = true
    drivers[driver].durable.heard = durable.heard
    drivers[driver].durable.isOffline = durable.isOffline
    if let newest = durable.newest { drivers[driver].durable.restore(newest: newest) }
    drivers[driver].lastTripEnded = durable.lastTripEnded
    let trip = durable.tripID.flatMap { findTrip($0) }
    drivers[driver].lastTrip = trip.map { Handle(index: UInt32($0), generation: trips.generation(of: $0)) }
    drivers[driver].positionTrip = durable.isPositionOnTrip ? drivers[driver].lastTrip : nil
    if let position = durable.position { drivers[driver].position = position }
    restore(durable.tracking, driver: driver)
    drivers[driver].tracker.restore(published: durable.published)
  }

  private mutating func restore(_ tracking: StoredTracking, driver: Int) {
    drivers[driver].clock = SessionClock(inheriting: tracking.clockOffset)
    drivers[driver].durable.sendingInterval = tracking.sendingInterval
    guard let position = drivers[driver].position else { return }
    drivers[driver].tracker.resume(at: position, isRecorded(position, of: driver) ? tracking.motion : nil)
  }

  /// Whether the fix of a position that was read back is stored, too.
  private func isRecorded(_ position: Position, of driver: Int) -> Bool {
    drivers[driver].durable.newest.map { position.timestamp <= $0 } ?? false
  }

  mutating func loadOffline(_ id: Identifier, at time: Timestamp) {
    guard let driver = findOrInsertDriver(id) else { return }
    drivers[driver].durable.goOffline(at: time, isStored: true)
  }

  /// A driver that was read back goes on as if the hub had not been away: what is older than its newest fix is
  /// history, and it is forgotten when it would have been. Silence counts from the start of this hub, for nobody could
  /// reach it before.
  mutating func resume(_ driver: Int) {
    guard drivers[driver].durable.isKnown else { return beginOffline(driver) }
    resumeTime(driver)
    if drivers[driver].durable.sendingInterval > 0 {
      drivers[driver].sendingInterval = Float(drivers[driver].durable.sendingInterval)
    }
    if drivers[driver].durable.isOffline { beginOffline(driver) }
    guard let place = drivers[driver].position?.coordinate else { return }
    let label = label(of: driver)
    if drivers[driver].isStale {
      staleIndex.move(UInt32(driver), to: place, label: label)
    } else {
      index.move(UInt32(driver), to: place, label: label)
    }
  }

  /// When its last fix came, by this life's uptime: reckoned by the wall clock, which may have been set meanwhile.
  /// Where it was set back no time has passed.
  private mutating func resumeTime(_ driver: Int) {
    let passed = max(0, now.timestamp.milliseconds - drivers[driver].durable.heard.milliseconds)
    let heard = now.uptime - min(passed, 1 << 40) * 1_000_000
    drivers[driver].lastFix = heard
    drivers[driver].disconnected = heard
    // The position may be newer than the newest fix that is stored, where it was published when the disk was full. Then
    // its sender sends that fix again, and it must be stored, not taken for a duplicate: so it counts as not seen yet.
    guard let newest = drivers[driver].durable.newest else { return }
    drivers[driver].tracker.resume(
      after: newest, published: drivers[driver].tracker.publishedApart, receivedAt: heard)
  }
}
