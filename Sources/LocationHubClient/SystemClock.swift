// Times of this device, as the API has them, and what Apple's types make of them.
public import HubClientCore
public import HubMessages

#if canImport(Darwin)
  public import CoreLocation
  public import Foundation
  import HubGeo
#else
  import HubSystem
#endif

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
  /// Takes a position as it comes.
  public mutating func push(_ position: Position) { take(position, at: MarkerInterpolator.uptime) }

  /// Where to draw the driver now; nil before the first position.
  public var now: Marker? { marker(at: MarkerInterpolator.uptime) }

  private static var uptime: Int64 {
    #if canImport(Darwin)
      Int64(DispatchTime.now().uptimeNanoseconds)
    #else
      ClockReading.uptime()
    #endif
  }
}

#if canImport(Darwin)
  extension Timestamp {
    public init(_ date: Date) { self.init(milliseconds: Int64(date.timeIntervalSince1970 * 1000)) }

    public var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }
  }

  extension Fix {
    /// What Core Location has measured; nil for a place that is none.
    public init?(_ location: CLLocation) {
      guard
        let coordinate = HubGeo.Coordinate(
          latitude: location.coordinate.latitude, longitude: location.coordinate.longitude)
      else { return nil }
      func known(_ value: Double) -> Double? { value >= 0 ? value : nil }
      self.init(
        coordinate: coordinate, timestamp: Timestamp(location.timestamp), accuracy: known(location.horizontalAccuracy),
        heading: known(location.course), speed: known(location.speed),
        altitude: location.verticalAccuracy > 0 ? location.ellipsoidalAltitude : nil,
        headingAccuracy: known(location.courseAccuracy), speedAccuracy: known(location.speedAccuracy), source: .fused)
    }
  }
#endif
