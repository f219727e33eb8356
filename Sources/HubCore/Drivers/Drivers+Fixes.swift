// The effect of fixes on a driver: its clock, track and position, and what of these is on stable storage.
import HubMessages

extension Drivers {
  // MARK: Fixes that come

  /// Notes a message that bounds the offset of the driver's clock.
  @inline(__always)
  mutating func observeClock(of driver: Int, sent: Timestamp, received: Timestamp) {
    slab[driver].clock.observe(sent: sent, received: received)
  }

  /// Adjusts all drivers' clock offsets where the hub's wall clock was set forward: O(drivers), but only then. Where it
  /// was set back, or after a restart, each driver's next message corrects the offset, so nothing is recorded.
  ///
  /// A suspended machine looks the same, since its uptime stops: positions from before then seem younger than they are
  /// until their driver sends again or counts as offline.
  @inline(__always)
  mutating func applyClockStep(_ now: Moment, after last: Moment) {
    let passed = (now.uptime - last.uptime) / 1_000_000
    let step = now.timestamp.milliseconds - last.timestamp.milliseconds - passed
    if step >= SessionClock.stepThreshold { moveClocks(by: step) }
  }

  @inline(never)
  private mutating func moveClocks(by step: Int64) {
    for driver in 0..<slab.endIndex where slab.isInUse(driver) { slab[driver].clock.move(by: step) }
  }

  /// Accepts the driver's new clock from the present fix on.
  mutating func believeClock(of driver: Int, sent: Timestamp?, at time: Timestamp) {
    slab[driver].believeClock(sent: sent, at: time)
  }

  /// Remembers the time of a fix, unless `remembering` is false. Returns whether it is new, as far as memory reaches.
  @inline(__always)
  mutating func insertIfNew(_ time: Timestamp, of driver: Int, remembering: Bool) -> Bool {
    guard let times = slab[driver].fixTimes else { return true }
    return remembering ? fixTimes[times].insert(time) : !fixTimes[times].contains(time)
  }

  /// Whether a fix of this time is remembered.
  func remembers(_ time: Timestamp, of driver: Int) -> Bool {
    slab[driver].fixTimes.map { fixTimes[$0].contains(time) } ?? false
  }

  /// A fix of this time (ms since 1970) or later is new unless its time is remembered.
  func completeSince(_ driver: Int) -> Int64 {
    if let times = slab[driver].fixTimes { return fixTimes[times].completeSince }
    return slab[driver].tracker.latest?.milliseconds ?? .min
  }

  /// Updates the driver's track with a fix (`Tracker.update`).
  @inline(__always)
  mutating func advanceTrack(
    with fix: Fix, of driver: Int, sent: Timestamp?, receivedAt uptime: Int64, hubClock: Timestamp
  ) -> Tracker.Outcome {
    slab[driver].tracker.update(fix, sent: sent, receivedAt: uptime, hubClock: hubClock, rules: limits.tracking)
  }

  /// Stores a published position.
  @inline(__always)
  mutating func storePosition(_ position: Position, of driver: Int, trip: Handle?, at now: Moment) {
    // Checked first: the call copies the timings.
    if slab[driver].session == nil { slab[driver].noteSending(at: now.uptime, lastStall: lastStall, timings) }
    slab[driver].storePosition(position, trip: trip, at: now)
  }

  /// Notes that a phone app with a format of its own sends for the driver, with the configured interval.
  mutating func noteDevice(_ driver: Int) { slab[driver].noteDevice(interval: timings.deviceInterval) }

  /// Notes the arrival of a fix that is not published.
  mutating func noteUnpublished(_ driver: Int, at uptime: Int64) { slab[driver].noteUnpublished(at: uptime) }

  /// Begins to remember a driver's newest fix times, with its first batch, unless the table is full. `isStored`: there
  /// is a journal, which may not have the newest fix.
  mutating func rememberFixTimes(of driver: Int, isStored: Bool, counting counters: inout HubCounters) {
    guard slab[driver].fixTimes == nil else { return }
    guard fixTimes.count < limits.driversWithFixTimes else { return counters.count(full: .fixTimes) }
    let newest = slab[driver].tracker.newest
    slab[driver].fixTimes = fixTimes.insert(
      FixTimes(
        capacity: limits.fixTimesPerDriver, newest: newest,
        isRecorded: newest.map { !isStored || !hasNoRecord(ofPublished: $0, of: driver) } ?? true,
        completeSince: slab[driver].tracker.latest))
  }

