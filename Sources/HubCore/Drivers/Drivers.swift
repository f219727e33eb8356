// All drivers that the hub knows: by id, by session, by place, and by what they are.
//
// Others read a driver's record where it lies, and change it only through the methods here.
import HubBytes
import HubGeo
import HubMessages

struct Drivers: ~Copyable {
  let limits: HubLimits
  let timings: HubTimings
  private var seed: UInt64
  /// Named, like all that is not private here, in this folder alone (TidyTests).
  var slab = Slab<Driver>()
  private var ids = IndexTable()
  private(set) var profiles: DriverProfileTable
  /// Where drivers are that are online, and where stale ones were last.
  private(set) var index: DriverIndex
  private(set) var staleIndex: DriverIndex
  private(set) var sessions: DriverSessions
  private(set) var onlineCount = 0
  var countWithFixTimes = 0
  /// Of all drivers' `DriverStorage.missed`.
  var missedFixes = 0
  /// Which statuses drivers were last given by a request with a key, by which it is known when it comes again.
  var statusChanges: [Int: RecentMoves] = [:]

  /// When the hub last took up its work again after a stall (uptime, ns): time in which it stalled is not the drivers'.
  private(set) var lastStall = Int64.min / 2

  init(limits: HubLimits, timings: HubTimings, outlets: Int, seed: UInt64) {
    self.limits = limits
    self.timings = timings
    self.seed = seed
    profiles = DriverProfileTable(capacity: limits.profiles, seed: seed)
    index = DriverIndex(capacity: limits.drivers)
    staleIndex = DriverIndex(capacity: limits.drivers)
    sessions = DriverSessions(outlets: outlets)
  }

  var count: Int { slab.count }
  /// One more than the largest index ever in use.
  var endIndex: Int { slab.endIndex }

  func countEntries(into counters: inout HubCounters) {
    counters.set(.drivers, count)
    counters.set(.profiles, profiles.count)
    counters.set(.fixTimes, countWithFixTimes)
    counters.set(.missedFixes, missedFixes)
  }

  /// A driver's record, in place.
  subscript(driver: Int) -> Driver {
    @inline(__always) unsafeAddress { unsafe slab.address(of: driver) }
  }

  /// What areas keep of a driver, in place.
  subscript(areaOf driver: Int) -> DriverArea {
    @inline(__always) _read { yield slab[driver].area }
    @inline(__always) _modify { yield &slab[driver].area }
  }

  @inline(__always)
  func handle(of driver: Int) -> Handle { slab.handle(of: driver) }

  /// The driver of a handle; nil where it was forgotten.
  @inline(__always)
  func current(_ handle: Handle) -> Int? { slab.current(handle) }

  func find(_ id: Identifier) -> Int? { ids.find(hash: id.text.hashValue(seed: seed)) { slab[$0].id == id } }

  /// Whether an index is in use.
  func isInUse(_ driver: Int) -> Bool { slab.isInUse(driver) }

  /// The driver whose live session this is; nil when it was replaced, closed or never a driver's.
  @inline(__always)
  func driver(of session: SessionRef) -> Int? {
    let driver = sessions.cell(session)
    guard driver >= 0, slab[driver].session == session else { return nil }
    return driver
  }

  /// A driver that is not known yet, online; nil at the limit.
  mutating func insert(_ id: Identifier, at uptime: Int64, _ deadlines: inout Deadlines) -> Int? {
    guard count < limits.drivers else { return nil }
    let hash = id.text.hashValue(seed: seed)
    let driver = slab.insert(Driver(id: id, hash: hash, uptime: uptime))
    ids.insert(hash: hash, index: driver)
    onlineCount += 1
    armStaleness(driver, at: uptime, &deadlines)
    return driver
  }

  /// The record of a stale driver goes.
  mutating func remove(_ driver: Int) {
    index.remove(UInt32(driver))
    staleIndex.remove(UInt32(driver))
    if !slab[driver].isStale { onlineCount -= 1 }
    if slab[driver].fixTimes != nil { countWithFixTimes -= 1 }
    missedFixes -= slab[driver].durable.missed.count
    statusChanges[driver] = nil
    profiles.release(slab[driver].profile)
    sessions.forget(driver)
    ids.remove(hash: slab[driver].hash, index: driver)
    slab.remove(driver, leaving: Driver(id: slab[driver].id, hash: 0, uptime: 0))
  }

  /// The driver's channel has this index from now on; nil for none.
  mutating func link(_ driver: Int, to channel: Int?) { slab[driver].channel = channel }

  /// The channel of the driver's fixes as they were measured; nil for none.
  mutating func link(_ driver: Int, toRaw channel: Int?) { slab[driver].rawChannel = channel.map { Int32($0) } ?? -1 }

