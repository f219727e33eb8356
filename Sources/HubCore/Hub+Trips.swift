// Trips: how one begins, moves and ends, and whose fixes belong to it.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  func findTrip(_ id: Identifier) -> Int? {
    tripIDs.find(hash: id.text.hashValue(seed: seed)) { trips[$0].id == id }
  }

  /// The trip that a driver's fixes named last, if it is still there. Inlined, for a call that borrows the hub copies
  /// its 1.3 KB to the stack (Swift 6.3).
  @inline(__always)
  func lastTrip(of driver: Int) -> Int? {
    guard let handle = drivers[driver].lastTrip, trips.isCurrent(Int(handle.index), handle.generation) else {
      return nil
    }
    return Int(handle.index)
  }

  /// The trip that the driver's newest published position belongs to.
  func tripOfPosition(of driver: Int) -> Int? {
    guard let handle = drivers[driver].positionTrip, trips.isCurrent(Int(handle.index), handle.generation) else {
      return nil
    }
    return Int(handle.index)
  }

  // MARK: Fixes that name a trip

  enum TripForFixes {
    case none
    case use(Int)
    case refused(ErrorCode, String, retryAfter: Double? = nil, isOwnLimit: Bool = false)
  }

  /// The trip that a driver's fix belongs to. The first fix of an entitled driver that names an unknown trip begins it.
  @inline(__always)
  mutating func tripForFixes(of driver: Int, _ input: UnsafePointer<FixInput>) -> TripForFixes {
    guard input.pointee.message.update.tripID != nil else { return .none }
    // Where both ids lie: they are compared, not copied.
    if let last = lastTrip(of: driver), trips[last].id == input.pointee.message.update.tripID,
      trips[last].driverID == drivers[driver].id
    {
      return isOver(last) ? .none : .use(last)
    }
    return tripForFixes(
      of: driver, input.pointee.message.update.tripID, isGranted: input.pointee.tripIsGranted,
      at: input.pointee.message.update.fix.timestamp)
  }

  /// The same, by the trip's id.
  mutating func tripForFixes(
    of driver: Int, _ id: Identifier?, isGranted: Bool, at time: Timestamp
  ) -> TripForFixes {
    guard let id else { return .none }
    let known = findTrip(id)
    if known == nil, isGranted, !mayBeginTrip(driver) {
      return .refused(.rateLimited, tooManyTrips, retryAfter: 60, isOwnLimit: true)
    }
    guard let trip = known ?? (isGranted ? beginTrip(id, driver: driver, at: time) : nil) else {
      return isGranted
        ? .refused(.storageFull, "this hub has no room for another trip", retryAfter: 60)
        : .refused(.forbidden, "your token does not name trip \(id)")
    }
    let isDriver = trips[trip].driverID == drivers[driver].id
    guard isDriver || (isGranted && trips[trip].driverID == nil) else {
      return .refused(.forbidden, "trip \(id) is another driver's, or your token does not name it")
    }
    if isOver(trip) { return .none }
    drivers[driver].lastTrip = Handle(index: UInt32(trip), generation: trips.generation(of: trip))
    return .use(trip)
  }

  /// A trip that nobody requested: it begins with a fix, is that driver's, and accepted.
  private mutating func beginTrip(_ id: Identifier, driver: Int, at time: Timestamp) -> Int? {
    guard let trip = insertTrip(id, by: .driver, status: .accepted, at: time) else { return nil }
    trips[trip].driverID = drivers[driver].id
    recordTrip(trip)
    countBegunTrip(trip, by: driver)
    tellClaimed(trip)
    countActiveTrip(trip)
    publishMove(trip, from: nil, at: nil)
    return trip
  }

  // MARK: How many trips a driver begins

  /// A driver needs no one's consent to begin a trip: without a limit one could fill the table of all.
  private mutating func mayBeginTrip(_ driver: Int) -> Bool {
    if Int(drivers[driver].tripsBegun) < limits.tripsPerDriver { return true }
    counters.count(.tripsPerDriver)
    return false
  }

  private var tooManyTrips: String {
    "a driver begins at most \(limits.tripsPerDriver) trips within a day (max-trips-per-driver)"
  }

  /// Nor does a rider whose token names trips by a pattern.
  private mutating func mayBeginTrip(rider id: Identifier) -> Bool {
    if riderTrips.count(of: riderHash(id)) < limits.tripsPerRider { return true }
    counters.count(.tripsPerRider)
    return false
  }

  func riderHash(_ id: Identifier) -> UInt64 { identityHash(of: Actor(role: .rider, id: id)) }

  mutating func countBegunTrip(_ trip: Int, by driver: Int) {
    drivers[driver].tripsBegun += 1
    trips[trip].beginner = Handle(index: UInt32(driver), generation: drivers.generation(of: driver))
  }

  /// The trip is forgotten; the driver may have been before it.
  mutating func uncountBegunTrip(_ trip: Int) {
    guard let handle = trips[trip].beginner, drivers.isCurrent(Int(handle.index), handle.generation) else { return }
    drivers[Int(handle.index)].tripsBegun -= 1
  }

  private mutating func insertTrip(_ id: Identifier, by role: Role, status: TripStatus, at time: Timestamp) -> Int? {
    guard trips.count < role.share(of: limits.trips) else {
      counters.count(full: .trips)
      return nil
    }
    guard storage.hasRoom else {
      counters.refusedForStorage += 1
      return nil
    }
    let hash = id.text.hashValue(seed: seed)
    let trip = trips.insert(Trip(id: id, hash: hash, status: status, changed: time, lastHeard: now.uptime))
    trips[trip].begunBy = role
    newestTripNumber += 1
    trips[trip].number = newestTripNumber
    trips[trip].created = now.timestamp
    armSilence(trip)
    tripIDs.insert(hash: hash, index: trip)
    tripOrder.insert(newestTripNumber, trip: trip)
    trips[trip].channel = channels.find(.trip(id))
    return trip
  }

  // MARK: trip_status

  mutating func handle(_ input: TripStatusInput) {
    guard storage.hasRoom else {
      counters.refusedForStorage += 1
      return refuse(
        input.session, input.messageID, .storageFull, "this hub cannot store moves now; send it again", retryAfter: 5)
    }
    let move = moveHash(input.messageID, of: input.actor)
    guard let trip = findTrip(input.report.tripID) else { return request(input, move: move) }
    if trips[trip].recentMoves.contains(move) {
      return replyStored(.ack(Ack(replyTo: input.messageID)), to: input.session)
    }

    let status = trips[trip].status
    let target = input.report.status
    guard mayMove(trip, input) else {
      counters.tripMovesRefused += 1
      return refuse(
        input.session, input.messageID, .forbidden,
        "\(input.actor.role.name) \(input.actor.id) may not set trip \(input.report.tripID) to \(target.name)")
    }
    if let expected = input.report.expectedStatus, expected != status {
      return refuseMove(input, status, "the trip is in \(status.name), not in \(expected.name) as expected")
    }
    if target == .requested, repeats(input, trip) {
      return replyStored(.ack(Ack(replyTo: input.messageID, trip: trips[trip].state)), to: input.session)
    }
    guard status.allows(target) else {
      return refuseMove(input, status, "no move leads from \(status.name) to \(target.name)")
    }
    guard target != .accepted || trips[trip].driverID != nil || input.actor.role == .driver else {
      return refuseMove(input, status, "the trip has no driver yet: a driver accepts it")
    }
    apply(input, to: trip, move: move)
  }

  /// By what a repeated message is known. A rider and a driver may have the same id: the role is part of who sent it.
  func moveHash(_ messageID: MessageID, of actor: Actor) -> UInt64 {
    messageID.text.hashValue(seed: actor.id.text.hashValue(seed: seed ^ UInt64(actor.role.rawValue)))
  }

  private mutating func refuseMove(_ input: TripStatusInput, _ status: TripStatus, _ message: String) {
    counters.tripMovesRefused += 1
    // It tells of a state that may not be stored yet.
    replyStored(
      .error(ErrorReply(code: .invalidTransition, message: message, replyTo: input.messageID, status: status)),
      to: input.session)
  }

  /// Whether a `requested` asks for the trip that is there: it goes on, and has the same parties and content. The
  /// driver may have come since, so a request that names none is the same.
  private func repeats(_ input: TripStatusInput, _ trip: Int) -> Bool {
    let report = input.report
    let rider = report.riderID ?? (input.actor.role == .rider ? input.actor.id : nil)
    let driver = report.driverID ?? (input.actor.role == .driver ? input.actor.id : nil)
    return !trips[trip].status.isFinal && rider == trips[trip].riderID
      && (driver == nil || driver == trips[trip].driverID) && report.pickup == trips[trip].pickup
      && report.dropoff == trips[trip].dropoff && report.route == trips[trip].route
  }

  /// Ops; the trip's parties within their rights; an entitled driver while the trip has none, to accept it.
  private func mayMove(_ trip: Int, _ input: TripStatusInput) -> Bool {
    let party = trips[trip].party(of: input.actor)
    if party == .stranger, input.actor.role == .driver, trips[trip].driverID == nil {
      return input.tripIsGranted && input.report.status == .accepted
    }
    return party.mayMove(from: trips[trip].status, to: input.report.status)
  }

  /// `requested` for a trip that is not known yet.
  private mutating func request(_ input: TripStatusInput, move: UInt64) {
    let report = input.report
    guard report.status == .requested else {
      counters.tripMovesRefused += 1
      return refuse(input.session, input.messageID, .unknownTrip, "no trip \(report.tripID) was requested")
    }
    guard mayRequest(input) else {
      counters.tripMovesRefused += 1
      return refuse(
        input.session, input.messageID, .forbidden,
        "\(input.actor.role.name) \(input.actor.id) may not request trip \(report.tripID) for these parties")
    }
    let driver = input.actor.role == .driver ? findDriver(input.actor.id) : nil
    if let driver, !mayBeginTrip(driver) {
      return refuse(input.session, input.messageID, .rateLimited, tooManyTrips, retryAfter: 60)
    }
    if input.actor.role == .rider, !mayBeginTrip(rider: input.actor.id) {
      return refuse(
        input.session, input.messageID, .rateLimited,
        "a rider has at most \(limits.tripsPerRider) trips within a day (max-trips-per-rider)", retryAfter: 60)
    }
    let riderID = input.actor.role == .rider ? input.actor.id : report.riderID
    let driverID = input.actor.role == .driver ? input.actor.id : report.driverID
    guard let trip = begin(report, by: input.actor.role, rider: riderID, driver: driverID) else {
      return refuse(input.session, input.messageID, .storageFull, "this hub's trip table is full", retryAfter: 60)
    }
    if let driver { countBegunTrip(trip, by: driver) }
    finish(input, trip: trip, move: move, from: nil)
  }

  /// A trip that somebody asks for, whose right to do so was looked at; nil where there is no room for it.
  mutating func begin(
    _ report: TripStatusReport, by role: Role, rider: Identifier?, driver: Identifier?
  ) -> Int? {
    guard let trip = insertTrip(report.tripID, by: role, status: .requested, at: report.timestamp) else { return nil }
    trips[trip].riderID = rider
    if let rider, role == .rider { riderTrips.add(riderHash(rider)) }
    trips[trip].driverID = driver
    trips[trip].pickup = report.pickup
    trips[trip].dropoff = report.dropoff
    trips[trip].route = report.route
    recordTrip(trip)
    tellClaimed(trip)
    return trip
  }

  /// A rider for itself, a driver for itself, ops for all.
  private func mayRequest(_ input: TripStatusInput) -> Bool {
    switch input.actor.role {
    case .ops: true
    case .rider: input.tripIsGranted && (input.report.riderID ?? input.actor.id) == input.actor.id
    case .driver: input.tripIsGranted && (input.report.driverID ?? input.actor.id) == input.actor.id
    }
  }

  private mutating func apply(_ input: TripStatusInput, to trip: Int, move: UInt64) {
    let previous = trips[trip].status
    let target = input.report.status
    learnDetour(trip, to: target)
    trips[trip].status = target
    trips[trip].changed = input.report.timestamp
    if target == .accepted, trips[trip].driverID == nil {
      trips[trip].driverID = input.actor.id
      recordTrip(trip)
      tellClaimed(trip)
    }
    trips[trip].progress.move(to: target, at: input.report.timestamp)
    countActiveTrip(trip)
    finish(input, trip: trip, move: move, from: previous)
    guideAfterMove(trip)
    if target.isFinal { end(trip) }
  }

  /// What makes a driver `on_trip`. A driver that the full table had no room for is counted at a later move.
  mutating func countActiveTrip(_ trip: Int) {
    if trips[trip].status.occupiesDriver {
      guard trips[trip].occupied == nil, let id = trips[trip].driverID, let driver = findOrInsertDriver(id) else {
        return
      }
      trips[trip].occupied = Handle(index: UInt32(driver), generation: drivers.generation(of: driver))
      drivers[driver].activeTrips += 1
      relabel(driver)
      noteArea(driver)
    } else if let handle = trips[trip].occupied {
      // A driver with an active trip is not forgotten, so it is still there.
      trips[trip].occupied = nil
      let driver = Int(handle.index)
      drivers[driver].activeTrips -= 1
      drivers[driver].lastTripEnded = now.timestamp.milliseconds
      recordDriver(driver)
      relabel(driver)
      noteArea(driver)
    }
  }

  private mutating func finish(_ input: TripStatusInput, trip: Int, move: UInt64, from previous: TripStatus?) {
    noteMove(of: trip, move, from: previous, at: input.report.location)
    replyStored(.ack(Ack(replyTo: input.messageID)), to: input.session)
    adviseSampling(ofTrip: trip)
  }

  /// A move was made: it is recorded and told of. `move` is the hash by which its repetition is known.
  mutating func noteMove(of trip: Int, _ move: UInt64, from previous: TripStatus?, at location: Coordinate?) {
    trips[trip].recentMoves.insert(move)
    trips[trip].lastHeard = now.uptime
    counters.tripMoves += 1
    recordTrip(trip)
    publishMove(trip, from: previous, at: location)
  }

  /// A `trip_update` on the trip's channel, and on its driver's.
  private mutating func publishMove(_ trip: Int, from previous: TripStatus?, at location: Coordinate?) {
    publish(
      TripUpdate(
        tripID: trips[trip].id, status: trips[trip].status, previousStatus: previous, driverID: trips[trip].driverID,
        timestamp: trips[trip].changed, location: location,
        summary: trips[trip].status.isFinal ? trips[trip].progress.summary : nil, sequence: 0), of: trip)
  }

  /// Publishes an event of a trip on its channel, and on its driver's.
  mutating func publish(_ made: TripUpdate, of trip: Int) {
    var update = made
    if let channel = eventChannel(ofTrip: trip) {
      publishEvent(on: channel) {
        update.sequence = $0
        return .tripUpdate(update)
      }
    }
    if let id = trips[trip].driverID, let driver = findDriver(id), let channel = eventChannel(ofDriver: driver) {
      publishEvent(on: channel) {
        update.sequence = $0
        return .tripUpdate(update)
      }
    }
  }

  // MARK: Trips that nobody ends

  mutating func armSilence(_ trip: Int) {
    let handle = Handle(index: UInt32(trip), generation: trips.generation(of: trip))
    deadlines.arm(.tripSilence, handle, at: trips[trip].lastHeard + nanoseconds(timings.retention))
  }

  /// The entry that watches a trip while it goes on came up: cancelled if nothing was heard of it, or looked at again.
  mutating func checkSilence(_ trip: Int) {
    guard trips[trip].ended == nil else { return }
    guard now.uptime >= trips[trip].lastHeard + nanoseconds(timings.retention) else { return armSilence(trip) }
    guard storage.hasRoom else {
      let handle = Handle(index: UInt32(trip), generation: trips.generation(of: trip))
      return deadlines.arm(.tripSilence, handle, at: now.uptime + nanoseconds(timings.storageRetry))
    }
    let previous = trips[trip].status
    trips[trip].status = .cancelled
    trips[trip].changed = now.timestamp
    trips[trip].progress.move(to: .cancelled, at: now.timestamp)
    countActiveTrip(trip)
    counters.tripMoves += 1
    recordTrip(trip)
    publishMove(trip, from: previous, at: nil)
    adviseSampling(ofTrip: trip)
    releaseGuide(trip)
    end(trip)
  }
}
