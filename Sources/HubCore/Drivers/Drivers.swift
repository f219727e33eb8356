// All known drivers: by id, session, position and profile.
//
// Other types read a driver's record in place, and change it only through the methods here.
import HubBytes
import HubGeo
import HubMessages

struct Drivers: ~Copyable {
  let limits: HubLimits
  let timings: HubTimings
  private var seed: UInt64
  /// Like all members here that are not private, used only in this folder: TidyTests checks that.
  var slab = Slab<Driver>()
  private var ids = IndexTable()
  private(set) var profiles: DriverProfileTable
  /// Positions of online drivers, and last positions of stale ones.
  private(set) var index: DriverIndex
  private(set) var staleIndex: DriverIndex
  private(set) var sessions: DriverSessions
  private(set) var onlineCount = 0
  /// The times of fixes of drivers that have sent a batch.
  var fixTimes = Slab<FixTimes>()
  /// Which of their fixes are stored, where there is a journal.
  var marks: StorageMarks
  /// Recent status changes by requests with a key, to recognise repetitions.
  var statusChanges: [Int: RecentMoves] = [:]

  /// When the hub's last stall ended (uptime, ns): stalled time does not count as silence of drivers.
  private(set) var lastStall = Int64.min / 2

  init(limits: HubLimits, timings: HubTimings, outlets: Int, seed: UInt64) {
    self.limits = limits
    self.timings = timings
    self.seed = seed
    profiles = DriverProfileTable(capacity: limits.profiles, seed: seed)
    index = DriverIndex(capacity: limits.drivers)
    staleIndex = DriverIndex(capacity: limits.drivers)
    sessions = DriverSessions(outlets: outlets)
    marks = StorageMarks(drivers: limits.drivers)
  }

  var count: Int { slab.count }
  /// One more than the largest index that was ever in use.
  var endIndex: Int { slab.endIndex }

  func countEntries(into counters: inout HubCounters) {
    counters.set(.drivers, count)
    counters.driversOnline = onlineCount
    counters.set(.profiles, profiles.count)
    counters.set(.fixTimes, fixTimes.count)
    counters.set(.missedFixes, marks.unrecorded.count)
  }

  /// A driver's record, in place.
  subscript(driver: Int) -> Driver {
    @inline(__always) unsafeAddress { unsafe slab.address(of: driver) }
  }

  @inline(__always)
  func handle(of driver: Int) -> Handle { slab.handle(of: driver) }

  /// The driver of a handle; nil where it was forgotten.
  @inline(__always)
  func current(_ handle: Handle) -> Int? { slab.current(handle) }

  private func hash(_ id: Identifier) -> UInt64 { id.text.hashValue(seed: seed) }

  func find(_ id: Identifier) -> Int? { ids.find(hash: hash(id)) { slab[$0].compactID.matches(id) } }

  /// Whether an index is in use.
  func isInUse(_ driver: Int) -> Bool { slab.isInUse(driver) }

  /// The driver whose current session this is; nil when it was replaced or closed, or is no driver's.
  @inline(__always)
  func driver(of session: SessionRef) -> Int? {
    let driver = sessions.cell(session)
    guard driver >= 0, slab[driver].session == session else { return nil }
    return driver
  }

  /// Adds a driver, online; nil at the limit.
  mutating func insert(_ id: Identifier, at uptime: Int64, _ deadlines: inout Deadlines) -> Int? {
    guard count < limits.drivers else { return nil }
    let hash = hash(id)
    let driver = slab.insert(Driver(id: id, areaRank: hash.areaRank, uptime: uptime))
    ids.insert(hash: hash, index: driver)
    onlineCount += 1
    armStaleness(driver, at: uptime, &deadlines)
    return driver
  }

  /// Removes the record of a stale driver.
  mutating func remove(_ driver: Int) {
    index.remove(UInt32(driver))
    staleIndex.remove(UInt32(driver))
    if !slab[driver].isStale { onlineCount -= 1 }
    if let times = slab[driver].fixTimes { fixTimes.remove(times, leaving: FixTimes(capacity: 0)) }
    marks.forget(driver)
    statusChanges[driver] = nil
    profiles.release(slab[driver].profile)
    sessions.forget(driver)
    ids.remove(hash: hash(slab[driver].id), index: driver)
    slab.remove(driver, leaving: Driver(id: slab[driver].id, areaRank: slab[driver].areaRank, uptime: 0))
  }

