// Vehicle claims of a driver's credential.
public import HubBytes

/// A vehicle type and tags that override the driver's reports; nil leaves them to the driver.
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
