// The legs to the pickup and the dropoff: with each position of a trip the ETA, whether it is to be published, and
// whether the driver is near, there, or off the route. protocol/trips.md describes the notices.
//
// This is computed with a fix or a move of the trip only; between fixes an ETA's arrival time is constant.
import HubGeo
import HubMessages

/// The result of a position on a leg.
struct LegReport {
  let target: TripTarget
  let estimate: Estimate
  /// Seconds until the target.
  let seconds: Double
  /// The ETA where it is to be published.
  fileprivate(set) var eta: PublishedETA?
  /// Notices to publish, until the trip's progress says that they were.
  fileprivate(set) var due: TripNotices = []
  /// The driver is back on the route; the trip's progress says so already.
  fileprivate(set) var isBackOnRoute = false

  /// The notices to publish, in order; without their numbers.
  func notices(driver: Identifier) -> [Notification] {
    [LegNotice.offRoute(target), .near(target), .reached(target)].filter { due.contains($0.flag) }.map {
      $0.notification(seconds: seconds, meters: estimate.meters, driver: driver)
    }
  }
}

/// The current legs, and the circuity that the hub has learnt.
struct TripLegs: ~Copyable {
  private let rules: TripRules
  private let limitOfRoutePoints: Int
  private var slab = Slab<ActiveLeg>()
  /// Vertices of the routes that are followed.
  private(set) var routePoints = 0
  private(set) var circuity = CircuityTable()
  /// While ETAs are held: that of the message's newest fix so far, if it is worth publishing.
  private var held: PublishedETA?
  private var isHolding = false

  init(limits: HubLimits, rules: TripRules) {
    self.rules = rules
    limitOfRoutePoints = limits.routePoints
  }

  var count: Int { slab.count }

  /// Takes a position of the trip's driver, published `age` seconds after it was measured. Nil where the driver is not
  /// on its way, or the trip has no target.
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
    // The driver has moved on since the fix, as far as that may be extrapolated.
    let isMoving = position.speed.map { $0 >= Odometer.movingSpeed } ?? false
    let gone = isMoving ? min(age, Position.longestPrediction) : 0
    var report = LegReport(target: slab[leg].target, estimate: estimate, seconds: max(0, estimate.seconds - gone))
    noteETA(&report, &trip, at: now)
    watchRoute(&report, &trip, leg)
    watchTarget(&report, position, rest, trip, leg)
    return report
  }

  /// Along the route where the driver is on one, else by the cell's circuity. A road router would be called here.
  private func estimate(_ rest: Leg, leg: Int) -> Estimate {
    guard let route = slab[leg].route, route.isPlaced else { return circuity.estimate(rest) }
    return route.estimate(rest)
  }

  // MARK: Legs

  /// The leg to the present target; a new one where that has changed.
  @inline(__always)
  private mutating func leg(
    for position: Position, _ trip: inout Trip, counting counters: inout HubCounters
  ) -> Int? {
    guard let target = trip.status.target else { return nil }
    let known = Int(trip.leg)
    if known >= 0, slab[known].target == target { return known }
    // Without the target's place there is no leg to begin, which this checks cheaply with each fix.
    if known < 0, !trip.hasPlace(of: target) { return nil }
    return begin(to: target, position, &trip, counting: &counters)
  }

  @inline(never)
  private mutating func begin(
    to target: TripTarget, _ position: Position, _ trip: inout Trip, counting counters: inout HubCounters
  ) -> Int? {
    end(&trip)
    let route = target == .dropoff ? routeToFollow(trip, counting: &counters) : nil
    // A trip without a dropoff goes to its route's end, also where the route is not followed.
    let end = target == .pickup ? trip.pickup : trip.dropoff ?? route?.path.end ?? trip.route?.points.last
    guard let place = end else { return nil }
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
    let path = RoutePath(route)
    // A polyline that was encoded with another precision may still decode, and then leads elsewhere.
    if let end = trip.dropoff, end.distance(to: path.end) > rules.routeEndMeters {
      counters.routesNotFollowed += 1
      return nil
    }
    let meters = trip.progress.odometer.meters
    return RouteFollower(
      path, isOff: trip.progress.notices.contains(.offRoute), drivenMeters: meters,
      tripMeters: trip.status == .tripStarted ? meters - (trip.progress.approachMeters ?? meters) : 0)
  }

  /// Ends the trip's leg, if it has one.
  mutating func end(_ trip: inout Trip) {
    let leg = Int(trip.leg)
    guard leg >= 0 else { return }
    trip.leg = -1
    routePoints -= slab[leg].routePoints
    let empty = ActiveLeg(
      target: .pickup, place: slab[leg].place, route: nil, start: slab[leg].start, startMeters: 0)
    slab.remove(leg, leaving: empty)
  }

  /// Learns circuity from a leg whose driver reports its arrival. Called before the move.
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

  /// Begins to hold ETAs: no report has one until `releaseETA`.
  mutating func holdETA() { (isHolding, held) = (true, nil) }

  /// The ETA to publish of those that were held, all of this trip.
  mutating func releaseETA(of trip: inout Trip) -> PublishedETA? {
    defer { (isHolding, held) = (false, nil) }
    if let held { trip.lastPublishedETA = held }
    return held
  }

  private mutating func noteETA(_ report: inout LegReport, _ trip: inout Trip, at now: Moment) {
    held = nil
    let arrival = Timestamp(milliseconds: now.timestamp.milliseconds + Int64((report.seconds * 1000).rounded()))
    if let last = trip.lastPublishedETA,
      !last.isOutdated(by: arrival, target: report.target, basis: report.estimate.basis, at: now, rules: rules)
    {
      return
    }
    let eta = PublishedETA(
      target: report.target, basis: report.estimate.basis, meters: report.estimate.meters, arrival: arrival,
      publishedAt: now.uptime)
    if isHolding {
      held = eta
    } else {
      (report.eta, trip.lastPublishedETA) = (eta, eta)
    }
  }

  /// Leaving the route makes a notice each time; returning is only noted.
  private func watchRoute(_ report: inout LegReport, _ trip: inout Trip, _ leg: Int) {
    guard let isOff = slab[leg].route?.isOff else { return }
    let isNotified = trip.progress.notices.contains(.offRoute)
    if isOff, !isNotified { report.due.insert(.offRoute) }
    report.isBackOnRoute = !isOff && isNotified
    if report.isBackOnRoute { trip.progress.notices.remove(.offRoute) }
  }

  /// Being near and arriving make a notice once for each target.
  private mutating func watchTarget(
    _ report: inout LegReport, _ position: Position, _ rest: Leg, _ trip: Trip, _ leg: Int
  ) {
    // Only a driver on its way arrives: not before it accepted, and not at a near dropoff while it waits.
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
