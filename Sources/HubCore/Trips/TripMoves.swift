// The states of a trip and their moves as one table, and who may make which (protocol/README.md, "Trips").
import HubMessages

extension TripStatus {
  /// The state that follows in the normal course; nil at the end.
  var next: TripStatus? {
    switch self {
    case .requested: .accepted
    case .accepted: .driverEnRoute
    case .driverEnRoute: .arrivedPickup
    case .arrivedPickup: .tripStarted
    case .tripStarted: .arrivedDestination
    case .arrivedDestination: .completed
    case .completed, .cancelled: nil
    }
  }

  /// Forward one step at a time; cancelled from every state before completed.
  func allows(_ target: TripStatus) -> Bool {
    target == .cancelled ? !isFinal : next == target
  }

  /// True while the driver is bound to the trip: what makes a driver `on_trip`.
  var occupiesDriver: Bool {
    switch self {
    case .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination: true
    case .requested, .completed, .cancelled: false
    }
  }
}

/// How someone stands to a trip.
enum TripParty {
  case driver, rider, ops, stranger

  /// Whether this party may make the move, whatever the state it is in otherwise. Whoever has part in a trip may send
  /// `requested` again, which no state allows: it is answered with the state that the trip is in.
  func mayMove(from status: TripStatus, to target: TripStatus) -> Bool {
    switch self {
    case .ops, .driver: true
    case .rider: target == .cancelled && status < .tripStarted || target == .requested
    case .stranger: false
    }
  }
}

extension TripStatus: Comparable {
  public static func < (a: TripStatus, b: TripStatus) -> Bool { a.rawValue < b.rawValue }
}
