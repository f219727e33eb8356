// What a driver's phone measured.
public import HubGeo

/// The source of a fix, as the phone reports it.
public enum FixSource: UInt8, Sendable, CaseIterable, BitwiseCopyable { case gps, wifi, cellular, fused, cached }

/// One measured position. Optional values are absent where the phone sent none, null, or a negative number for
/// "unknown".
public struct Fix: Sendable, Equatable, BitwiseCopyable {
  public var coordinate: Coordinate
  /// When the phone measured it, by the phone's clock.
  public var timestamp: Timestamp
  /// Horizontal accuracy: the radius in metres within which the true position is with 68 %.
  public var accuracy: Double?
  /// Degrees clockwise from true north, 0 ≤ heading < 360.
  public var heading: Double?
  /// Metres per second, ≥ 0.
  public var speed: Double?
  /// Metres above the WGS 84 ellipsoid.
  public var altitude: Double?
  /// One standard deviation of `heading`, degrees.
  public var headingAccuracy: Double?
  /// One standard deviation of `speed`, metres per second.
  public var speedAccuracy: Double?
  public var source: FixSource?
  /// 0…1.
  public var batteryLevel: Double?
  static let batteryRange: StaticString = "expected 0…1, where 1 is a full battery"

  public init(
    coordinate: Coordinate, timestamp: Timestamp, accuracy: Double? = nil, heading: Double? = nil,
    speed: Double? = nil, altitude: Double? = nil, headingAccuracy: Double? = nil, speedAccuracy: Double? = nil,
    source: FixSource? = nil, batteryLevel: Double? = nil
  ) {
    self.coordinate = coordinate
    self.timestamp = timestamp
    self.accuracy = accuracy
    self.heading = heading
    self.speed = speed
    self.altitude = altitude
    self.headingAccuracy = headingAccuracy
    self.speedAccuracy = speedAccuracy
    self.source = source
    self.batteryLevel = batteryLevel
  }
}
