// Drivers: sessions, reports, sampling advice, presence, and how they are forgotten.
import HubMessages

extension Hub {
  /// The index of the driver, which is added if it is unknown; nil at the limit. `isHere` is false where another hub
  /// may have the driver; `isOnline` where it has not connected and only somebody else's message names it.
  mutating func findOrInsertDriver(_ id: Identifier, isHere: Bool = true, isOnline: Bool = true) -> Int? {
    if let known = drivers.find(id) { return known }
    guard let driver = drivers.insert(id, at: now.uptime, &deadlines) else {
      counters.count(full: .drivers)
      return nil
    }
    areas.insert(driver)
    drivers.link(driver, to: channels.find(.driver(id)))
    drivers.link(driver, toRaw: channels.find(.raw(id)))
    if !isHere { channels.sendToCluster(.owned(.driver(id), seizes: false)) }
    if !isOnline { drivers.resume(driver, at: now, &deadlines) }
    return driver
  }

  // MARK: Sessions

  /// Begins a driver's session; an older one of the same driver ends. `client` identifies its client; 0 for unknown.
  mutating func connect(_ session: SessionRef, _ id: Identifier, client: UInt32) {
    guard let driver = findOrInsertDriver(id) else { return emit(.full(session), to: session.outlet) }
    switch drivers.connect(session, driver: driver, client: client, at: now.uptime) {
    case .none: break
    case .refused(let wait): return emit(.conflict(session, retryAfter: wait), to: session.outlet)
    case .replaces(let old):
      counters.replacements += 1
      emit(.replaced(old, isRepeated: false), to: old.outlet)
    case .overlaps(let closesAt):
      counters.replacements += 1
      deadlines.arm(.replacedSession, drivers.handle(of: driver), at: closesAt)
    }
    emit(.admitted(session, beginSampling(driver)), to: session.outlet)
    if channels.isInCluster { arrive(driver) }
  }

  /// Closes the driver's older sessions that are due to be closed as replaced.
  mutating func notifyReplaced(_ driver: Int) {
    for (session, isRepeated) in drivers.takeReplaced(of: driver, at: now.uptime, &deadlines) {
      emit(.replaced(session, isRepeated: isRepeated), to: session.outlet)
    }
  }

  /// Refuses a message of a replaced session that is not closed yet: the driver's newer session is the one to use.
  mutating func refuseReplaced(_ session: SessionRef, _ messageID: MessageID) {
    if drivers.isReplaced(session) { refuse(session, .replaced(retryAfter: timings.takeover), replyTo: messageID) }
  }

  // MARK: What they say of themselves

  /// Sets a driver's status. `id`: the driver, where the report did not come over a session of that driver.
  mutating func setStatus(
    _ session: SessionRef, _ messageID: MessageID, _ report: DriverStatusReport, of id: Identifier?, isKeyed: Bool
  ) {
    guard let driver = id.map({ findOrInsertDriver($0, isHere: false) }) ?? drivers.driver(of: session) else {
      if id == nil { return refuseReplaced(session, messageID) }
      return refuse(session, messageID, .rateLimited, "this hub's driver table is full", retryAfter: 60)
    }
    do throws(ErrorReply) {
      try requireRoom("this hub cannot store a status now; send it again")
      try drivers.take(report, key: isKeyed ? messageID : nil, of: driver, counting: &counters)
    } catch {
      return refuse(session, error, replyTo: messageID)
    }
    noteArea(driver)
    recordDriver(driver)
    reviewOffers(ofDriver: driver)
    acknowledge(Ack(replyTo: messageID), .driverStatus, since: now.uptime, to: session)
    adviseSampling(driver, trip: lastTrip(of: driver))
  }

  /// Takes what a driver's credential states of its vehicle.
  mutating func take(_ claims: VehicleClaims, of id: Identifier) {
    guard let driver = drivers.take(claims, of: id, counting: &counters) else { return }
    noteArea(driver)
    if storage.hasRoom { recordDriver(driver) }
  }

  /// Answers a driver's ping with the time up to which its fixes are stored.
  mutating func answer(_ session: SessionRef, _ messageID: MessageID, _ ping: Ping, of id: Identifier?) {
    let storedThrough = (id.map { drivers.find($0) } ?? drivers.driver(of: session)).flatMap { driver in
      guard storage.isOn else { return drivers[driver].tracker.newest }
      return lookups.limit(drivers.storedThrough(storage.storedThrough, of: driver), of: driver)
    }
    reply(
      .pong(Pong(replyTo: messageID, ping: ping, serverTime: now.timestamp, storedThrough: storedThrough)), to: session)
  }

  // MARK: How often they are to send

