// What a driver's credential says of its vehicle.
public import HubBytes

/// A vehicle type and tags that hold whatever the driver says of itself; nil for what is left to the driver.
public struct VehicleClaims: Sendable, Equatable {
  public var vehicleType: InlineText?
  /// An empty list: the driver has no tags.
  public var tags: [InlineText]?

  public init(vehicleType: InlineText? = nil, tags: [InlineText]? = nil) {
    self.vehicleType = vehicleType
    self.tags = tags
  }

  public var isEmpty: Bool { vehicleType == nil && tags == nil }
}