  /// Inputs of the driver begin to wait in the second lane, or wait no longer.
  mutating func count(waiting step: Int32, of driver: Int) { slab[driver].waiting += step }

  /// Changes the seed while there are no drivers.
  mutating func setSeed(_ seed: UInt64) {
    precondition(count == 0)
    self.seed = seed
  }

  // MARK: Sessions

  /// A session of the driver begins, unless it is refused. Says what becomes of an older one.
  mutating func connect(_ session: SessionRef, driver: Int, client: UInt32, at uptime: Int64) -> SessionTakeover {
    let takeover = sessions.takeOver(driver, &slab[driver], client: client, at: uptime, timings)
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

  /// Whether a session of a driver was replaced and does not know it yet.
  func isReplaced(_ session: SessionRef) -> Bool { sessions.driver(replacedFor: session) != nil }

  /// The driver's older sessions that are to be told now, and whether each one's client was told before. What is known
  /// of that is looked through again at the end of the window.
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

  /// The driver as one who would begin a trip.
  func beginner(_ driver: Int) -> TripBeginner {
    TripBeginner(id: slab[driver].id, driver: handle(of: driver), tripsBegun: Int(slab[driver].tripsBegun))
  }

  @inline(__always)
  func label(of driver: Int) -> DriverLabel { slab[driver].label }

  /// What the driver, or its credential, says of its vehicle.
  func vehicleType(of driver: Int) -> InlineText? { profiles.vehicleType(slab[driver].profile) }

  /// What the driver is has changed while it stays where it is.
  private mutating func relabel(_ driver: Int) {
    let label = slab[driver].label
    index.label(UInt32(driver), label)
    staleIndex.label(UInt32(driver), label)
  }

  /// Puts the driver where its newest position is, among those that are online or among those that are stale.
  @inline(__always)
  mutating func place(_ driver: Int) {
    guard let coordinate = slab[driver].position?.coordinate else { return }
    let label = slab[driver].label
    if slab[driver].isStale {
      staleIndex.move(UInt32(driver), to: coordinate, label: label)
    } else {
      index.move(UInt32(driver), to: coordinate, label: label)
    }
  }

  // MARK: Presence

  /// The hub takes up its work again after a stall.
  mutating func noteStall(at uptime: Int64) { lastStall = uptime }

  /// The moment may come nearer, with a session's end or a shorter sampling interval; but never nearer than `stale`
  /// after that. So an entry that comes up at least that often is never late, and there need be only one.
  private func armStaleness(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) {
    let look = min(slab[driver].staleAt(lastStall: lastStall, timings), uptime + nanoseconds(timings.stale))
    deadlines.arm(.driverStaleness, handle(of: driver), at: look)
  }

  private mutating func armRetention(_ driver: Int, _ deadlines: inout Deadlines) {
    guard !slab[driver].isRetentionArmed else { return }
    slab[driver].isRetentionArmed = true
    deadlines.arm(.driverRetention, handle(of: driver), at: slab[driver].forgetsAt(timings))
  }

  /// Whether ops' areas show the driver: online, or offline for not so long.
  @inline(__always)
  func isPresent(_ driver: Int, at uptime: Int64) -> Bool { !slab[driver].isStale || uptime < absentAt(driver) }

  /// Whether areas show it as online: also where it has just gone to another hub, which has not told of it yet.
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

  /// The entry that waits for a driver's absence came up: true where it is absent from now on. Else it is looked at
  /// again when it would be.
  mutating func checkAbsence(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) -> Bool {
    slab[driver].isAbsenceArmed = false
    guard slab[driver].isStale else { return false }
    armAbsence(driver, at: uptime, &deadlines)
    return !isPresent(driver, at: uptime)
  }

  /// The entry that watches for staleness came up: true where the driver is stale from now on. Else it is looked at
  /// again when it would be.
  mutating func checkStaleness(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) -> Bool {
    guard !slab[driver].isStale else { return false }  // it began offline
    guard uptime >= slab[driver].staleAt(lastStall: lastStall, timings) else {
      armStaleness(driver, at: uptime, &deadlines)
      return false
    }
    becomeStale(driver, at: uptime, &deadlines)
    return true
  }

  /// A session of the driver has begun here.
  mutating func arrive(_ driver: Int) {
    slab[driver].isElsewhere = false
    slab[driver].arrivals &+= 1
  }

  /// A session of the driver has begun at another hub: here it is offline. Gives its sessions here, which end: also
  /// older ones of its client, which would otherwise speak for it again.
  mutating func leave(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) -> [SessionRef] {
    var ended: [SessionRef] = []
    while let session = slab[driver].session {
      disconnect(session, at: uptime)
      ended.append(session)
    }
    slab[driver].isElsewhere = true
    slab[driver].isAbsenceArmed = false  // one that waits is for later
    if !slab[driver].isStale {
      becomeStale(driver, at: uptime, &deadlines)
    } else {
      armAbsence(driver, at: uptime, &deadlines)
    }
    return ended
  }

  private mutating func becomeStale(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) {
    slab[driver].setStale(true)
    onlineCount -= 1
    index.remove(UInt32(driver))
    place(driver)
    armRetention(driver, &deadlines)
    armAbsence(driver, at: uptime, &deadlines)
  }

  mutating func returnFromStale(_ driver: Int, at uptime: Int64, _ deadlines: inout Deadlines) {
    slab[driver].setStale(false)
    onlineCount += 1
    staleIndex.remove(UInt32(driver))
    armStaleness(driver, at: uptime, &deadlines)
  }

  /// A driver that was read back goes on as if the hub had not been away: what is older than its newest fix is
  /// history, and it is forgotten when it would have been. Silence counts from the start of this hub, for nobody could
  /// reach it before. One that is offline already, or of whom nothing is known but events, gets no notification.
  mutating func resume(_ driver: Int, at now: Moment, _ deadlines: inout Deadlines) {
    let isKnown = slab[driver].durable.isKnown
    if isKnown { slab[driver].resumeTime(at: now) }
    if isKnown, !slab[driver].durable.isOffline {
      place(driver)
    } else {
      becomeStale(driver, at: now.uptime, &deadlines)
    }
  }

  /// The entry that waits to forget the driver came up: true where it is to be forgotten now. Else it is looked at
  /// again later; a driver that is back is watched for staleness instead.
  mutating func checkRetention(
    _ driver: Int, at now: Moment, canStore: Bool, _ deadlines: inout Deadlines
  ) -> Bool {
    slab[driver].isRetentionArmed = false
    guard slab[driver].isStale else { return false }
    slab[driver].reckonAgain(at: now)
    let isNeeded = slab[driver].session != nil || slab[driver].activeTrips > 0
    let isDue = now.uptime >= slab[driver].forgetsAt(timings)
    if isDue, !isNeeded, canStore { return true }
    if isNeeded || isDue { slab[driver].putOffForgetting(at: now.uptime) }
    armRetention(driver, &deadlines)
    return false
  }

  /// `driver_offline` is published, and recorded where there is a journal.
  mutating func goOffline(_ driver: Int, at time: Timestamp, isStored: Bool) {
    slab[driver].durable.goOffline(at: time, isStored: isStored)
  }

  /// `driver_online` is published.
  mutating func goOnline(_ driver: Int) { slab[driver].durable.isOffline = false }

  // MARK: Trips

  /// One trip more binds the driver.
  mutating func beginTrip(_ driver: Int) {
    slab[driver].beginTrip()
    relabel(driver)
  }

  mutating func endTrip(_ driver: Int, at time: Timestamp) {
    slab[driver].endTrip(at: time)
    relabel(driver)
  }

  /// A trip that a driver began, if one did, is known, or not any more.
  mutating func count(begunTrips step: Int, of beginner: Handle?) {
    if let driver = beginner.flatMap({ current($0) }) { slab[driver].count(begunTrips: step) }
  }

  // MARK: What they say of themselves

  /// What a driver says of itself; what the report leaves out stays as it was. What came before with the same `key`
  /// changes nothing. Throws, and changes nothing, where the table of profiles has no room.
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

  /// What a credential says of a driver's vehicle.
  enum ClaimsOutcome {
    case unchanged, taken
    /// There is no room for it: the driver is shown with neither vehicle type nor tags, for it must not be found by
    /// what it says itself.
    case noRoom
  }

  mutating func take(_ claims: VehicleClaims, of driver: Int) -> ClaimsOutcome {
    let old = profiles.profile(slab[driver].profile)
    var profile = old
    if let vehicleType = claims.vehicleType { profile.vehicleType = vehicleType }
    if let tags = claims.tags { profile.tags = tags }
    guard profile != old else { return .unchanged }
    let hasRoom = setProfile(profile, of: driver)
    if !hasRoom {
      profiles.release(slab[driver].profile)
      slab[driver].profile = -1
    }
    relabel(driver)
    return hasRoom ? .taken : .noRoom
  }

  mutating func setProfile(_ profile: DriverProfile, of driver: Int) -> Bool {
    guard let index = profiles.replace(slab[driver].profile, with: profile) else { return false }
    slab[driver].profile = index
    return true
  }
}
