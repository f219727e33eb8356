// Times of this device, and conversions of Apple's types.
public import HubClientCore
public import HubMessages

#if canImport(Darwin)
  public import CoreLocation
  public import Foundation
  public import HubGeo
#else
  import HubSystem
#endif

/// Nanoseconds, including the device's sleep (CLOCK_BOOTTIME on Linux, `mach_continuous_time` on Apple systems).
///
/// With a clock that stops during sleep, as most uptimes do, a connection would seem alive after an hour of silence,
/// and an hour-old position new.
func continuousUptime() -> Int64 {
  let (seconds, attoseconds) = (ContinuousClock.now - clockStart).components
  return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
}

private let clockStart = ContinuousClock.now - .seconds(1)

extension Timestamp {
  /// This device's wall clock.
  public static var now: Timestamp {
    #if canImport(Darwin)
      Timestamp(Date())
    #else
      Timestamp(milliseconds: ClockReading.read().unixMilliseconds)
    #endif
  }
}

extension MarkerInterpolator {
  /// Takes a position when it comes.
  public mutating func push(_ position: Position) { take(position, at: continuousUptime()) }

  /// Where to draw the driver now; nil before the first position.
  public var now: Marker? { marker(at: continuousUptime()) }
}

#if canImport(Darwin)
  extension Timestamp {
    /// A time of Foundation's, to the millisecond.
    public init(_ date: Date) { self.init(milliseconds: Int64(date.timeIntervalSince1970 * 1000)) }

    /// This time as a `Date` of Foundation's.
    public var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }
  }

  extension HubGeo.Coordinate {
    /// A coordinate of Core Location's; nil where it is invalid.
    public init?(_ coordinate: CLLocationCoordinate2D) {
      self.init(latitude: coordinate.latitude, longitude: coordinate.longitude)
    }
  }

  extension CLLocationCoordinate2D {
    /// A coordinate of the hub's, for a map.
    public init(_ coordinate: HubGeo.Coordinate) {
      self.init(latitude: coordinate.latitude, longitude: coordinate.longitude)
    }
  }

  extension Fix {
    /// A measurement of Core Location's; nil for an invalid coordinate, which `DriverHub.send(_:trip:)` skips.
    public init?(_ location: CLLocation) {
      guard let coordinate = HubGeo.Coordinate(location.coordinate) else { return nil }
      func known(_ value: Double) -> Double? { value >= 0 ? value : nil }
      self.init(
        coordinate: coordinate, timestamp: Timestamp(location.timestamp), accuracy: known(location.horizontalAccuracy),
        heading: known(location.course), speed: known(location.speed),
        altitude: location.verticalAccuracy > 0 ? location.ellipsoidalAltitude : nil,
        headingAccuracy: known(location.courseAccuracy), speedAccuracy: known(location.speedAccuracy), source: .fused)
    }
  }
#endif
