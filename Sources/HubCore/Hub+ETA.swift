// On the way to the pickup and the dropoff: with each position of a trip, how long it still takes, whether that is
// news, and whether the driver is near, there, or off the route. protocol/trips.md says what people are told.
//
// It happens with a fix, or with a move of the trip, and never by itself: between fixes an ETA's time of arrival
// stands.
import HubGeo
import HubMessages

extension Hub {
  /// A position of the trip's driver was published.
  mutating func guide(_ position: Position, driver: Int, trip: Int) {
    guard let guide = guideForLeg(position, trip: trip) else { return }
    followRoute(position, trip: trip, guide: guide)
    let leg = Leg(
      place: position.coordinate, target: guides[guide].place,
      crowMeters: guides[guide].place.distance(to: UnitVector(position.coordinate)),
      pace: trips[trip].progress.pace.expected(timings.trips))
    let estimate = estimate(leg, guide: guide)
    // The driver has gone on since the fix, for as long as that is to be believed.
    let gone = min(drivers[driver].positionAge, Position.longestPrediction)
    let seconds = max(0, estimate.seconds - (isMoving(position) ? gone : 0))
    tellETA(estimate, seconds: seconds, driver: driver, trip: trip, guide: guide)
    watchRoute(estimate, seconds, driver: driver, trip: trip, guide: guide)
    watchTarget(position, leg, estimate, seconds, driver: driver, trip: trip, guide: guide)
  }

  /// The trip has moved: what its driver's newest position means now.
  mutating func guideAfterMove(_ trip: Int) {
    guard trips[trip].status.target != nil else { return releaseGuide(trip) }
    guard let id = trips[trip].driverID, let driver = findDriver(id), tripOfPosition(of: driver) == trip,
      let position = drivers[driver].position
    else { return }
    drivers[driver].positionAge = drivers[driver].clock.age(of: position.timestamp, at: now.timestamp)
    guide(position, driver: driver, trip: trip)
  }

  @inline(__always)
  private func isMoving(_ position: Position) -> Bool { position.speed.map { $0 >= Odometer.movingSpeed } ?? false }

  /// Along the route where the driver is on one, else by the area's experience. A road router would be asked here.
  private mutating func estimate(_ leg: Leg, guide: Int) -> Estimate {
    guard let route = guides[guide].route, route.isPlaced else { return detours.estimate(leg) }
    return route.estimate(leg)
  }

  // MARK: Legs

  /// The guide for where the driver is going now; a new one where the target has changed, nil where there is none.
  @inline(__always)
  private mutating func guideForLeg(_ position: Position, trip: Int) -> Int? {
    guard let target = trips[trip].status.target else { return nil }
    let known = Int(trips[trip].guide)
    if known >= 0, guides[known].target == target { return known }
    // Nothing to begin, with each fix, on a trip that says nothing of where it goes.
    if known < 0, !trips[trip].hasPlace(of: target) { return nil }
    return beginLeg(to: target, position, trip: trip)
  }

  private mutating func beginLeg(to target: TripTarget, _ position: Position, trip: Int) -> Int? {
    releaseGuide(trip)
    let place: Coordinate?
    var route: RouteFollower?
    switch target {
    case .pickup: place = trips[trip].pickup
    case .dropoff:
      route = routeToFollow(trip)
      place = trips[trip].dropoff ?? route?.path.end
    }
    guard let place else { return nil }
    let guide = guides.insert(
      TripGuide(
        target: target, place: UnitVector(place), route: route, start: position.coordinate,
        startMeters: trips[trip].progress.odometer.meters))
    trips[trip].guide = Int32(guide)
    routePoints += guides[guide].routePoints
    return guide
  }

  private mutating func routeToFollow(_ trip: Int) -> RouteFollower? {
    guard let route = trips[trip].route else { return nil }
    guard routePoints + Route.maximumPoints <= limits.routePoints else {
      counters.routesNotFollowed += 1
      counters.count(full: .routePoints)
      return nil
    }
    return RouteFollower(
      RoutePath(route), isOff: trips[trip].progress.notices.contains(.offRoute),
      drivenMeters: trips[trip].progress.odometer.meters)
  }

  /// The leg is over.
  mutating func releaseGuide(_ trip: Int) {
    let guide = Int(trips[trip].guide)
    guard guide >= 0 else { return }
    trips[trip].guide = -1
    routePoints -= guides[guide].routePoints
    let empty = TripGuide(
      target: .pickup, place: guides[guide].place, route: nil, start: guides[guide].start, startMeters: 0)
    guides.remove(guide, leaving: empty)
  }

  /// The trip's driver says that it has reached the target of its leg: what that teaches of the area. Before the move.
  mutating func learnDetour(_ trip: Int, to status: TripStatus) {
    guard status == .arrivedPickup || status == .arrivedDestination, trips[trip].guide >= 0 else { return }
    let guide = Int(trips[trip].guide)
    guard guides[guide].target == trips[trip].status.target else { return }
    let start = guides[guide].start
    detours.learn(
      from: start, crowMeters: guides[guide].place.distance(to: UnitVector(start)),
      drivenMeters: trips[trip].progress.odometer.meters - guides[guide].startMeters)
  }

