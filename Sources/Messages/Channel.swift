// Channels of subscriptions.
import HubBytes
public import HubGeo

/// The parsed name of a channel.
public enum Channel: Sendable, Hashable, BitwiseCopyable {
  /// `trip:<tripId>`: driver_location, eta_update, trip_update, notification.
  case trip(Identifier)
  /// `driver:<driverId>`.
  case driver(Identifier)
  /// `fence:<fenceId>`.
  case fence(Identifier)
  /// `area:<geohash>`, 3–8 characters of the geohash alphabet.
  case area(GeohashCell)
  /// `nearby:<latitude>,<longitude>,<radius in metres>`.
  case nearby(Coordinate, radiusMeters: Double)
  /// `box:<west>,<south>,<east>,<north>`, in degrees, for ops.
  case box(BoundingBox)
  /// `counts:<west>,<south>,<east>,<north>`: how many drivers are in the cells of a box, for ops.
  case counts(BoundingBox)
  /// `counts:<geohash>/<precision>`: how many drivers are in the cells of one block, which have two characters more.
  case countsBlock(GeohashCell)
  /// `fleet`: all drivers, for ops.
  case fleet
  /// `raw:<driverId>`: the driver's raw fixes, for ops.
  case raw(Identifier)
  /// `trips`: the trip_update of all trips, for ops.
  case trips
  /// `stats`: the hub's own figures, for ops.
  case stats

  /// The number of characters of an area's geohash, and of a view's cells: cells from 156 km down to 38 m.
  public static let areaPrecisions = 3...8

  /// Whether it is a `counts:` channel, of a box or of one block.
  public var isOfCounts: Bool {
    switch self {
    case .counts, .countsBlock: true
    case .trip, .driver, .fence, .area, .nearby, .box, .fleet, .trips, .raw, .stats: false
    }
  }
}
