// On the way to the pickup and the dropoff: with each position of a trip, how long it still takes, whether that is
// news, and whether the driver is near, there, or off the route. protocol/trips.md says what people are told.
//
// It happens with a fix, or with a move of the trip, and never by itself: between fixes an ETA's time of arrival
// stands.
import HubGeo
import HubMessages

/// What a position means on a leg.
struct LegReport {
  let target: TripTarget
  let estimate: Estimate
  /// Until the driver is at the target.
  let seconds: Double
  /// Where it is news.
  fileprivate(set) var eta: PublishedETA?
  /// Notices that people have not got yet. They have got them when the trip's progress says so.
  fileprivate(set) var due: TripNotices = []
  /// The driver is on the route again, which the trip's progress says already.
  fileprivate(set) var isBackOnRoute = false

  /// The notices that are due, in the order in which they are published; without their numbers.
  func notices(driver: Identifier) -> [Notification] {
    [LegNotice.offRoute(target), .near(target), .reached(target)].filter { due.contains($0.flag) }.map {
      $0.notification(seconds: seconds, meters: estimate.meters, driver: driver)
    }
  }
}

/// The legs that drivers are on, and what the hub has learnt of ways.
struct TripLegs: ~Copyable {
  private let rules: TripRules
  private let limitOfRoutePoints: Int
  private var slab = Slab<ActiveLeg>()
  /// Vertices of the routes that are followed.
  private(set) var routePoints = 0
  private(set) var circuity = CircuityTable()

  init(limits: HubLimits, rules: TripRules) {
    self.rules = rules
    limitOfRoutePoints = limits.routePoints
  }

  var count: Int { slab.count }

  /// A position of the trip's driver was published `age` seconds after it was measured. Nil where the driver is not on
  /// its way, or the trip does not say where to.
  @inline(__always)
  mutating func advance(
    _ position: Position, age: Double, _ trip: inout Trip, at now: Moment, counting counters: inout HubCounters
  ) -> LegReport? {
    guard let leg = leg(for: position, &trip, counting: &counters) else { return nil }
    return advance(position, age: age, &trip, on: leg, at: now)
  }

  @inline(never)
  private mutating func advance(
    _ position: Position, age: Double, _ trip: inout Trip, on leg: Int, at now: Moment
  ) -> LegReport {
    // While the driver waits for its passenger, it is at the beginning of the route.
    if trip.status == .tripStarted {
      slab[leg].route?.follow(position, drivenMeters: trip.progress.odometer.meters, rules: rules)
    }
    let rest = Leg(
      place: position.coordinate, target: slab[leg].place,
      crowMeters: slab[leg].place.distance(to: UnitVector(position.coordinate)),
      pace: trip.progress.pace.expected(rules))
    let estimate = estimate(rest, leg: leg)
    // The driver has gone on since the fix, for as long as that is to be believed.
    let isMoving = position.speed.map { $0 >= Odometer.movingSpeed } ?? false
    let gone = isMoving ? min(age, Position.longestPrediction) : 0
    var report = LegReport(target: slab[leg].target, estimate: estimate, seconds: max(0, estimate.seconds - gone))
    noteETA(&report, &trip, at: now)
    watchRoute(&report, &trip, leg)
    watchTarget(&report, position, rest, trip, leg)
    return report
  }

  /// Along the route where the driver is on one, else by the area's experience. A road router would be asked here.
  private func estimate(_ rest: Leg, leg: Int) -> Estimate {
    guard let route = slab[leg].route, route.isPlaced else { return circuity.estimate(rest) }
    return route.estimate(rest)
  }

  // MARK: Legs

  /// The leg to where the driver is going now; a new one where the target has changed.
  @inline(__always)
  private mutating func leg(
    for position: Position, _ trip: inout Trip, counting counters: inout HubCounters
  ) -> Int? {
    guard let target = trip.status.target else { return nil }
    let known = Int(trip.leg)
    if known >= 0, slab[known].target == target { return known }
    // Nothing to begin, with each fix, on a trip that says nothing of where it goes.
    if known < 0, !trip.hasPlace(of: target) { return nil }
    return begin(to: target, position, &trip, counting: &counters)
  }

