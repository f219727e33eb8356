// Trips: moves, changes and ends. `trips` decides (Trips.swift); the result is recorded once, then published.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  /// The trip that a driver's fixes named last, if it still exists.
  @inline(__always)
  func lastTrip(of driver: Int) -> Int? {
    guard let handle = drivers[driver].lastTrip else { return nil }
    return trips.current(handle)
  }

  func driver(ofTrip trip: Int) -> Int? { trips[trip].driverID.flatMap { drivers.find($0) } }

  // MARK: Decide, record once, publish

  /// Handles a `trip_status`.
  mutating func moveTrip(_ input: TripStatusInput) {
    do throws(ErrorReply) {
      try requireRoom("this hub cannot store moves now; send it again")
      let mover = trips.creator(by: input).flatMap { findOrInsertDriver($0, isHere: false, isOnline: false) }
      let request = try offersRequest(in: input.report, by: input.actor)
      let outcome = try trips.apply(
        offers.entitling(input, trips, now), creator: mover.map { drivers.creator($0) }, at: now, counting: &counters)
      switch outcome {
      case .unchanged(let state):
        acknowledge(Ack(replyTo: input.messageID, trip: state), .tripStatus, since: now.uptime, to: input.session)
      case .step(let step):
        commit(step)
        beginOffers(request, of: step.trip)
        acknowledge(Ack(replyTo: input.messageID), .tripStatus, since: now.uptime, to: input.session)
        followUp(step)
      }
    } catch {
      channels.noteRefused(.move(input), error, trips)
      refuseTrip(error.replying(to: input.messageID), to: input.session) { .reply(input.session, .error($0)) }
    }
  }

  /// Handles a `trip_change`.
  mutating func changeTrip(_ input: TripChangeInput) {
    do throws(ErrorReply) {
      try change(input.change, by: input.actor, messageID: input.messageID, at: input.timestamp)
      acknowledge(Ack(replyTo: input.messageID), .tripChange, since: now.uptime, to: input.session)
    } catch {
      refuseTrip(error.replying(to: input.messageID), to: input.session) { .reply(input.session, .error($0)) }
    }
  }

  /// Applies a change, and records and publishes it where anything differs.
  mutating func change(
    _ change: TripChange, by actor: Actor, messageID: MessageID?, at time: Timestamp
  ) throws(ErrorReply) {
    try requireRoom("this hub cannot store changes now; send it again")
    let outcome = try trips.change(change, by: actor, messageID: messageID, at: time, now, counting: &counters)
    guard case .step(let step) = outcome else { return }
    recordTrip(step.trip)
    publish(step.update, of: step.trip)
    if step.update.pickup != nil { reviewOffers(ofTrip: step.trip) }
    carryOut(offers.renew(after: step, drivers, trips))
    updateLegAfterMove(step.trip)
  }

  /// Records the beginning or move of a trip once, then publishes it, also to a booked driver that never connected.
  mutating func commit(_ step: TripStep) {
    let trip = step.trip
    if step.isNew {
      channels.takeOver(.trip(trips[trip].id), nil)
      carryOut(distant.forget(trip: trips[trip].id))
      if !channels.isInCluster, let id = trips[trip].bookedDriver { _ = findOrInsertDriver(id, isOnline: false) }
      trips.link(trip, to: channels.find(.trip(trips[trip].id)))
      drivers.count(begunTrips: 1, of: trips[trip].creator)
      channels.sendToCluster(.owned(.trip(trips[trip].id), seizes: false))
    }
    countActiveTrip(trip)
    recordTrip(trip)
    if step.isClaimed, let channel = trips[trip].channel, let driver = trips[trip].driverID {
      channels.claim(channel, by: driver)
    }
    publish(step.update, of: trip)
    if step.isNew || trips[trip].ended != nil { trips.arm(trip, &deadlines) }
    reviewOffers(ofTrip: trip, ofDriver: driver(ofTrip: trip))
  }

  mutating func recordTrip(_ trip: Int, isUpdate: Bool = true) {
    if isUpdate { trips.noteUpdate(of: trip, at: now.timestamp) }
    if storage.isOn { storage.write(.trip(trips[trip].durable)) }
  }

  /// After the answer to a move: updates the driver's sampling and its leg.
  mutating func followUp(_ step: TripStep) {
    counters.tripMoves += 1
    if let driver = driver(ofTrip: step.trip) { adviseSampling(driver, trip: lastTrip(of: driver)) }
    updateLegAfterMove(step.trip)
  }

  /// A refusal that shows a trip's or share's state waits until that is stored; others are sent at once.
  mutating func refuseTrip(_ refusal: ErrorReply, to session: SessionRef, _ output: (ErrorReply) -> HubOutput) {
    if refusal.refusesMove { counters.tripMovesRefused += 1 }
    emit(output(refusal), to: session.outlet, awaitsStorage: refusal.showsState)
  }

  /// Counts the driver's active trips, which make it `on_trip`; where the driver table is full, at a later move.
  mutating func countActiveTrip(_ trip: Int) {
    if let id = trips.uncounted(trip), let driver = findOrInsertDriver(id, isHere: false, isOnline: false) {
      trips.occupy(drivers.handle(of: driver), by: trip)
      drivers.beginTrip(driver)
      followDistant(driver)
      noteArea(driver)
    } else if let handle = trips.release(trip) {
      // A driver with an active trip is not forgotten, so it exists.
      let driver = Int(handle.index)
      drivers.endTrip(driver, at: now.timestamp)
      followDistant(driver)
      recordDriver(driver)
      noteArea(driver)
    }
  }

  /// Publishes an event of a trip on its channel, on its driver's, and on that of all trips once that exists.
  private mutating func publish(_ update: TripUpdate, of trip: Int) {
    func body(_ sequence: UInt64) -> Publication.Body { .tripUpdate(update.numbered(sequence)) }
    if let channel = eventChannel(ofTrip: trip) { publishEvent(on: channel, body) }
    if let driver = driver(ofTrip: trip), let channel = eventChannel(ofDriver: driver) {
      publishEvent(on: channel, body)
    }
    guard let channel = channels.trips else { return }
    let listed = trips[trip].listed(update)
    publishEvent(on: channel) { .tripUpdate(listed.numbered($0)) }
  }

  // MARK: Fixes that name a trip

  /// The trip of a driver's fix. The first fix of an entitled driver that names an unknown trip begins it.
  @inline(__always)
  mutating func tripForFixes(of driver: Int, _ input: FixInPlace) throws(ErrorReply) -> Int? {
    if !distant.isEmpty { distant.noteFix(of: driver) }
    guard let named = input.tripID else { return nil }
    // Compared in place, not copied.
    if let last = lastTrip(of: driver), trips[last].compactID.matches(named),
      let owner = trips[last].compactDriverID, owner.matches(drivers[driver].compactID)
    {
      return trips[last].isOver(at: now.uptime) ? nil : last
    }
    return try tripForFixes(of: driver, input.tripID, isGranted: input.tripIsGranted, at: input.fix.timestamp)
  }

  /// The trip of an id that a driver's fix names.
  mutating func tripForFixes(
    of driver: Int, _ id: Identifier?, isGranted: Bool, at time: Timestamp
  ) throws(ErrorReply) -> Int? {
    guard let id else { return nil }
    let known = trips.find(id)
    if known == nil, channels.isInCluster {
      let fix = DistantTrips.Beginning(trip: id, isGranted: isGranted, time: time)
      let isNowhere = lookUp(fix, by: driver)
      try distant.checkNamed(fix, by: driver)
      if !isNowhere { return nil }
    }
    try trips.checkNamed(known, id, by: drivers[driver].id, isGranted: isGranted)
    let trip = if let known { known } else { try beginTrip(id, withFixOf: driver, at: time) }
    return trips[trip].isOver(at: now.uptime) ? nil : trip
  }

  private mutating func beginTrip(
    _ id: Identifier, withFixOf driver: Int, at time: Timestamp
  ) throws(ErrorReply) -> Int {
    try requireRoom("this hub cannot store another trip now", retryAfter: 60)
    let step = try trips.begin(id, withFixOf: drivers.creator(driver), at: time, now, counting: &counters)
    commit(step)
    return step.trip
  }

  // MARK: On the way

  /// Updates the leg with a position of the trip's driver, `age` seconds old, and publishes what is new.
  @inline(__always)
  mutating func updateLeg(_ position: Position, age: Double, driver: Int, trip: Int, isRecorded: Bool = false) {
    guard let report = trips.advance(position, age: age, trip: trip, at: now, counting: &counters) else { return }
    publish(report.eta, of: trip)
    if report.isBackOnRoute || !report.due.isEmpty { publish(report, driver, trip, isRecorded) }
  }

  mutating func publish(_ eta: PublishedETA?, of trip: Int) {
    guard let eta else { return }
    counters.etaUpdates += 1
    channels.publish(eta, ofTrip: trip, trips, &storage, at: now.timestamp)
  }

  /// Updates the leg from the driver's newest position after a move of the trip.
  private mutating func updateLegAfterMove(_ trip: Int) {
    guard let (driver, position) = trips.positionOnLeg(trip, among: drivers) else { return }
    updateLeg(position, age: drivers[driver].age(of: position, at: now.timestamp), driver: driver, trip: trip)
  }

  /// Publishes notices on the trip's channel, and records that against repetition after a restart, unless the fix's own
  /// record will have it (`isRecorded`). While nothing can be stored the notices wait for a later fix.
  @inline(never)
  private mutating func publish(_ report: LegReport, _ driver: Int, _ trip: Int, _ isRecorded: Bool) {
    let notices = report.notices(driver: drivers[driver].id)
    let channel = notices.isEmpty || !storage.hasRoom ? nil : eventChannel(ofTrip: trip)
    if channel != nil { trips.noteNotified(report.due, of: trip) }
    if !isRecorded, channel != nil || report.isBackOnRoute { recordTrip(trip, isUpdate: false) }
    guard let channel else { return }
    for notice in notices { publishEvent(on: channel) { .notification(notice.numbered($0)) } }
  }

  // MARK: Trips that end, and after a restart

  mutating func checkSilence(_ trip: Int) {
    guard let step = trips.checkSilence(trip, at: now, canStore: storage.hasRoom, &deadlines) else { return }
    commit(step)
    followUp(step)
  }

  /// Handles an ended trip's deadline: after the grace its subscribers are unsubscribed; after the retention the trip
  /// and its events are forgotten.
  mutating func checkEnded(_ trip: Int) {
    // Closed first: after a suspension of the machine, grace and retention may be over at the same deadline.
    if trips[trip].isOver(at: now.uptime) { close(trip) }
    guard trips.checkRetention(trip, at: now, canStore: storage.hasRoom, &deadlines) else { return }
    if let channel = trips[trip].channel { channels.forgetEvents(of: channel, &storage) }
    storage.write(.tripForgotten(trips[trip].id))
    removeTrip(trip)
  }

  /// Closes a trip's channel if it is due. True where it is closed.
  mutating func closeIfOver(_ channel: Channel) -> Bool {
    guard case .trip(let id) = channel, let trip = trips.find(id), trips[trip].isOver(at: now.uptime)
    else { return false }
    close(trip)
    return true
  }

  private mutating func close(_ trip: Int) {
    if trips.close(trip), let channel = trips[trip].channel { channels.endTrip(channel, &storage, counting: &counters) }
  }

  mutating func removeTrip(_ trip: Int) {
    channels.sendToCluster(.released(.trip(trips[trip].id)))
    drivers.count(begunTrips: -1, of: trips[trip].creator)
    offers.forget(trip: trip)
    trips.remove(trip)
  }

  /// Resumes a restored trip, by the wall clock.
  mutating func resumeTrip(_ trip: Int) {
    trips.link(trip, to: channels.find(.trip(trips[trip].id)))
    countActiveTrip(trip)
    let creator = trips[trip].begunBy == .driver ? trips[trip].driverID : nil
    let driver = creator.flatMap { trips[trip].endedAt == nil ? findOrInsertDriver($0) : drivers.find($0) }
    trips.resume(trip, begunBy: driver.map { drivers.handle(of: $0) }, at: now)
    drivers.count(begunTrips: 1, of: trips[trip].creator)
    trips.arm(trip, &deadlines)
  }
}