  // MARK: Fixes that are stored, or were not

  /// Notes an accepted fix, which is in the record with the journal's number `ticket`.
  @inline(__always)
  mutating func noteRecord(
    of time: Timestamp, _ disposition: StoredFix.Disposition, isPublished: Bool, driver: Int, ticket: UInt64,
    storedThrough: UInt64
  ) {
    if isPublished {
      slab[driver].durable.newest = time
      marks.published(time, driver, ticket: ticket, storedThrough: storedThrough)
    } else {
      marks.unpublished(time, driver, ticket: ticket, storedThrough: storedThrough)
    }
    // A `confirmed` fix records what was published; the measurement may still be missing.
    if marks.unrecorded.count > 0, disposition != .confirmed { removeUnrecorded(time, driver: driver) }
  }

  /// Notes a record of a message's fixes, which named `trip`.
  @inline(__always)
  mutating func noteRecord(_ driver: Int, trip: Handle?, heard: Timestamp, hasPublished: Bool) {
    if trip != nil { slab[driver].lastTrip = trip }
    slab[driver].durable.note(heard: heard, hasPublished: hasPublished)
    slab[driver].durable.sendingInterval = slab[driver].storedSendingInterval
  }

  /// Notes a record of the driver itself.
  mutating func noteRecord(_ driver: Int, heard: Timestamp) {
    slab[driver].durable.note(heard: heard, hasPublished: false)
  }

  /// Notes a fix that was accepted while nothing could be recorded.
  mutating func noteUnrecorded(_ time: Timestamp, driver: Int, counting counters: inout HubCounters) {
    counters.fixesNotStored += 1
    let isOwnLimit = marks.unrecorded.count(of: driver) >= limits.missedFixesPerDriver
    let hasRoom = !isOwnLimit && marks.unrecorded.count < limits.missedFixes
    if marks.noteUnrecorded(time, driver, hasRoom: hasRoom) { return }
    if isOwnLimit { counters.count(.missedFixesPerDriver) } else if !hasRoom { counters.count(full: .missedFixes) }
  }

  /// Notes that the journal has the fix.
  mutating func removeUnrecorded(_ time: Timestamp, driver: Int) { marks.unrecorded.remove(time, driver) }

  /// Whether the newest fix, of this time, may have been accepted without a record.
  func hasNoRecord(ofPublished time: Timestamp, of driver: Int) -> Bool {
    if marks.mayLackRecord(time, driver) { return true }
    return slab[driver].durable.newest.map { time > $0 } ?? true
  }

  /// The time up to which all of the driver's fixes are stored when the journal's records up to `ticket` are.
  mutating func storedThrough(_ ticket: UInt64, of driver: Int) -> Timestamp? {
    marks.storedThrough(ticket, driver)
  }

  // MARK: Reading back

  mutating func load(_ fixes: DurableFixes, driver: Int, trip: Handle?) {
    slab[driver].load(fixes, trip: trip)
    if let newest = fixes.newest { marks.restore(newest: newest.timestamp, driver) }
  }

  /// Restores a driver; false where the table of profiles is full.
  mutating func load(_ stored: DurableDriver, driver: Int, trip: Handle?) -> Bool {
    slab[driver].load(stored, trip: trip)
    if let newest = stored.newest { marks.restore(newest: newest, driver) }
    statusChanges[driver] = stored.statusChanges.isEmpty ? nil : RecentMoves(stored.statusChanges)
    return setProfile(stored.profile, of: driver)
  }

  /// Hashes of the keys of the driver's recent status changes, oldest first.
  func recentStatusChanges(of driver: Int) -> [UInt64] { statusChanges[driver]?.oldestFirst ?? [] }

  // MARK: How often they are to send

  /// The sampling advice to send now; nil where the last one still holds.
  @inline(__always)
  mutating func advise(
    _ driver: Int, isWatched: Bool, at uptime: Int64, _ rules: SamplingRules
  ) -> SamplingReason? { slab[driver].advise(isWatched: isWatched, at: uptime, rules) }

  /// The sampling advice for a session that begins.
  mutating func beginAdvice(
    _ driver: Int, isWatched: Bool, at uptime: Int64, _ rules: SamplingRules, counting counters: inout HubCounters
  ) -> Connected.Sampling {
    let reason = slab[driver].beginAdvice(isWatched: isWatched, at: uptime, rules)
    let advice = rules.advice(reason, counting: &counters)
    return Connected.Sampling(interval: advice.interval, minDistance: advice.minDistance)
  }
}