  /// Sends new advice (SamplingPolicy.swift) to the driver's session. There is no timer: a driver that sends nothing
  /// need not be slowed down. `trip` is the one that its positions go to, unless that has ended.
  @inline(__always)
  mutating func adviseSampling(_ driver: Int, trip: Int?) {
    guard let session = drivers[driver].session else { return }
    let isWatched = channels.isWatched(driver, drivers, trip: trip, trips)
    guard let reason = drivers.advise(driver, isWatched: isWatched, at: now.uptime, samplingRules) else { return }
    reply(.sampling(samplingRules.advice(reason, counting: &counters)), to: session)
  }

  private mutating func beginSampling(_ driver: Int) -> Connected.Sampling {
    let isWatched = channels.isWatched(driver, drivers, trip: lastTrip(of: driver), trips)
    return drivers.beginAdvice(driver, isWatched: isWatched, at: now.uptime, samplingRules, counting: &counters)
  }

  // MARK: Presence

  mutating func checkStaleness(_ driver: Int) {
    guard drivers.checkStaleness(driver, at: now.uptime, &deadlines) else { return }
    noteArea(driver)
    reviewOffers(ofDriver: driver)
    // Where that can't be stored, its partners' next positions end the pairs.
    if storage.hasRoom { publish(fences.endPairs(of: driver, at: now.timestamp, among: drivers)) }
    publishOffline(driver)
  }

  /// Handles the deadline after which ops' areas stop showing an offline driver.
  mutating func checkAbsence(_ driver: Int) {
    if drivers.checkAbsence(driver, at: now.uptime, &deadlines) { noteArea(driver) }
  }

  mutating func returnFromStale(_ driver: Int) {
    drivers.returnFromStale(driver, at: now.uptime, &deadlines)
    if drivers[driver].durable.isOffline, storage.hasRoom { publishOnline(driver) }
  }

  /// Handles a fix that is not published: an offline driver becomes online at its newest position. The fix's record
  /// does not say so; the driver's own record does, so that `driver_online` is not repeated after a restart.
  mutating func noteUnpublished(_ driver: Int) {
    drivers.noteUnpublished(driver, at: now.uptime)
    guard drivers[driver].isStale else { return }
    let wasOffline = drivers[driver].durable.isOffline
    returnFromStale(driver)
    if wasOffline, !drivers[driver].durable.isOffline { recordDriver(driver) }
    drivers.reindex(driver)
    noteArea(driver)
  }

  /// Publishes and records that a driver is offline; tried again where that can't be stored, unless it has returned.
  mutating func publishOffline(_ driver: Int) {
    guard drivers[driver].owesOffline else { return }
    guard storage.hasRoom else {
      counters.eventsNotStored += 1
      return deadlines.arm(.lateOffline, drivers.handle(of: driver), at: now.uptime + nanoseconds(timings.storageRetry))
    }
    drivers.goOffline(driver, at: now.timestamp, isStored: storage.isOn)
    storage.write(.driverOffline(drivers[driver].id, at: now.timestamp))
    publishPresence(driver, isOnline: false)
  }

  /// Publishes `driver_online` after `driver_offline`; with a journal, its fix is recorded in the same turn.
  mutating func publishOnline(_ driver: Int) {
    drivers.goOnline(driver)
    publishPresence(driver, isOnline: true)
  }

  private mutating func publishPresence(_ driver: Int, isOnline: Bool) {
    let id = drivers[driver].id
    publishOfDriver(driver, onTrip: true) { .notification(Notification(driver: id, isOnline: isOnline, sequence: $0)) }
  }

  // MARK: Forgetting

  mutating func checkRetention(_ driver: Int) {
    let (isShown, canStore) = (areas.noteShown(driver), storage.hasRoom)
    if drivers.checkRetention(driver, at: now, isShown: isShown, canStore: canStore, &deadlines) { forget(driver) }
  }

  private mutating func forget(_ driver: Int) {
    publish(fences.forget(driver, at: now.timestamp, among: drivers))
    if let channel = drivers[driver].channel { channels.forgetEvents(of: channel, &storage) }
    if drivers[driver].durable.isKnown { storage.write(.driverForgotten(drivers[driver].id)) }
    removeDriver(driver)
  }

  mutating func removeDriver(_ driver: Int) {
    let (id, wasHere) = (drivers[driver].id, !drivers[driver].isElsewhere)
    carryOut(distant.forget(driver))
    fences.drop(driver)
    drivers.remove(driver)
    if wasHere { channels.forget(driver: id) }
  }
}

extension Notification {
  /// `driver_online` or `driver_offline`.
  fileprivate init(driver: Identifier, isOnline: Bool, sequence: UInt64) {
    self.init(
      kind: isOnline ? .driverOnline : .driverOffline, title: isOnline ? "Driver online" : "Driver offline",
      body: isOnline
        ? "The driver's positions are coming again." : "No position received from the driver for a while.",
      driverID: driver, sequence: sequence)
  }
}
