// What one can subscribe to.
import Bytes
import Geo

/// A channel by its name.
public enum Channel: Sendable, Hashable {
  /// `trip:<tripId>`: driver_location, eta_update, trip_update, notification.
  case trip(Identifier)
  /// `driver:<driverId>`.
  case driver(Identifier)
  /// `fence:<fenceId>`.
  case fence(Identifier)
  /// `area:<geohash>`, 3–8 characters of the geohash alphabet.
  case area(InlineText)
  /// `nearby:<latitude>,<longitude>,<radius in metres>`.
  case nearby(Coordinate, radiusMeters: Double)
  /// `fleet`: all drivers, for ops.
  case fleet
}
