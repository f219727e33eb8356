// The hub's advice how often a driver should send, and its reason.

/// The hub's advice to one driver. It is not enforced.
public struct SamplingAdvice: Sendable, Equatable {
  /// Seconds between fixes.
  public var interval: Double
  /// Metres to move before another fix is worth sending.
  public var minDistance: Double
  /// Nil where a newer hub gave a reason that this version does not know.
  public var reason: SamplingReason?

  public init(interval: Double, minDistance: Double, reason: SamplingReason?) {
    self.interval = interval
    self.minDistance = minDistance
    self.reason = reason
  }
}

/// The reason of an interval.
public enum SamplingReason: UInt8, Sendable, CaseIterable {
  /// On a trip, by speed: over 50 km/h, over 20 km/h, slower.
  case tripFast, tripMedium, tripSlow
  /// Without a trip.
  case moving, standing
  /// The app is in the background.
  case background
  /// Somebody follows the driver or its trip.
  case watched

  /// Its keyword on the wire.
  public var name: StaticString {
    switch self {
    case .tripFast: "trip_fast"
    case .tripMedium: "trip_medium"
    case .tripSlow: "trip_slow"
    case .moving: "moving"
    case .standing: "standing"
    case .background: "background"
    case .watched: "watched"
    }
  }
}
