// Terms of trips for client, hub and codec. The table of moves is in HubCore.

/// The role of a session.
public enum Role: UInt8, Sendable, CaseIterable { case driver, rider, ops }

/// The statuses of a trip, in order; `cancelled` is outside the order.
public enum TripStatus: UInt8, Sendable, CaseIterable {
  case requested, accepted, driverEnRoute, arrivedPickup, tripStarted, arrivedDestination, completed, cancelled

  /// Its keyword on the wire.
  public var name: StaticString {
    switch self {
    case .requested: "requested"
    case .accepted: "accepted"
    case .driverEnRoute: "driver_en_route"
    case .arrivedPickup: "arrived_pickup"
    case .tripStarted: "trip_started"
    case .arrivedDestination: "arrived_destination"
    case .completed: "completed"
    case .cancelled: "cancelled"
    }
  }

  /// Whether a trip with this status can no longer move to another one.
  public var isFinal: Bool { self == .completed || self == .cancelled }
}

/// A driver's status. `onTrip` is derived from the driver's trips and never sent by the driver.
public enum DriverStatus: UInt8, Sendable, CaseIterable, BitwiseCopyable {
  case available, unavailable, background, onTrip
}

/// The reliability of a published position.
public enum Confidence: UInt8, Sendable, CaseIterable, BitwiseCopyable { case high, medium, low }

/// The clock of a published position's `timestamp`.
public enum TimeSource: UInt8, Sendable, CaseIterable, BitwiseCopyable {
  /// The phone's clock: the fix's own time, unchanged. The default, which messages leave out.
  case fix
  /// The hub's clock: the driver's was set back, and its fixes are still older than the last published time
  /// (protocol/tracking.md, "A clock that was ahead").
  case hub

  /// Its keyword on the wire.
  public var name: StaticString {
    switch self {
    case .fix: "fix"
    case .hub: "hub"
    }
  }
}

extension Role {
  /// Its keyword on the wire.
  public var name: StaticString {
    switch self {
    case .driver: "driver"
    case .rider: "rider"
    case .ops: "ops"
    }
  }
}

extension DriverStatus {
  /// Its keyword on the wire.
  public var name: StaticString {
    switch self {
    case .available: "available"
    case .unavailable: "unavailable"
    case .background: "background"
    case .onTrip: "on_trip"
    }
  }
}

extension Confidence {
  /// Its keyword on the wire.
  public var name: StaticString {
    switch self {
    case .high: "high"
    case .medium: "medium"
    case .low: "low"
    }
  }
}

extension FixSource {
  /// Its keyword on the wire.
  public var name: StaticString {
    switch self {
    case .gps: "gps"
    case .wifi: "wifi"
    case .cellular: "cellular"
    case .fused: "fused"
    case .cached: "cached"
    }
  }
}