  /// Sets the index of the driver's channel; nil for none.
  mutating func link(_ driver: Int, to channel: Int?) { slab[driver].channel = channel }

  /// Sets the index of the channel of the driver's raw fixes; nil for none.
  mutating func link(_ driver: Int, toRaw channel: Int?) { slab[driver].rawChannel = channel.map { Int32($0) } ?? -1 }

  /// Counts the driver's inputs in the second lane.
  mutating func count(waiting step: Int32, of driver: Int) { slab[driver].waiting += step }

  /// Changes the seed while there are no drivers.
  mutating func setSeed(_ seed: UInt64) {
    precondition(count == 0)
    self.seed = seed
  }

  // MARK: Sessions

  /// Begins a session of the driver, unless it is refused. Gives the outcome for an older one.
  mutating func connect(_ session: SessionRef, driver: Int, client: UInt32, at uptime: Int64) -> SessionTakeover {
    let takeover = sessions.takeOver(driver, from: slab[driver].session, client: client, at: uptime, timings)
    if case .refused = takeover { return takeover }
    sessions.begin(session, driver: driver, client: client)
    slab[driver].connect(session)
    return takeover
  }

  mutating func disconnect(_ session: SessionRef, at uptime: Int64) {
    guard let driver = driver(of: session) else { return sessions.forgetReplaced(session) }
    if let older = sessions.end(session, driver: driver) {
      slab[driver].take(older)
    } else {
      slab[driver].disconnect(at: uptime)
    }
  }

  /// Whether a session was replaced and is not closed yet.
  func isReplaced(_ session: SessionRef) -> Bool { sessions.driver(replacedFor: session) != nil }

  /// The driver's older sessions that are due to be closed, and whether each one's client has come again after it was
  /// replaced. Notes of replacements are checked again at the end of the window.
  mutating func takeReplaced(
    of driver: Int, at uptime: Int64, _ deadlines: inout Deadlines
  ) -> [(session: SessionRef, isRepeated: Bool)] {
    let replaced = sessions.takeReplaced(of: driver, at: uptime, timings)
    if !replaced.isEmpty {
      deadlines.arm(.replacedSession, handle(of: driver), at: uptime + nanoseconds(timings.replacementWindow))
    }
    return replaced
  }

  // MARK: What and where they are

  /// The driver as the creator of a trip.
  func creator(_ driver: Int) -> TripCreator {
    TripCreator(id: slab[driver].id, driver: handle(of: driver), tripsBegun: Int(slab[driver].tripsBegun))
  }

  @inline(__always)
  func label(of driver: Int) -> DriverLabel { slab[driver].label }

  /// The vehicle type that the driver or its credential states.
  func vehicleType(of driver: Int) -> InlineText? { profiles.vehicleType(slab[driver].profile) }

  /// Updates the driver's label while its position stays.
  private mutating func relabel(_ driver: Int) {
    let label = slab[driver].label
    index.label(UInt32(driver), label)
    staleIndex.label(UInt32(driver), label)
  }

  /// Moves the driver to its newest position, among the online or the stale ones.
  @inline(__always)
  mutating func reindex(_ driver: Int) {
    guard let coordinate = slab[driver].position?.coordinate else { return }
    let label = slab[driver].label
    if slab[driver].isStale {
      staleIndex.move(UInt32(driver), to: coordinate, label: label)
    } else {
      index.move(UInt32(driver), to: coordinate, label: label)
    }
  }

  // MARK: Presence

  /// Notes the end of a stall.
  mutating func noteStall(at uptime: Int64) { lastStall = uptime }

  /// Arms the next check for staleness. A session's end or a shorter sampling interval may bring staleness nearer, but
  /// not to within `stale` seconds of that moment. So one entry, checked at least that often, is never late.
  private func armStaleness(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) {
    let look = min(slab[driver].staleAt(lastStall: lastStall, timings), uptime + nanoseconds(timings.stale))
    deadlines.arm(.driverStaleness, handle(of: driver), at: look)
  }

