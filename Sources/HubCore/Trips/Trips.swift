// The trips of a hub: how they begin, move, change and end. Each method decides and changes the state here; its caller
// records the result once and publishes it.
import HubBytes
import HubGeo
import HubMessages

struct Trips: ~Copyable {
  private let limits: HubLimits
  let timings: HubTimings
  private var seed: UInt64
  /// Only files of this folder use it and the other non-private members, which TidyTests checks.
  var slab = Slab<Trip>()
  private var ids = IndexTable()
  private var order = CreationOrder()
  private var riders = SumByCreator()
  private var routes = SumByCreator()
  private var active: ActiveTrips
  private(set) var legs: TripLegs
  /// Unfinished lists.
  private var listings = TripListings()
  /// When the trips of the journal were resumed (uptime, ns); `.min` where there were none.
  private(set) var start = Int64.min

  init(limits: HubLimits, timings: HubTimings, seed: UInt64) {
    self.limits = limits
    self.timings = timings
    self.seed = seed
    legs = TripLegs(limits: limits, rules: timings.trips)
    active = ActiveTrips(drivers: limits.drivers)
  }

  var count: Int { slab.count }
  /// The number of the newest trip.
  var newestNumber: UInt64 { order.newestNumber }
  /// One more than the largest index that was ever in use.
  var endIndex: Int { slab.endIndex }

  func countEntries(into counters: inout HubCounters) {
    counters.set(.trips, count)
    counters.set(.tripLists, listings.count)
    counters.set(.routePoints, legs.routePoints)
    counters.set(.routeBytes, routes.all)
  }

  /// A trip's record, in place.
  subscript(trip: Int) -> Trip {
    @inline(__always) unsafeAddress { unsafe slab.address(of: trip) }
  }

  @inline(__always)
  func handle(of trip: Int) -> Handle { slab.handle(of: trip) }

  /// The trip of a handle; nil where it was forgotten.
  @inline(__always)
  func current(_ handle: Handle) -> Int? { slab.current(handle) }

  private func hash(_ id: Identifier) -> UInt64 { id.text.hashValue(seed: seed) }

  func find(_ id: Identifier) -> Int? { ids.find(hash: hash(id)) { slab[$0].compactID.matches(id) } }

  /// Throws where there is no such trip.
  func findKnown(_ id: Identifier) throws(ErrorReply) -> Int {
    if let trip = find(id) { return trip }
    throw ErrorReply(code: .unknownTrip, message: "this hub knows no trip \(id)")
  }

  /// Whether an index is in use.
  func isInUse(_ trip: Int) -> Bool { slab.isInUse(trip) }

  // MARK: Beginning

  private mutating func insert(
    _ id: Identifier, by role: Role, status: TripStatus, at time: Timestamp, _ now: Moment,
    counting counters: inout HubCounters
  ) throws(ErrorReply) -> Int {
    guard count < role.share(of: limits.trips) else {
      counters.count(full: .trips)
      throw ErrorReply(code: .storageFull, message: "this hub's trip table is full", retryAfter: 60)
    }
    let number = order.nextNumber(at: now.timestamp)
    let trip = slab.insert(Trip(id: id, number: number, status: status, at: time, by: role, now: now))
    ids.insert(hash: hash(id), index: trip)
    order.insert(number, trip: trip)
    return trip
  }

  /// Throws at the limit of trips that one driver begins. Nobody approves them, so one driver could fill the table.
  private func checkLimit(of creator: TripCreator?, counting counters: inout HubCounters) throws(ErrorReply) {
    guard let creator else {
      throw ErrorReply(code: .storageFull, message: "this hub's driver table is full", retryAfter: 60)
    }
    if creator.tripsBegun < limits.tripsPerDriver { return }
    counters.count(.tripsPerDriver)
    throw ErrorReply(
      ownLimit: "a driver begins at most \(limits.tripsPerDriver) trips within a day (max-trips-per-driver)")
  }

  /// Begins a trip that nobody requested: by a driver's fix, as accepted.
  mutating func begin(
    _ id: Identifier, withFixOf creator: TripCreator, at time: Timestamp, _ now: Moment,
    counting counters: inout HubCounters
  ) throws(ErrorReply) -> TripStep {
    try checkLimit(of: creator, counting: &counters)
    let trip = try insert(id, by: .driver, status: .accepted, at: time, now, counting: &counters)
    slab[trip].take(driver: creator.id)
    slab[trip].creator = creator.driver
    return TripStep(trip: trip, update: slab[trip].update(from: nil, at: nil), isNew: true, isClaimed: true)
  }

