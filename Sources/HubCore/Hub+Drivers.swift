// Drivers: their presence, and what they say of themselves.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  /// The driver whose live session this is; nil when it was replaced, closed or never a driver's.
  @inline(__always)
  func driver(of session: SessionRef) -> Int? {
    // Where they are: an array of the loop's by name would be retained and released.
    let (loop, slot) = (Int(session.loop), Int(session.slot))
    guard slot < sessions[loop].count else { return nil }
    let driver = Int(sessions[loop][slot])
    guard driver >= 0, drivers[driver].session == session else { return nil }
    return driver
  }

  func findDriver(_ id: Identifier) -> Int? {
    driverIDs.find(hash: id.text.hashValue(seed: seed)) { drivers[$0].id == id }
  }

  /// The driver's index, a new record if it is not known; nil at the limit.
  mutating func findOrInsertDriver(_ id: Identifier) -> Int? {
    let hash = id.text.hashValue(seed: seed)
    if let found = driverIDs.find(hash: hash, where: { drivers[$0].id == id }) { return found }
    guard drivers.count < limits.drivers else {
      counters.count(full: .drivers)
      return nil
    }
    let driver = drivers.insert(
      Driver(
        id: id, hash: hash, tracker: Tracker(), lastFix: now.uptime, disconnected: now.uptime))
    driverIDs.insert(hash: hash, index: driver)
    drivers[driver].channel = channels.find(.driver(id))
    counters.driversOnline += 1
    armStaleness(driver)
    return driver
  }

  mutating func handle(_ session: SessionRef, _ messageID: MessageID, _ report: DriverStatusReport) {
    guard let driver = driver(of: session) else { return refuseReplaced(session, messageID) }
    guard storage.hasRoom else {
      counters.refusedForStorage += 1
      return refuse(
        session, messageID, .storageFull, "this hub cannot store a status now; send it again", retryAfter: 5)
    }
    guard takeProfile(report, driver) else {
      counters.count(full: .profiles)
      return refuse(
        session, messageID, .storageFull, "this hub's table of vehicle types and tags is full", retryAfter: 60)
    }
    drivers[driver].reported = report.status
    relabel(driver)
    noteArea(driver)
    recordDriver(driver)
    replyStored(.ack(Ack(replyTo: messageID)), to: session)
    adviseSampling(driver, trip: lastTrip(of: driver))
  }

  /// What a report leaves out stays as it was. False where the table has no room; then nothing has changed.
  private mutating func takeProfile(_ report: DriverStatusReport, _ driver: Int) -> Bool {
    guard report.vehicleType != nil || report.tags != nil else { return true }
    let old = drivers[driver].profile
    var profile = profiles.profile(old)
    if let vehicleType = report.vehicleType { profile.vehicleType = vehicleType }
    if let tags = report.tags { profile.tags = tags }
    guard let index = profiles.replace(old, with: profile) else { return false }
    drivers[driver].profile = index
    return true
  }

  /// What a driver's credential says of its vehicle holds from now on. Where the table has no room for it, the driver
  /// is shown with neither vehicle type nor tags: it must not be found by what it says itself.
  mutating func take(_ claims: VehicleClaims, of id: Identifier) {
    guard let driver = findDriver(id) else { return }
    let old = drivers[driver].profile
    var profile = profiles.profile(old)
    if let vehicleType = claims.vehicleType { profile.vehicleType = vehicleType }
    if let tags = claims.tags { profile.tags = tags }
    guard profile != profiles.profile(old) else { return }
    if let index = profiles.replace(old, with: profile) {
      drivers[driver].profile = index
    } else {
      counters.count(full: .profiles)
      profiles.release(old)
      drivers[driver].profile = -1
    }
    relabel(driver)
    noteArea(driver)
    if storage.hasRoom { recordDriver(driver) }
  }

  // MARK: Presence

  /// When the driver is stale if nothing comes: its session gone for 60 s, or no fix for longer than it should take.
  /// Time in which the hub stood still is not the driver's.
  private mutating func staleAt(_ driver: Int) -> Int64 {
    let silence = max(
      timings.stale, timings.staleSamplingIntervals * Double(drivers[driver].samplingInterval),
      min(timings.staleSamplingIntervals * Double(drivers[driver].sendingInterval), timings.longestSendingSilence))
    // Who was told another interval gets the time for a fix by that one.
    let bySilence = max(drivers[driver].lastFix, drivers[driver].samplingTold, lastStandstill) + nanoseconds(silence)
    // A driver that posts over HTTP has no session: only silence makes it stale.
    guard drivers[driver].session == nil, drivers[driver].disconnected > drivers[driver].lastFix else {
      return bySilence
    }
    return min(bySilence, max(drivers[driver].disconnected, lastStandstill) + nanoseconds(timings.stale))
  }

  /// A fix came without a session: the time since the one before is how often the driver sends. Messages that come in
  /// quick succession, as of a phone that empties its queue, do not hide a longer interval: it holds until as much time
  /// has passed in shorter ones. A gap over `longestSendingSilence` is no interval, for the driver was away: it changes
  /// nothing. An interval counts for no more than leads to that silence, or it would hold for hours.
  @inline(never)
  mutating func noteSending(_ driver: Int) {
    let known = drivers[driver].sendingInterval
    let passed = Float(now.uptime - max(drivers[driver].lastFix, lastStandstill)) * 1e-9
    let (longestGap, intervals) = (Float(timings.longestSendingSilence), Float(timings.staleSamplingIntervals))
    if known < 0 {
      drivers[driver].sendingInterval = 0
    } else if passed <= longestGap {
      drivers[driver].sendingInterval = min(max(passed, known - passed), longestGap / intervals)
    }
  }

  /// Whole seconds at which a driver sends that has no session, for the journal; 0 for one with a session.
  @inline(__always)
  func storedSendingInterval(_ driver: Int) -> UInt16 {
    guard drivers[driver].session == nil else { return 0 }
    let seconds = max(drivers[driver].samplingInterval, drivers[driver].sendingInterval, 1).rounded(.up)
    return UInt16(min(seconds, Float(UInt16.max)))
  }

  @inline(__always)
  private func handle(ofDriver driver: Int) -> Handle {
    Handle(index: UInt32(driver), generation: drivers.generation(of: driver))
  }

  /// The moment may come nearer, with a session's end or a shorter sampling interval; but never nearer than `stale`
  /// after that. So an entry that comes up at least that often is never late, and there need be only one.
  private mutating func armStaleness(_ driver: Int) {
    let look = min(staleAt(driver), now.uptime + nanoseconds(timings.stale))
    deadlines.arm(.driverStaleness, handle(ofDriver: driver), at: look)
  }

  /// The entry that watches for staleness came up: stale now, or looked at again when it would be.
  private mutating func checkStaleness(_ driver: Int) {
    guard !drivers[driver].isStale else { return }  // it began offline
    if now.uptime >= staleAt(driver) { becomeStale(driver) } else { armStaleness(driver) }
  }

  private mutating func becomeStale(_ driver: Int) {
    drivers[driver].isStale = true
    counters.driversOnline -= 1
    index.remove(UInt32(driver))
    if let position = drivers[driver].position {
      staleIndex.move(UInt32(driver), to: position.coordinate, label: label(of: driver))
    }
    noteArea(driver)
    endPairs(of: driver, .offline)
    tellOffline(driver)
    if !drivers[driver].isRetentionArmed { armRetention(driver) }
  }

  mutating func returnFromStale(_ driver: Int) {
    drivers[driver].isStale = false
    staleIndex.remove(UInt32(driver))
    counters.driversOnline += 1
    if drivers[driver].durable.isOffline, storage.hasRoom { tellOnline(driver) }
    armStaleness(driver)
  }

  /// A driver of the life before that is offline already, or of whom nothing is known but events: no notification.
  mutating func beginOffline(_ driver: Int) {
    drivers[driver].isStale = true
    counters.driversOnline -= 1
    if !drivers[driver].isRetentionArmed { armRetention(driver) }
  }

  // MARK: Forgetting

  private mutating func armRetention(_ driver: Int) {
    drivers[driver].isRetentionArmed = true
    let lastSeen = max(drivers[driver].lastFix, drivers[driver].disconnected)
    deadlines.arm(.driverRetention, handle(ofDriver: driver), at: lastSeen + nanoseconds(timings.retention))
  }

  /// A start that read a wrong wall clock took the driver for one that is long gone: by the clock of now it may not be.
  private mutating func reckonAgain(_ driver: Int) {
    guard drivers[driver].durable.isKnown else { return }
    let passed = now.timestamp.milliseconds - drivers[driver].durable.heard.milliseconds
    let heard = now.uptime - (min(max(passed, 0), 1 << 40) + 1) * 1_000_000
    drivers[driver].disconnected = max(drivers[driver].disconnected, heard)
  }

  /// The entry that waits to forget the driver came up. A driver that is back is watched for staleness instead.
  private mutating func checkRetention(_ driver: Int) {
    drivers[driver].isRetentionArmed = false
    guard drivers[driver].isStale else { return }
    reckonAgain(driver)
    if drivers[driver].session != nil || drivers[driver].activeTrips > 0 {
      drivers[driver].disconnected = now.uptime  // still there: look again a retention later
    } else if now.uptime >= max(drivers[driver].lastFix, drivers[driver].disconnected) + nanoseconds(timings.retention)
    {
      if storage.hasRoom { return forget(driver) }
      drivers[driver].disconnected = now.uptime
    }
    armRetention(driver)
  }

  /// Publishes `driver_offline`, and stores that it was published: after a restart it must not come again.
  private mutating func tellOffline(_ driver: Int) {
    guard !drivers[driver].durable.isOffline else { return }
    guard storage.hasRoom else {
      counters.eventsNotStored += 1
      return
    }
    drivers[driver].durable.goOffline(at: now.timestamp, isStored: storage.isOn)
    storage.write(.driverOffline(drivers[driver].id, at: now.timestamp))
    publishPresence(driver, .driverOffline, "Driver offline", "No position has come from the driver for a while.")
  }

  /// Publishes `driver_online` for a driver of which `driver_offline` was published. Where there is a journal, the
  /// record of its fix is written in the same turn.
  mutating func tellOnline(_ driver: Int) {
    drivers[driver].durable.isOffline = false
    publishPresence(driver, .driverOnline, "Driver online", "The driver's positions are coming again.")
  }

  /// Presence goes to the driver's channel and to the trip that its fixes named last, while that goes on.
  private mutating func publishPresence(_ driver: Int, _ kind: Notification.Kind, _ title: String, _ body: String) {
    let id = drivers[driver].id
    if let channel = eventChannel(ofDriver: driver) {
      publishEvent(on: channel) {
        .notification(Notification(kind: kind, title: title, body: body, driverID: id, sequence: $0))
      }
    }
    if let trip = lastTrip(of: driver), !trips[trip].status.isFinal, let channel = eventChannel(ofTrip: trip) {
      publishEvent(on: channel) {
        .notification(Notification(kind: kind, title: title, body: body, driverID: id, sequence: $0))
      }
    }
  }

  private mutating func forget(_ driver: Int) {
    staleIndex.remove(UInt32(driver))
    endStays(ofForgotten: driver)
    endPairs(of: driver, .forgotten)
    if let channel = drivers[driver].channel { forgetEvents(of: channel) }
    if drivers[driver].durable.isKnown { storage.write(.driverForgotten(drivers[driver].id)) }
    removeDriver(driver)
  }

  mutating func removeDriver(_ driver: Int) {
    if drivers[driver].fixTimes != nil { driversWithFixTimes -= 1 }
    dropStays(of: driver)
    dropPairs(of: driver)
    missedFixes -= drivers[driver].durable.missed.count
    profiles.release(drivers[driver].profile)
    overlaps[Int32(driver)] = nil
    driverIDs.remove(hash: drivers[driver].hash, index: driver)
    drivers.remove(
      driver,
      leaving: Driver(
        id: drivers[driver].id, hash: 0, tracker: Tracker(), lastFix: 0, disconnected: 0))
  }

  // MARK: Deadlines

  /// Entries looked at in one turn: all drivers of a network that fails become stale in one second, and each publishes.
  private static var deadlinesPerTurn: Int { 128 }

  /// True where more is due than one turn looks at.
  mutating func handleDeadlines() -> Bool {
    for _ in 0..<Self.deadlinesPerTurn {
      guard let entry = deadlines.next(uptime: now.uptime) else { return false }
      let index = Int(entry.handle.index)
      switch entry.kind {
      case .driverStaleness: if drivers.isCurrent(index, entry.handle.generation) { checkStaleness(index) }
      case .driverRetention: if drivers.isCurrent(index, entry.handle.generation) { checkRetention(index) }
      case .replacedSession: if drivers.isCurrent(index, entry.handle.generation) { tellReplaced(index) }
      case .tripSilence: if trips.isCurrent(index, entry.handle.generation) { checkSilence(index) }
      case .trip: if trips.isCurrent(index, entry.handle.generation) { checkEnded(index) }
      }
    }
    return true
  }
}