  private mutating func armRetention(_ driver: Int, _ deadlines: inout Deadlines) {
    guard !slab[driver].isRetentionArmed else { return }
    slab[driver].isRetentionArmed = true
    deadlines.arm(.driverRetention, handle(of: driver), at: slab[driver].forgetsAt(timings))
  }

  /// Whether ops' areas show the driver: online, or recently offline.
  @inline(__always)
  func isPresent(_ driver: Int, at uptime: Int64) -> Bool { !slab[driver].isStale || uptime < absentAt(driver) }

  /// Whether areas show it as online: also where it has just moved to another hub, which has not published it yet.
  @inline(__always)
  func isOnline(_ driver: Int, at uptime: Int64) -> Bool {
    !slab[driver].isStale || slab[driver].isElsewhere && uptime < absentAt(driver)
  }

  private func absentAt(_ driver: Int) -> Int64 {
    slab[driver].isElsewhere
      ? slab[driver].disconnected + nanoseconds(timings.handover)
      : slab[driver].lastFix + nanoseconds(timings.offlineShown)
  }

  private mutating func armAbsence(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) {
    guard !slab[driver].isAbsenceArmed, absentAt(driver) > uptime else { return }
    slab[driver].isAbsenceArmed = true
    deadlines.arm(.driverAbsence, handle(of: driver), at: absentAt(driver))
  }

  /// Handles the deadline for a driver's absence: true where it becomes absent. Else arms it again.
  mutating func checkAbsence(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) -> Bool {
    slab[driver].isAbsenceArmed = false
    guard slab[driver].isStale else { return false }
    armAbsence(driver, at: uptime, &deadlines)
    return !isPresent(driver, at: uptime)
  }

  /// Handles the deadline for staleness: true where the driver becomes stale. Else arms it again.
  mutating func checkStaleness(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) -> Bool {
    guard !slab[driver].isStale else { return false }  // it began offline
    guard uptime >= slab[driver].staleAt(lastStall: lastStall, timings) else {
      armStaleness(driver, at: uptime, &deadlines)
      return false
    }
    becomeStale(driver, at: uptime, &deadlines)
    return true
  }

  /// Notes that a session or post of the driver has arrived at this hub, and sets the indices of the channels that it
  /// has here.
  mutating func arrive(_ driver: Int, on channel: Int?, raw: Int?) {
    slab[driver].arrive()
    link(driver, to: channel)
    link(driver, toRaw: raw)
  }

  /// Takes the driver offline here, since a session of it has begun at another hub. Gives its sessions here, which must
  /// all be closed, or an older one would become current again; and whether their client has returned after a 4409.
  mutating func leave(
    _ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines
  ) -> (sessions: [SessionRef], isRepeated: Bool) {
    let newest = slab[driver].session
    let isRepeated = newest.map { sessions.leave($0, driver: driver, at: uptime, timings) } ?? false
    var ended: [SessionRef] = []
    while let session = slab[driver].session {
      disconnect(session, at: uptime)
      ended.append(session)
    }
    slab[driver].isElsewhere = true
    slab[driver].isAbsenceArmed = false  // one that is armed may be for a later time
    if !slab[driver].isStale {
      becomeStale(driver, at: uptime, &deadlines)
    } else {
      armAbsence(driver, at: uptime, &deadlines)
    }
    return (ended, isRepeated)
  }

  private mutating func becomeStale(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) {
    slab[driver].setStale(true)
    onlineCount -= 1
    index.remove(UInt32(driver))
    reindex(driver)
    armRetention(driver, &deadlines)
    armAbsence(driver, at: uptime, &deadlines)
  }

  mutating func returnFromStale(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) {
    slab[driver].setStale(false)
    onlineCount += 1
    staleIndex.remove(UInt32(driver))
    armStaleness(driver, at: uptime, &deadlines)
  }

  /// Resumes a restored driver: fixes older than its newest are history, and its retention continues. Silence counts
  /// from this hub's start, since nobody could reach it before. One that was offline, or of which nothing has come yet,
  /// gets no notification.
  mutating func resume(_ driver: Int, at now: Moment, _ deadlines: inout Deadlines) {
    let isKnown = slab[driver].durable.isKnown
    if isKnown { slab[driver].resumeTime(at: now) }
    if isKnown, !slab[driver].durable.isOffline {
      reindex(driver)
    } else if !slab[driver].isStale {  // by a trip that was resumed before it
      becomeStale(driver, at: now.uptime, &deadlines)
    }
  }

