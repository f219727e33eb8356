// The estimated arrival of a trip's driver at its target: state, the latest replaces earlier ones.
import HubBytes

/// The target of a trip's driver.
public enum TripTarget: UInt8, Sendable, CaseIterable {
  case pickup, dropoff

  /// Its keyword on the wire.
  public var name: StaticString {
    switch self {
    case .pickup: "pickup"
    case .dropoff: "dropoff"
    }
  }
}

/// The basis of an ETA.
public enum ETABasis: UInt8, Sendable, CaseIterable {
  /// Along the trip's route.
  case route
  /// Great-circle distance times the area's circuity.
  case direct

  /// Its keyword on the wire.
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
  /// Seconds until the arrival, from when the estimate was made; a whole number.
  public var eta: Double
  /// Metres left to the target; a whole number.
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
