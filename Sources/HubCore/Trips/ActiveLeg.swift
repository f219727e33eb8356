// A trip's state while its driver is on the way to a target: in a table of its own, since most known trips have ended.
// It is not stored; the next fixes restore it.
import HubGeo
import HubMessages

struct ActiveLeg {
  let target: TripTarget
  let place: UnitVector
  /// The route to the dropoff, where the trip has one that the hub can follow.
  var route: RouteFollower?
  /// Where the leg began, and the odometer there.
  let start: Coordinate
  let startMeters: Double
  /// The time of the fix with which the driver reached the target, while it stays.
  var cameAt: Timestamp?

  /// Vertices that it counts for, of `HubLimits.routePoints`.
  var routePoints: Int { route?.path.vertexCount ?? 0 }

  /// Whether the driver has been at the target for the dwell time. Takes the time of a fix at `meters` distance; where
  /// that is before the arrival, the clock was set back and the dwell begins again.
  mutating func dwells(_ meters: Double, at time: Timestamp, rules: TripRules) -> Bool {
    guard let came = cameAt else {
      if meters <= rules.arrivedMeters { cameAt = time }
      return false
    }
    if meters > rules.leftMeters {
      cameAt = nil
      return false
    }
    if time < came { cameAt = time }
    return time.seconds(since: came) >= rules.dwellSeconds
  }
}

extension TripStatus {
  /// The driver's target in this status.
  var target: TripTarget? {
    switch self {
    case .requested, .accepted, .driverEnRoute: .pickup
    case .arrivedPickup, .tripStarted: .dropoff
    case .arrivedDestination, .completed, .cancelled: nil
    }
  }
}

extension TripTarget {
  /// The notices that the driver is near, and that it is there.
  var near: TripNotices {
    switch self {
    case .pickup: .pickupNear
    case .dropoff: .dropoffNear
    }
  }

  var reached: TripNotices {
    switch self {
    case .pickup: .pickupReached
    case .dropoff: .dropoffReached
    }
  }
}
