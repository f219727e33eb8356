// The way of a location update through the hub, as one list of calls: whose is it, which trip, is it believable,
// where is the driver now, who is told.
import Bytes
import Geo
import Messages

extension Hub {
  /// One fix of a session.
  mutating func handle(_ input: FixInput) {
    counters.fixesReceived += 1
    guard let driver = driver(of: input.session) else {
      counters.fixesOrphaned += 1
      return
    }
    drivers[driver].clock.observe(sent: input.sent, received: input.received.timestamp)
    let trip: Int?
    switch tripForFixes(of: driver, input.update.tripID, isGranted: input.tripIsGranted, at: input.update.fix.timestamp)
    {
    case .none: trip = nil
    case .use(let found): trip = found
    case .refused(let code, let message, let retryAfter):
      counters.fixesForbidden += 1
      return refuse(input.session, input.messageID, code, message, retryAfter: retryAfter)
    }
    switch track(input.update.fix, driver: driver, trip: trip, received: input.received.uptime) {
    case .accepted, .history, .duplicate, .held: return
    case .refused(let refusal): refuse(input.session, input.messageID, refusal.code, refusal.explanation)
    }
  }

  /// What became of a fix, as far as its sender is concerned.
  enum FixOutcome {
    case accepted, history, duplicate, held
    case refused(Tracker.Refusal)
  }

  /// Filter, index, publish: the same for a fix of its own and one of a batch.
  mutating func track(_ fix: Fix, driver: Int, trip: Int?, received: Int64) -> FixOutcome {
    let isNew = drivers[driver].fixTimes?.insert(fix.timestamp) ?? true
    guard isNew else {
      counters.fixesDuplicate += 1
      return .duplicate
    }
    let rules = limits.tracking
    if let speed = fix.speed, speed > rules.maximumSpeed { counters.speedsIgnored += 1 }
    switch drivers[driver].tracker.update(fix, receivedAt: received, hubClock: now.timestamp, rules: rules) {
    case .accepted(let position):
      accept(position, driver: driver, trip: trip, received: received)
      return .accepted
    case .acceptedTwo(let held, let position):
      counters.fixesReleased += 1
      accept(held, driver: driver, trip: trip, received: received)
      accept(position, driver: driver, trip: trip, received: received)
      return .accepted
    case .acceptedHeld(let held, let refusal):
      counters.fixesReleased += 1
      accept(held, driver: driver, trip: trip, received: received)
      return count(refusal)
    case .history:
      counters.fixesHistory += 1
      if isBehindClock(fix, driver: driver) { counters.fixesBehindClock += 1 }
      return .history
    case .duplicate:
      counters.fixesDuplicate += 1
      return .duplicate
    case .held:
      counters.fixesHeld += 1
      return .held
    case .refused(let refusal):
      return count(refusal)
    }
  }

  /// Whether nothing of the driver is published because its clock was ahead: its newest fix is of the hub's future, by more
  /// than a leap, and this one is not.
  private func isBehindClock(_ fix: Fix, driver: Int) -> Bool {
    let future = now.timestamp.milliseconds &+ limits.tracking.leapMilliseconds
    guard let newest = drivers[driver].tracker.newest else { return false }
    return newest.milliseconds > future && fix.timestamp.milliseconds <= future
  }

  private mutating func count(_ refusal: Tracker.Refusal) -> FixOutcome {
    counters.fixesRefused[Int(refusal.rawValue)] += 1
    return .refused(refusal)
  }

  /// The driver is there now: move it in the index and tell who listens.
  private mutating func accept(_ position: Position, driver: Int, trip: Int?, received: Int64) {
    counters.fixesAccepted += 1
    if let trip { measure(position, driver: driver, trip: trip) }
    if let reason = position.absorbed { counters.fixesAbsorbed[Int(reason.rawValue)] += 1 }
    drivers[driver].position = position
    drivers[driver].positionTrip = trip.map { Handle(index: UInt32($0), generation: trips.generation(of: $0)) }
    if let trip { trips[trip].lastHeard = now.uptime }
    drivers[driver].lastFix = now.uptime
    if drivers[driver].isStale { returnFromStale(driver) }
    index.move(UInt32(driver), to: position.coordinate, label: label(of: driver))
    publish(position, driver: driver, trip: trip, received: received)
    if let trip { guide(position, driver: driver, trip: trip) }
    adviseSampling(driver, trip: trip)
  }

  /// The trip's way and its other figures, until it is where it was to go.
  @inline(__always)
  private mutating func measure(_ position: Position, driver: Int, trip: Int) {
    let status = trips[trip].status
    guard status < .arrivedDestination else { return }
    trips[trip].progress.follow(
      position, after: drivers[driver].position, status: status, maximumSpeed: limits.tracking.maximumSpeed,
      rules: timings.trips)
  }