  /// Begins a requested trip, whose sender's rights were checked. `move` is the hash by which a repetition is
  /// recognised.
  private mutating func begin(
    _ report: TripStatusReport, by role: Role, rider: Identifier?, driver: Identifier?, move: UInt64, _ now: Moment,
    counting counters: inout HubCounters
  ) throws(ErrorReply) -> TripStep {
    let holder = Trip.routeHolder(begunBy: role, rider: rider, driver: driver)
    try routes.check(report.route, of: holder, seed: seed, limits, counting: &counters)
    let trip = try insert(
      report.tripID, by: role, status: .requested, at: report.timestamp, now, counting: &counters)
    slab[trip].take(report, rider: rider, driver: driver)
    countRoute(of: trip)
    slab[trip].note(move)
    if let rider, role == .rider { riders.add(1, of: riderHash(rider)) }
    return TripStep(
      trip: trip, update: slab[trip].update(from: nil, at: report.location), isNew: true, isClaimed: driver != nil)
  }

  /// Adds (`sign` 1) or subtracts (−1) the bytes of a trip's route.
  private mutating func countRoute(of trip: Int, _ sign: Int = 1) {
    routes.add(sign * slab[trip].routeBytes, of: slab[trip].routeHolder?.hashValue(seed: seed))
  }

  private func riderHash(_ id: Identifier) -> UInt64 { Actor(role: .rider, id: id).hashValue(seed: seed) }

  /// `requested` by ops over HTTP. A repetition (same id, same content) gets an answer and changes nothing.
  mutating func request(
    _ report: TripStatusReport, at now: Moment, counting counters: inout HubCounters
  ) throws(ErrorReply) -> TripOutcome {
    let content = report.contentHash(seed: seed)
    guard let trip = find(report.tripID) else {
      return .step(
        try begin(
          report, by: .ops, rider: report.riderID, driver: report.driverID, move: content, now, counting: &counters))
    }
    if slab[trip].recentMoves.contains(content) { return .unchanged(showing: nil) }
    throw ErrorReply(
      code: .invalidTransition,
      message: "there is a trip \(report.tripID) of other content, in \(slab[trip].status.name)")
  }

  // MARK: Moving

  /// Handles a `trip_status`. `creator` is the driver that sends it, if one does and is known.
  mutating func apply(
    _ input: TripStatusInput, creator: TripCreator?, at now: Moment, counting counters: inout HubCounters
  ) throws(ErrorReply) -> TripOutcome {
    let move = moveHash(input.messageID, of: input.actor)
    let (report, target) = (input.report, input.report.status)
    guard let trip = find(report.tripID) else {
      return .step(try request(input, creator: creator, move: move, at: now, counting: &counters))
    }
    if slab[trip].recentMoves.contains(move) { return .unchanged(showing: nil) }
    let status = slab[trip].status
    guard slab[trip].mayBeMoved(by: input) else { throw input.refusal(to: slab[trip].party(of: input.actor)) }
    if let expected = report.expectedStatus, expected != status {
      throw ErrorReply(invalidIn: status, "the trip is in \(status.name), not in \(expected.name) as expected")
    }
    if target == .requested, slab[trip].isRepeated(by: input) { return .unchanged(showing: slab[trip].state) }
    guard status.allows(target) else {
      throw ErrorReply(invalidIn: status, "a trip cannot go from \(status.name) to \(target.name)")
    }
    let claimant = target == .accepted ? try claimant(of: trip, by: input) : nil
    legs.learn(slab[trip], to: target)
    if let claimant { slab[trip].take(driver: claimant) }
    slab[trip].note(move)
    var step = self.move(trip, to: target, at: report.timestamp, report.location, now)
    step.isClaimed = claimant != nil
    return .step(step)
  }

  /// The driver that `accepted` assigns to a trip: its sender, or the one that ops name. Nil where it has it already.
  private func claimant(of trip: Int, by input: TripStatusInput) throws(ErrorReply) -> Identifier? {
    let (status, named) = (slab[trip].status, input.actor.role == .ops ? input.report.driverID : input.actor.id)
    guard let driver = slab[trip].driverID else {
      guard let named else {
        throw ErrorReply(invalidIn: status, "the trip has no driver yet: one accepts it, or ops assign one (driverId)")
      }
      return named
    }
    guard named == nil || named == driver else {
      throw ErrorReply(invalidIn: status, "the trip has another driver, \(driver)")
    }
    return nil
  }