  /// Handles the deadline for forgetting a driver: true where it is due. Else arms it again, a second later where areas
  /// show it; a driver that has returned is checked for staleness instead.
  mutating func checkRetention(
    _ driver: Int, at now: Moment, isShown: Bool, canStore: Bool, _ deadlines: inout Deadlines
  ) -> Bool {
    slab[driver].isRetentionArmed = false
    guard slab[driver].isStale else { return false }
    if isShown {
      slab[driver].isRetentionArmed = true
      deadlines.arm(.driverRetention, handle(of: driver), at: now.uptime + nanoseconds(1))
      return false
    }
    slab[driver].reckonAgain(at: now)
    let isNeeded = slab[driver].session != nil || slab[driver].activeTrips > 0
    let isDue = now.uptime >= slab[driver].forgetsAt(timings)
    if isDue, !isNeeded, canStore { return true }
    if isNeeded || isDue { slab[driver].putOffForgetting(at: now.uptime) }
    armRetention(driver, &deadlines)
    return false
  }

  /// Notes that `driver_offline` is published, and recorded where there is a journal.
  mutating func goOffline(_ driver: Int, at time: Timestamp, isStored: Bool) {
    slab[driver].durable.goOffline(at: time, isStored: isStored)
  }

  /// Notes that `driver_online` is published.
  mutating func goOnline(_ driver: Int) { slab[driver].durable.isOffline = false }

  // MARK: Trips

  /// Counts one more active trip.
  mutating func beginTrip(_ driver: Int) {
    slab[driver].beginTrip()
    relabel(driver)
  }

  mutating func endTrip(_ driver: Int, at time: Timestamp) {
    slab[driver].endTrip(at: time)
    relabel(driver)
  }

  /// Counts the known trips of the driver that began them, if one did.
  mutating func count(begunTrips step: Int, of creator: Handle?) {
    if let driver = creator.flatMap({ current($0) }) { slab[driver].count(begunTrips: step) }
  }

  // MARK: What they say of themselves

  /// Takes a driver's report; members that it leaves out are unchanged. A repetition with the same `key` changes
  /// nothing. Throws, without a change, where the table of profiles is full.
  mutating func take(
    _ report: DriverStatusReport, key: MessageID?, of driver: Int, counting counters: inout HubCounters
  ) throws(ErrorReply) {
    let change = key?.text.hashValue(seed: seed)
    if let change, statusChanges[driver]?.contains(change) == true { return }
    var profile = profiles.profile(slab[driver].profile)
    if let vehicleType = report.vehicleType { profile.vehicleType = vehicleType }
    if let tags = report.tags { profile.tags = tags }
    guard report.vehicleType == nil && report.tags == nil || setProfile(profile, of: driver) else {
      counters.count(full: .profiles)
      throw ErrorReply(
        code: .storageFull, message: "this hub's table of vehicle types and tags is full", retryAfter: 60)
    }
    if let change { statusChanges[driver, default: RecentMoves()].insert(change) }
    slab[driver].report(report.status)
    relabel(driver)
  }

  /// Takes what a credential states of a driver's vehicle; gives the driver where it differs. Where the table is full
  /// the driver is shown without vehicle type and tags, since it must not be found by what it reports itself.
  mutating func take(_ claims: VehicleClaims, of id: Identifier, counting counters: inout HubCounters) -> Int? {
    guard let driver = find(id) else { return nil }
    let old = profiles.profile(slab[driver].profile)
    var profile = old
    if let vehicleType = claims.vehicleType { profile.vehicleType = vehicleType }
    if let tags = claims.tags { profile.tags = tags }
    guard profile != old else { return nil }
    if !setProfile(profile, of: driver) {
      counters.count(full: .profiles)
      profiles.release(slab[driver].profile)
      slab[driver].profile = -1
    }
    relabel(driver)
    return driver
  }

  mutating func setProfile(_ profile: DriverProfile, of driver: Int) -> Bool {
    guard let index = profiles.replace(slab[driver].profile, with: profile) else { return false }
    slab[driver].profile = index
    return true
  }
}