  /// One position, on the trip's, the driver's and the fleet's channel.
  private mutating func publish(_ position: Position, driver: Int, trip: Int?, received: Int64) {
    counters.positionsPublished += 1
    drivers[driver].positionAge = drivers[driver].clock.age(of: position.timestamp, at: now.timestamp)
    let tripChannel = trip.flatMap { trips[$0].channel }
    let driverChannel = drivers[driver].channel
    if tripChannel == nil, driverChannel == nil, fleetChannel == nil { return }
    let location = location(of: driver, position, trip: trip)
    if let tripChannel { publishState(location, driver: driver, channel: tripChannel, received: received) }
    if let driverChannel { publishState(location, driver: driver, channel: driverChannel, received: received) }
    if let fleetChannel { publishState(location, driver: driver, channel: fleetChannel, received: received) }
  }

  /// A driver's position as it is written to clients; `after` is set for each channel. Inlined, as `lastTrip`.
  @inline(__always)
  func location(of driver: Int, _ position: Position, trip: Int?) -> DriverLocation {
    DriverLocation(
      driverID: drivers[driver].id, tripID: trip.map { trips[$0].id }, coordinate: position.coordinate,
      heading: position.heading, speed: position.speed, accuracy: position.accuracy,
      confidence: position.confidence, timestamp: position.timestamp, age: drivers[driver].positionAge, after: 0)
  }

  // MARK: Batches

  /// A backlog: each fix in its place in time; the answer says what became of each.
  mutating func handle(_ input: BatchInput) {
    counters.fixesReceived += UInt64(input.batch.fixes.count)
    guard let driver = driver(of: input) else {
      counters.fixesOrphaned += UInt64(input.batch.fixes.count)
      return
    }
    // Over HTTP there is no envelope, so nothing is learnt of the phone's clock.
    if input.driverID == nil { drivers[driver].clock.observe(sent: input.sent, received: input.received.timestamp) }
    let trip: Int?
    switch tripForFixes(of: driver, input.batch.tripID, isGranted: input.tripIsGranted, at: input.sent) {
    case .none: trip = nil
    case .use(let found): trip = found
    case .refused(let code, let message, let retryAfter):
      counters.fixesForbidden += UInt64(input.batch.fixes.count)
      return refuse(input.session, input.messageID, code, message, retryAfter: retryAfter)
    }
    rememberFixTimes(of: driver)
    var summary = Ack.Batch(accepted: 0, duplicates: 0, rejected: [])
    for place in placesByTime(input.batch.fixes) {
      switch input.batch.fixes[place] {
      case .failure(let code):
        counters.fixesUnreadable += 1
        summary.rejected.append(.init(index: place, code: code))
      case .success(let fix):
        switch track(fix, driver: driver, trip: trip, received: input.received.uptime) {
        case .accepted, .history, .held: summary.accepted += 1
        case .duplicate: summary.duplicates += 1
        case .refused(let refusal): summary.rejected.append(.init(index: place, code: refusal.code))
        }
      }
    }
    summary.rejected.sort { $0.index < $1.index }
    reply(.ack(Ack(replyTo: input.messageID, batch: summary)), to: input.session)
  }

  /// "Oldest first" is what the protocol asks for; where a phone does otherwise, its newest fix must not make history of
  /// those behind it.
  private func placesByTime(_ fixes: [Result<Fix, ErrorCode>]) -> [Int] {
    var places: [(time: Int64, place: Int)] = []
    places.reserveCapacity(fixes.count)
    var newest = Int64.min
    var isInOrder = true
    for (place, fix) in fixes.enumerated() {
      let time = if case .success(let fix) = fix { fix.timestamp.milliseconds } else { newest }
      if time < newest { isInOrder = false }
      newest = max(newest, time)
      places.append((time, place))
    }
    if !isInOrder { places.sort { $0 < $1 } }
    return places.map(\.place)
  }

  private mutating func driver(of input: BatchInput) -> Int? {
    guard let id = input.driverID else { return driver(of: input.session) }
    guard let driver = findOrInsertDriver(id) else {
      refuse(input.session, input.messageID, .rateLimited, "this hub's driver table is full", retryAfter: 60)
      return nil
    }
    return driver
  }

  /// From its first batch on, a driver's fix times are remembered, newest first, up to the limits.
  private mutating func rememberFixTimes(of driver: Int) {
    guard drivers[driver].fixTimes == nil else { return }
    guard driversWithFixTimes < limits.driversWithFixTimes else {
      counters.tableLimitHits += 1
      return
    }
    driversWithFixTimes += 1
    drivers[driver].fixTimes = FixTimes(capacity: limits.fixTimesPerDriver)
    if let newest = drivers[driver].position?.timestamp { _ = drivers[driver].fixTimes?.insert(newest) }
  }
}

extension Tracker.Refusal {
  /// What the sender is told.
  var explanation: String {
    switch self {
    case .inaccurate: "the fix's accuracy radius is too large to be of use"
    case .nullIsland: "the fix is at 0, 0, which is what broken software sends for no position"
    case .gated: "the fix is too far from where the track says the driver must be"
    case .tooFast: "the fix implies a speed that no vehicle has"
    }
  }
}
