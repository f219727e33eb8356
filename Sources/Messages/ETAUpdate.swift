// When a trip's driver will be where it is going to: state, the newest says all.
import HubBytes

/// Where a trip's driver is going to.
public enum TripTarget: UInt8, Sendable, CaseIterable {
  case pickup, dropoff

  public var name: StaticString {
    switch self {
    case .pickup: "pickup"
    case .dropoff: "dropoff"
    }
  }
}

/// What an ETA was reckoned by.
public enum ETABasis: UInt8, Sendable, CaseIterable {
  /// Along the trip's route.
  case route
  /// As the crow flies, and so much more as drivers around here have to go.
  case direct

  public var name: StaticString {
    switch self {
    case .route: "route"
    case .direct: "direct"
    }
  }
}

/// An estimate of when the driver arrives.
public struct ETAUpdate: Sendable, Equatable {
  public var tripID: Identifier
  public var target: TripTarget
  /// Whole seconds from when it was made.
  public var eta: Double
  /// Whole metres that are left.
  public var distance: Double
  /// By the hub's clock.
  public var arrivalTime: Timestamp
  public var basis: ETABasis
  /// The channel's newest event sequence when this was published.
  public var after: UInt64

  public init(
    tripID: Identifier, target: TripTarget, eta: Double, distance: Double, arrivalTime: Timestamp, basis: ETABasis,
    after: UInt64
  ) {
    self.tripID = tripID
    self.target = target
    self.eta = eta
    self.distance = distance
    self.arrivalTime = arrivalTime
    self.basis = basis
    self.after = after
  }
}