  // MARK: Telling

  /// Publishes an ETA where it is news.
  private mutating func tellETA(_ estimate: Estimate, seconds: Double, driver: Int, trip: Int, guide: Int) {
    let target = guides[guide].target
    let arrival = arrival(in: seconds)
    if let told = trips[trip].told,
      !told.isOutdated(by: arrival, target: target, basis: estimate.basis, at: now, rules: timings.trips)
    {
      return
    }
    let told = ToldETA(
      target: target, basis: estimate.basis, meters: estimate.meters, arrival: arrival, toldAt: now.uptime)
    trips[trip].told = told
    if storage.isOn, storage.hasRoom { storage.write(.eta(trips[trip].id, told.durable)) }
    counters.etaUpdates += 1
    if let channel = trips[trip].channel { publishState(etaUpdate(told, trip: trip), channel: channel) }
  }

  @inline(__always)
  private func arrival(in seconds: Double) -> Timestamp {
    Timestamp(milliseconds: now.timestamp.milliseconds + Int64((seconds * 1000).rounded()))
  }

  /// What was told, as it is now: the time of arrival stands.
  private func etaUpdate(_ told: ToldETA, trip: Int) -> ETAUpdate {
    let left = max(0, told.arrival.seconds(since: now.timestamp))
    return ETAUpdate(
      tripID: trips[trip].id, target: told.target, eta: TrackMath.rounded(left, to: 1),
      distance: TrackMath.rounded(told.meters, to: 1), arrivalTime: told.arrival, basis: told.basis, after: 0)
  }

  /// The trip's ETA for who begins to follow it: the one that its other followers know.
  func currentETA(ofTrip trip: Int, after: UInt64) -> ETAUpdate? {
    guard let told = trips[trip].told, told.target == trips[trip].status.target else { return nil }
    var update = etaUpdate(told, trip: trip)
    update.after = after
    return update
  }

  // MARK: Near, there, off the route

  /// Where the driver is on the route; while it waits for its passenger, that is the beginning.
  @inline(__always)
  private mutating func followRoute(_ position: Position, trip: Int, guide: Int) {
    guard trips[trip].status == .tripStarted else { return }
    let driven = trips[trip].progress.odometer.meters
    let rules = timings.trips
    guides[guide].route?.follow(position, drivenMeters: driven, rules: rules)
  }

  /// Tells that the driver has left the route, once for each time; that it is back is only noted.
  private mutating func watchRoute(_ estimate: Estimate, _ seconds: Double, driver: Int, trip: Int, guide: Int) {
    guard let isOff = guides[guide].route?.isOff else { return }
    let isTold = trips[trip].progress.notices.contains(.offRoute)
    if isOff, !isTold {
      tell(.offRoute(guides[guide].target), estimate, seconds, driver: driver, trip: trip)
    } else if !isOff, isTold {
      trips[trip].progress.notices.remove(.offRoute)
      recordTrip(trip)
    }
  }

  /// Tells that the driver is near or there, each once for a target.
  private mutating func watchTarget(
    _ position: Position, _ leg: Leg, _ estimate: Estimate, _ seconds: Double, driver: Int, trip: Int, guide: Int
  ) {
    let status = trips[trip].status
    // Only who is on the way arrives: not before it accepted, and not at a dropoff round the corner while it waits.
    guard status == .accepted || status == .driverEnRoute || status == .tripStarted else { return }
    let (target, rules) = (guides[guide].target, timings.trips)
    let notices = trips[trip].progress.notices
    if !notices.contains(target.near), leg.crowMeters <= rules.arrivingMeters || seconds <= rules.arrivingSeconds {
      tell(.near(target), estimate, seconds, driver: driver, trip: trip)
    }
    guard !notices.contains(target.reached) else { return }
    if guides[guide].dwells(leg.crowMeters, at: position.timestamp, rules: rules) {
      tell(.reached(target), estimate, seconds, driver: driver, trip: trip)
    }
  }

  /// An event on the trip's channel; that it was told is stored with it, so that a restart does not tell it again.
  /// While nothing can be stored it waits for a later fix.
  @inline(never)
  private mutating func tell(_ notice: LegNotice, _ estimate: Estimate, _ seconds: Double, driver: Int, trip: Int) {
    guard storage.hasRoom else {
      counters.eventsNotStored += 1
      return
    }
    guard let channel = eventChannel(ofTrip: trip) else { return }
    trips[trip].progress.notices.insert(notice.flag)
    recordTrip(trip)
    let text = notice.text(seconds: seconds)
    let leg = Notification.Leg(
      target: notice.target, distance: TrackMath.rounded(estimate.meters, to: 1), eta: TrackMath.rounded(seconds, to: 1)
    )
    let id = drivers[driver].id
    publishEvent(on: channel) {
      .notification(
        Notification(
          kind: notice.kind, title: text.title, body: text.body, driverID: id, leg: leg, sequence: $0))
    }
  }
}