  @inline(never)
  private mutating func begin(
    to target: TripTarget, _ position: Position, _ trip: inout Trip, counting counters: inout HubCounters
  ) -> Int? {
    end(&trip)
    let route = target == .dropoff ? routeToFollow(trip, counting: &counters) : nil
    guard let place = target == .pickup ? trip.pickup : trip.dropoff ?? route?.path.end else { return nil }
    let leg = slab.insert(
      ActiveLeg(
        target: target, place: UnitVector(place), route: route, start: position.coordinate,
        startMeters: trip.progress.odometer.meters))
    trip.leg = Int32(leg)
    routePoints += slab[leg].routePoints
    return leg
  }

  private func routeToFollow(_ trip: Trip, counting counters: inout HubCounters) -> RouteFollower? {
    guard let route = trip.route else { return nil }
    guard routePoints + Route.maximumPoints <= limitOfRoutePoints else {
      counters.routesNotFollowed += 1
      counters.count(full: .routePoints)
      return nil
    }
    return RouteFollower(
      RoutePath(route), isOff: trip.progress.notices.contains(.offRoute), drivenMeters: trip.progress.odometer.meters)
  }

  /// The leg is over, if the trip has one.
  mutating func end(_ trip: inout Trip) {
    let leg = Int(trip.leg)
    guard leg >= 0 else { return }
    trip.leg = -1
    routePoints -= slab[leg].routePoints
    let empty = ActiveLeg(
      target: .pickup, place: slab[leg].place, route: nil, start: slab[leg].start, startMeters: 0)
    slab.remove(leg, leaving: empty)
  }

  /// The trip's driver says that it has reached the target of its leg: what that teaches of the area. Before the move.
  mutating func learn(_ trip: Trip, to status: TripStatus) {
    guard status == .arrivedPickup || status == .arrivedDestination, trip.leg >= 0 else { return }
    let leg = Int(trip.leg)
    guard slab[leg].target == trip.status.target else { return }
    let start = slab[leg].start
    circuity.learn(
      from: start, crowMeters: slab[leg].place.distance(to: UnitVector(start)),
      drivenMeters: trip.progress.odometer.meters - slab[leg].startMeters)
  }

  // MARK: What is news

  private func noteETA(_ report: inout LegReport, _ trip: inout Trip, at now: Moment) {
    let arrival = Timestamp(milliseconds: now.timestamp.milliseconds + Int64((report.seconds * 1000).rounded()))
    if let last = trip.lastPublishedETA,
      !last.isOutdated(by: arrival, target: report.target, basis: report.estimate.basis, at: now, rules: rules)
    {
      return
    }
    report.eta = PublishedETA(
      target: report.target, basis: report.estimate.basis, meters: report.estimate.meters, arrival: arrival,
      publishedAt: now.uptime)
    trip.lastPublishedETA = report.eta
  }

  /// That the driver has left the route is news once for each time; that it is back is only noted.
  private func watchRoute(_ report: inout LegReport, _ trip: inout Trip, _ leg: Int) {
    guard let isOff = slab[leg].route?.isOff else { return }
    let isNotified = trip.progress.notices.contains(.offRoute)
    if isOff, !isNotified { report.due.insert(.offRoute) }
    report.isBackOnRoute = !isOff && isNotified
    if report.isBackOnRoute { trip.progress.notices.remove(.offRoute) }
  }

  /// That the driver is near or there is news once for each target.
  private mutating func watchTarget(
    _ report: inout LegReport, _ position: Position, _ rest: Leg, _ trip: Trip, _ leg: Int
  ) {
    // Only who is on the way arrives: not before it accepted, and not at a dropoff round the corner while it waits.
    guard trip.status == .accepted || trip.status == .driverEnRoute || trip.status == .tripStarted else { return }
    let (target, notices) = (report.target, trip.progress.notices)
    if !notices.contains(target.near),
      rest.crowMeters <= rules.arrivingMeters || report.seconds <= rules.arrivingSeconds
    {
      report.due.insert(target.near)
    }
    if !notices.contains(target.reached), slab[leg].dwells(rest.crowMeters, at: position.timestamp, rules: rules) {
      report.due.insert(target.reached)
    }
  }
}
