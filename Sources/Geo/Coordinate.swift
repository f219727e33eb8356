// A place on Earth, checked once where it enters, and the one sphere that all distances are measured on.

/// The Earth's mean radius in metres, (2a + b) / 3 of WGS 84 (IUGG). On this sphere distances are off by at most
/// 0.56 % from the ellipsoid's.
public let earthRadiusMeters = 6_371_008.8

/// A checked position: WGS 84 degrees.
public struct Coordinate: Sendable, Hashable, BitwiseCopyable {
  /// −90…90, north positive.
  public let latitude: Double
  /// −180…180, east positive.
  public let longitude: Double

  /// Nil when a value is not finite or out of range.
  @inlinable public init?(latitude: Double, longitude: Double) {
    guard latitude >= -90, latitude <= 90, longitude >= -180, longitude <= 180 else { return nil }  // NaN fails too
    self.latitude = latitude
    self.longitude = longitude
  }
}
