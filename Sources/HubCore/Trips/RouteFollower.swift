// A driver's progress along its trip's route, fix by fix, and whether it has left it.
//
// Progress only grows: a position is matched within a stretch that begins a little behind the last match and reaches as
// far ahead as the driver can have gone; matches near the distance driven are preferred. So a route that crosses
// itself, or returns along the same road, is followed in order. A driver near the route but not in that stretch (it
// took a short cut, turned back, or the hub was restarted) is moved there once two fixes agree that it follows the line
// from there.
//
// Leaving and returning are judged by the whole line: three fixes in a row farther than 25 m from all of it, and two
// within 15 m. A fix with a larger error decides nothing, and neither does one of a stationary driver.
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
  /// An alternative match.
  private var candidate: (match: RoutePath.Match, driven: Double)?

  /// At the start of the route, or off it where that was published.
  init(_ path: RoutePath, isOff: Bool, drivenMeters: Double) {
    self.path = path
    self.isOff = isOff
    driven = drivenMeters
  }

  /// Whether the driver is on the route at a known match. One or two fixes off it change nothing.
  var isPlaced: Bool { !isOff && misplaced <= 2 }

  /// Takes the next position; `drivenMeters` is the trip's odometer.
  mutating func follow(_ position: Position, drivenMeters: Double, rules: TripRules) {
    let ground = GroundScale(latitude: position.coordinate.latitude)
    let off = match(position.coordinate, drivenMeters: drivenMeters, ground, rules)
    guard position.accuracy <= rules.offRouteMeters else { return }
    if isOff {
      returns = off <= rules.onRouteMeters ? returns + 1 : 0
      if returns >= rules.onRouteFixes { (isOff, strays) = (false, 0) }
    } else {
      let isMoving = position.speed.map { $0 >= Odometer.movingSpeed } ?? true
      if off <= rules.offRouteMeters { strays = 0 } else if isMoving { strays += 1 }
      if strays >= rules.offRouteFixes { (isOff, returns) = (true, 0) }
    }
  }

  /// Matches the driver to the line and gives its distance from it; infinite where it is out of reach.
  private mutating func match(
    _ place: Coordinate, drivenMeters: Double, _ ground: GroundScale, _ rules: TripRules
  ) -> Double {
    let way = max(0, drivenMeters - driven)
    let back = max(0, along - RouteFollower.backMeters)
    if !isOff,
      let found = path.match(
        place, from: path.edge(before: back, from: edge),
        along: back...(along + 2 * way + RouteFollower.aheadMeters), expected: along + way,
        weight: RouteFollower.expectedWeight, ground),
      found.off <= rules.offRouteMeters
    {
      (along, edge, driven) = (max(along, found.along), max(edge, found.edge), drivenMeters)
      (misplaced, candidate) = (0, nil)
      return found.off
    }
    misplaced += 1
    let expected = candidate.map { $0.match.along + drivenMeters - $0.driven } ?? along + way
    guard
      let found = path.match(place, within: rules.offRouteMeters, expected: expected, from: edge, ground)
    else {
      candidate = nil
      return .infinity
    }
    confirm(found, drivenMeters: drivenMeters)
    return found.off
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
    (along, edge, driven) = (found.along, found.edge, drivenMeters)
    (misplaced, self.candidate) = (0, nil)
  }
}

extension RouteFollower: ETAEstimator {
  /// Along the route, and from its end to the target.
  func estimate(_ leg: Leg) -> Estimate {
    let meters = max(0, path.lengthMeters - along) + leg.target.distance(to: UnitVector(path.end))
    return Estimate(meters: meters, leg, .route)
  }
}
