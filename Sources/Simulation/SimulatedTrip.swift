// One ride from request to end, as its driver sees it. The demo client makes `trip_status` messages of its moves.
public import HubGeo
public import HubMessages

/// A trip that a simulated driver serves.
public struct SimulatedTrip: Sendable, Equatable {
  /// Counts the driver's trips from 0; with the driver's index it names the trip.
  public let number: Int
  public let pickup: Coordinate
  public let dropoff: Coordinate
  /// The way from the pickup to the dropoff; empty where the driver finds its way as it goes.
  public let route: [Coordinate]
  public internal(set) var status: TripStatus
}

extension SimulatedDriver {
  /// A change of a trip's status, at the simulation's time when it happened.
  public struct TripMove: Sendable, Equatable {
    /// The trip with its new status.
    public let trip: SimulatedTrip
    /// By the clock of the driver's fixes.
    public let timestamp: Timestamp
    /// Where the driver is.
    public let location: Coordinate
  }
}

/// What a driver does between two decisions. Durations are in seconds of the simulation.
enum Duty: Sendable, Equatable {
  /// Driving about until a trip is requested, at `until`.
  case cruising(until: Double)
  /// A trip was requested; it is accepted, and driven to, a few seconds later.
  case deciding(until: Double)
  case startingOut(until: Double)
  case toPickup
  /// The passenger gets in.
  case boarding(until: Double)
  case toDropoff
  /// The passenger gets out.
  case alighting(until: Double)

  /// True where the car stands.
  var isStanding: Bool {
    switch self {
    case .boarding, .alighting: true
    case .cruising, .deciding, .startingOut, .toPickup, .toDropoff: false
    }
  }

  /// True where the car must stop at its target.
  var stopsAtTarget: Bool {
    switch self {
    case .toPickup, .toDropoff: true
    case .cruising, .deciding, .startingOut, .boarding, .alighting: false
    }
  }
}
