// A driver's progress along its trip's route, fix by fix, and whether it has left it.
//
// Progress only grows: a position is matched within a stretch that begins a little behind the last match and reaches as
// far ahead as the driver can have gone; matches near the distance driven are preferred. So a route that crosses
// itself, or returns along the same road, is followed in order. A driver near the route but not in that stretch (it
// took a short cut, turned back) is moved there once two fixes agree that it follows the line from there. Where the
// route goes out and back on one road, the driver's course decides between the two.
//
// A follower that begins in the middle of a trip (the hub was restarted, or the route was changed) looks for the driver
// where the trip's distance has it, and at the line's beginning.
//
// Leaving and returning are judged by the whole line: three fixes in a row farther than 25 m from all of it, and two
// within 15 m. A fix with an accuracy radius over 25 m decides nothing, and a stationary driver neither leaves
// nor returns.
import HubGeo
import HubMessages

struct RouteFollower {
  /// Metres that a match may be behind the last one: positions wander.
  private static let backMeters = 50.0
  /// Metres ahead that are searched beyond twice the driven distance.
  private static let aheadMeters = 100.0
  /// A metre away from the expected match counts as this many metres away from the line.
  private static let expectedWeight = 0.1
  /// A new match is accepted when the driver has gone this far along the line from it.
  private static let confirmMeters = 20.0
  /// The odometer may be wrong by this part of what it shows, or by `aheadMeters`.
  private static let odometerFraction = 0.1
  /// Metres without a match, after which inaccurate fixes off the line count, too.
  private static let lostMeters = 300.0

  let path: RoutePath
  /// Metres of the route that are behind the driver.
  private(set) var along = 0.0
  private(set) var isOff: Bool
  private var edge = 0
  /// The odometer at the last match.
  private var driven: Double
  /// Consecutive fixes: off the line, back on it, and near it but not at the expected match.
  private var strays = 0
  private var returns = 0
  private var misplaced = 0
  /// An alternative match, which a further fix must confirm, and the odometer there.
  private var candidate: (match: RoutePath.Match, driven: Double)?
  /// Metres along the line where the driver should be by the trip's distance; nil once it was found on the line.
  private var sought: Double?

  /// Begins at the start of the route, or off it where that was published last. `tripMeters`: the metres driven since
  /// the trip started.
  init(_ path: RoutePath, isOff: Bool, drivenMeters: Double, tripMeters: Double = 0) {
    self.path = path
    self.isOff = isOff
    driven = drivenMeters
    sought = tripMeters > RouteFollower.aheadMeters ? tripMeters : nil
  }

  /// Whether the driver is on the route at a known match. One or two fixes off it change nothing.
  var isPlaced: Bool { !isOff && sought == nil && misplaced <= 2 }

  /// Takes the next position; `drivenMeters` is the trip's odometer.
  mutating func follow(_ position: Position, drivenMeters: Double, rules: TripRules) {
    let ground = GroundScale(latitude: position.coordinate.latitude)
    let isMoving = position.speed.map { $0 >= Odometer.movingSpeed } ?? true
    let isExact = position.accuracy <= rules.offRouteMeters
    var off = advance(position.coordinate, drivenMeters: drivenMeters, ground, rules)
    if off == nil, isMoving, isExact || drivenMeters - driven > RouteFollower.lostMeters { misplaced += 1 }
    guard isExact else { return }
    if off == nil { off = search(position, drivenMeters: drivenMeters, ground, rules) }
    if isOff {
      if isMoving { returns = off.map { $0 <= rules.onRouteMeters } ?? false ? returns + 1 : 0 }
      if returns >= rules.onRouteFixes { (isOff, strays) = (false, 0) }
    } else {
      if off != nil { strays = 0 } else if isMoving { strays += 1 }
      if strays >= rules.offRouteFixes { (isOff, returns) = (true, 0) }
    }
  }

  /// Matches the driver to the stretch where it is expected, and gives its distance from the line; nil where it is not
  /// there.
  private mutating func advance(
    _ place: Coordinate, drivenMeters: Double, _ ground: GroundScale, _ rules: TripRules
  ) -> Double? {
    guard !isOff, sought == nil else { return nil }
    let way = max(0, drivenMeters - driven)
    let back = max(0, along - RouteFollower.backMeters)
    guard
      let found = path.match(
        place, from: path.edge(before: back, from: edge),
        along: back...(along + 2 * way + RouteFollower.aheadMeters), expected: along + way,
        weight: RouteFollower.expectedWeight, ground),
      found.off <= rules.offRouteMeters
    else { return nil }
    take(found, drivenMeters: drivenMeters)
    return found.off
  }

  /// Moves the driver to a match, but never back along the line.
  private mutating func take(_ found: RoutePath.Match, drivenMeters: Double) {
    (along, edge, driven) = (max(along, found.along), max(edge, found.edge), drivenMeters)
    (misplaced, candidate, sought) = (0, nil, nil)
  }

  /// Looks for the driver on the whole line, and gives its distance from that; nil where it is out of reach.
  private mutating func search(
    _ position: Position, drivenMeters: Double, _ ground: GroundScale, _ rules: TripRules
  ) -> Double? {
    let reach = rules.offRouteMeters
    let isMoving = position.speed.map { $0 >= Odometer.movingSpeed } ?? false
    let course =
      isMoving ? position.heading.map { SIMD2(TrackMath.sine(degrees: $0), TrackMath.cosine(degrees: $0)) } : nil
    func nearest(_ expected: Double, weight: Double) -> RoutePath.Nearest? {
      path.match(
        position.coordinate, course: course, within: reach, expected: expected, weight: weight, from: edge, ground)
    }
    if let sought {
      for expected in [sought + max(0, drivenMeters - driven), 0] where !isOff {
        guard let (found, off) = nearest(expected, weight: RouteFollower.expectedWeight),
          abs(found.along - expected)
            <= max(RouteFollower.aheadMeters, expected * RouteFollower.odometerFraction)
        else { continue }
        take(found, drivenMeters: drivenMeters)
        return off
      }
    }
    let expected =
      candidate.map { $0.match.along + drivenMeters - $0.driven } ?? (sought ?? along) + max(0, drivenMeters - driven)
    guard let (found, off) = nearest(expected, weight: 1e-3) else {
      candidate = nil
      return nil
    }
    confirm(found, drivenMeters: drivenMeters)
    return off
  }

  /// Considers an alternative match, and accepts it if the driver moves along the line from it.
  private mutating func confirm(_ found: RoutePath.Match, drivenMeters: Double) {
    guard let candidate else {
      self.candidate = (found, drivenMeters)
      return
    }
    let way = drivenMeters - candidate.driven
    let progress = found.along - candidate.match.along
    guard progress >= way / 2 - 5, progress <= 1.5 * way + RouteFollower.confirmMeters else {
      self.candidate = (found, drivenMeters)
      return
    }
    guard way >= RouteFollower.confirmMeters else { return }
    (along, edge) = (found.along, found.edge)
    take(found, drivenMeters: drivenMeters)
  }
}

extension RouteFollower: ETAEstimator {
  /// Along the route, and from its end to the target.
  func estimate(_ leg: Leg) -> Estimate {
    let meters = max(0, path.lengthMeters - along) + leg.target.distance(to: UnitVector(path.end))
    return Estimate(meters: meters, leg, .route)
  }
}
