// What the hub keeps of a trip while its driver is on the way to a place: in a table of its own, for most of the trips
// that a hub knows are over. Nothing of it is stored: it follows from the next fixes again.
import HubGeo
import HubMessages

struct ActiveLeg {
  let target: TripTarget
  let place: UnitVector
  /// The way to the dropoff, where the trip has one that the hub can follow.
  var route: RouteFollower?
  /// Where the leg began, and what the odometer showed there.
  let start: Coordinate
  let startMeters: Double
  /// The time of the fix with which the driver came to the target, while it stays.
  var cameAt: Timestamp?

  /// Vertices that it counts for, of `HubLimits.routePoints`.
  var routePoints: Int { route?.path.vertexCount ?? 0 }

  /// Whether the driver has been at the target for the dwell. Takes the time of a fix that is `meters` away; where that
  /// is before the driver came, its clock was set back, and the dwell begins anew.
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
  /// Where the driver is going to in this state.
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