  mutating func move(
    _ trip: Int, to target: TripStatus, at time: Timestamp, _ location: Coordinate?, _ now: Moment
  ) -> TripStep {
    let previous = slab[trip].status
    slab[trip].move(to: target, at: time, now: now, grace: nanoseconds(timings.tripGrace))
    if slab[trip].status.target == nil { legs.end(&slab[trip]) }
    return TripStep(trip: trip, update: slab[trip].update(from: previous, at: location))
  }

  /// The hash of a message, to recognise a repetition. A rider and a driver may share an id, so it has the role.
  private func moveHash(_ messageID: MessageID, of actor: Actor) -> UInt64 {
    messageID.text.hashValue(seed: actor.hashValue(seed: seed))
  }

  /// `requested` for an unknown trip.
  private mutating func request(
    _ input: TripStatusInput, creator: TripCreator?, move: UInt64, at now: Moment,
    counting counters: inout HubCounters
  ) throws(ErrorReply) -> TripStep {
    let (report, actor) = (input.report, input.actor)
    guard report.status == .requested else {
      throw ErrorReply(
        code: .unknownTrip, message: "this hub knows no trip \(report.tripID): a trip begins with requested")
    }
    guard input.mayRequest else { throw input.refusal() }
    if actor.role == .driver { try checkLimit(of: creator, counting: &counters) }
    if actor.role == .rider, riders.sum(of: riderHash(actor.id)) >= limits.tripsPerRider {
      counters.count(.tripsPerRider)
      throw ErrorReply(
        ownLimit: "a rider has at most \(limits.tripsPerRider) trips within a day (max-trips-per-rider)")
    }
    let (rider, driver) = input.parties
    let step = try begin(
      report, by: actor.role, rider: rider, driver: driver, move: move, now, counting: &counters)
    slab[step.trip].creator = creator?.driver
    return step
  }

  // MARK: Changing

  /// Changes pickup, dropoff or route, until the driver has arrived at the destination: for the trip's rider, ops, and
  /// the driver of a trip without a rider. `messageID`: by which a repetition is recognised.
  mutating func change(
    _ change: TripChange, by actor: Actor, messageID: MessageID?, at time: Timestamp, _ now: Moment,
    counting counters: inout HubCounters
  ) throws(ErrorReply) -> TripOutcome {
    let trip = try findKnown(change.tripID)
    let move = messageID.map { moveHash($0, of: actor) }
    if let move, slab[trip].recentMoves.contains(move) { return .unchanged(showing: nil) }
    guard slab[trip].party(of: actor).mayChange(hasRider: slab[trip].riderID != nil) else {
      throw ErrorReply(
        code: .forbidden, message: "\(actor.role.name) \(actor.id) may not change trip \(change.tripID)")
    }
    let status = slab[trip].status
    guard status < .arrivedDestination else {
      throw ErrorReply(invalidIn: status, "a trip in \(status.name) can no longer be changed")
    }
    try routes.check(
      change.route, insteadOf: slab[trip].routeBytes, of: slab[trip].routeHolder, seed: seed, limits,
      counting: &counters)
    countRoute(of: trip, -1)
    let update = slab[trip].take(change, at: time)
    countRoute(of: trip)
    // Noted though it may change nothing: repeated after another change, it would. The trip's next record stores it.
    if let move { slab[trip].note(move) }
    guard update.isChange else { return .unchanged(showing: nil) }
    slab[trip].noteHeard(at: now.uptime)
    legs.end(&slab[trip])
    counters.tripChanges += 1
    return .step(TripStep(trip: trip, update: update))
  }

  /// Takes a position that names the trip, and `previous`, the same driver's position before. It counts in the trip's
  /// figures from when the trip has a driver until `arrived_destination`.
  @inline(__always)
  mutating func measure(_ position: Position, after previous: Position?, trip: Int, at uptime: Int64) {
    slab[trip].noteHeard(at: uptime)
    let status = slab[trip].status
    guard slab[trip].compactDriverID != nil, status < .arrivedDestination else { return }
    slab[trip].progress.follow(
      position, after: previous, status: status, maximumSpeed: limits.tracking.maximumSpeed,
      rules: timings.trips)
  }

  /// Updates the leg with a position, published `age` seconds after it was measured; nil where the trip has no leg.
  @inline(__always)
  mutating func advance(
    _ position: Position, age: Double, trip: Int, at now: Moment, counting counters: inout HubCounters
  ) -> LegReport? {
    legs.advance(position, age: age, &slab[trip], at: now, counting: &counters)
  }

  /// Called around a message with several fixes of a trip, of which only the newest may publish an ETA (`TripLegs`).
  mutating func holdETA() { legs.holdETA() }
  mutating func releaseETA(of trip: Int) -> PublishedETA? { legs.releaseETA(of: &slab[trip]) }

