// What a driver's fixes change of it: its clock, its track, where it is, and what of all that is on stable storage.
import HubMessages

extension Drivers {
  // MARK: Fixes that come

  /// A message came that bounds how far the driver's clock is off.
  @inline(__always)
  mutating func observeClock(of driver: Int, sent: Timestamp, received: Timestamp) {
    slab[driver].clock.observe(sent: sent, received: received)
  }

  /// From the fix on that is being handled the driver's new clock counts.
  mutating func believeClock(of driver: Int, sent: Timestamp?, at time: Timestamp) {
    slab[driver].believeClock(sent: sent, at: time)
  }

  /// Whether the driver has not sent a fix of this time before, as far as its fix times are remembered.
  @inline(__always)
  mutating func isNew(_ time: Timestamp, of driver: Int, remembering: Bool) -> Bool {
    slab[driver].fixTimes == nil || slab[driver].isNew(time, remembering: remembering)
  }

  /// What a fix means for where the driver is (`Tracker.update`).
  @inline(__always)
  mutating func follow(
    _ fix: Fix, of driver: Int, sent: Timestamp?, receivedAt uptime: Int64, hubClock: Timestamp
  ) -> Tracker.Outcome {
    slab[driver].tracker.update(fix, sent: sent, receivedAt: uptime, hubClock: hubClock, rules: limits.tracking)
  }

  /// A position of the driver counts from now on.
  @inline(__always)
  mutating func accept(_ position: Position, of driver: Int, trip: Handle?, at now: Moment) {
    // Asked before: the call copies the timings.
    if slab[driver].session == nil { slab[driver].noteSending(at: now.uptime, lastStall: lastStall, timings) }
    slab[driver].accept(position, trip: trip, at: now)
  }

  /// An app of its own format sends for the driver: its silence is no longer than that of its interval.
  mutating func noteDevice(_ driver: Int) { slab[driver].noteDevice(interval: timings.deviceInterval) }

  /// A fix came that is not published: a sign of life all the same.
  mutating func noteUnpublished(_ driver: Int, at uptime: Int64) { slab[driver].noteUnpublished(at: uptime) }

  /// The newest position is shown again: how old it is now.
  mutating func refreshAge(of driver: Int, at time: Timestamp) { slab[driver].refreshAge(at: time) }

  /// From its first batch on, a driver's fix times are remembered, newest first, up to the limits. `isStored`: there is
  /// a journal, in which the newest may be missing.
  mutating func rememberFixTimes(of driver: Int, isStored: Bool, counting counters: inout HubCounters) {
    guard slab[driver].fixTimes == nil else { return }
    guard countWithFixTimes < limits.driversWithFixTimes else { return counters.count(full: .fixTimes) }
    countWithFixTimes += 1
    let newest = slab[driver].tracker.newest
    slab[driver].fixTimes = FixTimes(
      capacity: limits.fixTimesPerDriver, newest: newest,
      isRecorded: newest.map { !isStored || !slab[driver].durable.hasNoRecord(ofPublished: $0) } ?? true,
      vouchesFrom: slab[driver].tracker.latest)
  }

  // MARK: Fixes that are stored, or were not

  /// A fix was taken in, and goes into the record with the journal's number `ticket`.
  @inline(__always)
  mutating func noteRecord(
    of time: Timestamp, _ disposition: StoredFix.Disposition, isPublished: Bool, driver: Int, ticket: UInt64,
    storedThrough: UInt64
  ) {
    if isPublished {
      slab[driver].durable.published(time, ticket: ticket, storedThrough: storedThrough)
    } else {
      slab[driver].durable.unpublished(time, ticket: ticket, storedThrough: storedThrough)
    }
    // What `confirmed` records is where it was published; what was measured may still be missing.
    if !slab[driver].durable.missed.isEmpty, disposition != .confirmed { noteFound(time, driver: driver) }
  }

  /// The fixes of a message, which named `trip`, become a record.
  @inline(__always)
  mutating func noteRecord(_ driver: Int, trip: Handle?, heard: Timestamp, hasPublished: Bool) {
    if trip != nil { slab[driver].lastTrip = trip }
    slab[driver].durable.note(heard: heard, hasPublished: hasPublished)
    slab[driver].durable.sendingInterval = slab[driver].storedSendingInterval
  }

  /// The driver itself becomes a record.
  mutating func noteRecord(_ driver: Int, heard: Timestamp) {
    slab[driver].durable.note(heard: heard, hasPublished: false)
  }

  /// A fix was taken in while nothing could be recorded.
  mutating func noteMissed(_ time: Timestamp, driver: Int, counting counters: inout HubCounters) {
    counters.fixesNotStored += 1
    let isOwnLimit = slab[driver].durable.missed.count >= limits.missedFixesPerDriver
    let hasRoom = !isOwnLimit && missedFixes < limits.missedFixes
    if slab[driver].durable.miss(time, hasRoom: hasRoom) {
      missedFixes += 1
    } else if isOwnLimit {
      counters.count(.missedFixesPerDriver)
    } else if !hasRoom {
      counters.count(full: .missedFixes)
    }
  }

  /// The journal has the fix.
  mutating func noteFound(_ time: Timestamp, driver: Int) {
    if slab[driver].durable.find(time) { missedFixes -= 1 }
  }

  /// Through which of the driver's fixes everything is stored when the journal's records up to `ticket` are.
  mutating func storedThrough(_ ticket: UInt64, of driver: Int) -> Timestamp? {
    slab[driver].durable.storedThrough(ticket)
  }

  // MARK: Reading back

  mutating func load(_ fixes: DurableFixes, driver: Int, trip: Handle?) { slab[driver].load(fixes, trip: trip) }

  /// False where the table of profiles has no room.
  mutating func load(_ stored: DurableDriver, driver: Int, trip: Handle?) -> Bool {
    slab[driver].load(stored, trip: trip)
    statusChanges[driver] = stored.statusChanges.isEmpty ? nil : RecentMoves(stored.statusChanges)
    return setProfile(stored.profile, of: driver)
  }

  // MARK: How often they are to send

  /// What the driver is to be told now of how often to send; nil where that is what it was told last.
  @inline(__always)
  mutating func advise(
    _ driver: Int, isWatched: Bool, at uptime: Int64, _ rules: SamplingRules
  ) -> SamplingReason? { slab[driver].advise(isWatched: isWatched, at: uptime, rules) }

  /// What a session that begins now is told.
  mutating func beginAdvice(
    _ driver: Int, isWatched: Bool, at uptime: Int64, _ rules: SamplingRules
  ) -> SamplingReason { slab[driver].beginAdvice(isWatched: isWatched, at: uptime, rules) }
}
