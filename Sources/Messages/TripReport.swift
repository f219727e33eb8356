// A trip in queries: the same over the socket (`query` of kind `trip`, `result`) and HTTP.
public import HubGeo

/// All that is known of a trip.
public struct TripReport: Sendable, Equatable {
  public var tripID: Identifier
  public var status: TripStatus
  /// When the last move happened, by its sender's clock.
  public var timestamp: Timestamp
  /// When it began, was last moved, and ended, by the hub's wall clock.
  public var created: Timestamp
  public var updated: Timestamp
  public var ended: Timestamp?
  public var driverID: Identifier?
  public var riderID: Identifier?
  public var pickup: Coordinate?
  public var dropoff: Coordinate?
  /// Encoded polyline, unchanged; nil in a list.
  public var route: String?
  /// Of a trip that has ended.
  public var summary: TripSummary?

  public init(
    tripID: Identifier, status: TripStatus, timestamp: Timestamp, created: Timestamp, updated: Timestamp
  ) {
    self.tripID = tripID
    self.status = status
    self.timestamp = timestamp
    self.created = created
    self.updated = updated
  }
}