  // MARK: Notes

  /// Sets the index of the trip's channel; nil for none.
  mutating func link(_ trip: Int, to channel: Int?) { slab[trip].channel = channel }

  /// Notes a record of the trip.
  mutating func noteUpdate(of trip: Int, at time: Timestamp) { slab[trip].noteUpdate(at: time) }

  /// Notes that these notices were published.
  mutating func noteNotified(_ notices: TripNotices, of trip: Int) { slab[trip].progress.notices.formUnion(notices) }

  /// Notes the driver that counts this trip as active.
  mutating func occupy(_ driver: Handle, by trip: Int) {
    slab[trip].occupied = driver
    active.insert(trip, of: Int(driver.index))
  }

  /// The driver's active trip; nil where there is none, or several.
  func onlyActive(of driver: Handle) -> Int? { active.only(of: Int(driver.index)) }

  /// The driver that counted this trip as active and no longer does; nil where there is none.
  mutating func release(_ trip: Int) -> Handle? {
    guard !slab[trip].status.occupiesDriver, let driver = slab[trip].occupied else { return nil }
    slab[trip].occupied = nil
    active.remove(trip, of: Int(driver.index))
    return driver
  }

  /// Closes the trip; false where it is closed already.
  mutating func close(_ trip: Int) -> Bool { slab[trip].close() }

  // MARK: Lists

  /// Begins a list; the answer comes with this turn or a later one.
  mutating func list(
    _ query: TripListQuery, for session: SessionRef, _ replyTo: MessageID?, counting counters: inout HubCounters
  ) throws(ErrorReply) {
    guard listings.count < limits.tripLists else {
      counters.count(full: .tripLists)
      throw ErrorReply(
        code: .rateLimited, message: "too many trip lists are being built (\(limits.tripLists))", retryAfter: 1)
    }
    listings.append(TripListing(query, for: session, replyTo: replyTo))
  }

  mutating func joinCluster() { order.goesByClock = true }

  var hasListings: Bool { !listings.isEmpty }

  /// Continues the lists, up to the limit of a turn. Gives those that are done.
  mutating func continueListings() -> [TripListing] {
    listings.advance(over: slab, order, limit: limits.tripsListedPerTurn)
  }

  // MARK: Storing, forgetting and reading back

  /// Changes the seed while there are no trips.
  mutating func setSeed(_ seed: UInt64) {
    precondition(count == 0)
    self.seed = seed
  }

  mutating func remove(_ trip: Int) {
    legs.end(&slab[trip])
    if let rider = slab[trip].riderID, slab[trip].begunBy == .rider { riders.add(-1, of: riderHash(rider)) }
    countRoute(of: trip, -1)
    let (id, changed) = (slab[trip].id, slab[trip].changed)
    ids.remove(hash: hash(id), index: trip)
    order.remove(slab[trip].number)
    let now = Moment(uptime: 0, timestamp: changed)
    slab.remove(trip, leaving: Trip(id: id, number: 0, status: .cancelled, at: changed, by: .ops, now: now))
  }

  /// Restores a trip; false where another trip has the id.
  mutating func load(_ durable: DurableTrip, at uptime: Int64) -> Bool {
    if let known = find(durable.id) {
      guard slab[known].number == durable.number else { return false }
      countRoute(of: known, -1)
      slab[known].take(durable, now: uptime)
      countRoute(of: known)
      return true
    }
    let trip = slab.insert(Trip(durable, now: uptime))
    ids.insert(hash: hash(durable.id), index: trip)
    order.insert(durable.number, trip: trip)
    order.restore(newestNumber: durable.number)
    if let rider = durable.riderID, durable.begunBy == .rider { riders.add(1, of: riderHash(rider)) }
    countRoute(of: trip)
    return true
  }

  /// Restores the highest number that any trip has had, forgotten ones included.
  mutating func restore(newestNumber number: UInt64) { order.restore(newestNumber: number) }

  mutating func load(_ progress: TripProgress, of trip: Int) { slab[trip].progress = progress }

  mutating func load(_ eta: DurableETA, of trip: Int, at uptime: Int64) {
    slab[trip].lastPublishedETA = PublishedETA(eta, publishedAt: uptime)
  }

  /// Resumes a restored trip, by the wall clock. `creator` is the driver that began it, if it is known.
  mutating func resume(_ trip: Int, begunBy creator: Handle?, at now: Moment) {
    start = now.uptime
    slab[trip].creator = creator
    slab[trip].resume(at: now, grace: nanoseconds(timings.tripGrace))
  }
}
