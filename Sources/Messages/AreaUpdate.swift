// Drivers in a part of the map: one message a tick for each cell of a geohash grid (protocol/areas.md).
public import HubBytes
public import HubGeo

/// The changes in one cell since the previous tick, or a full snapshot. It is state: the latest update replaces earlier
/// ones, and it has no sequence number.
public struct AreaUpdate: Sendable, Equatable {
  /// A driver as watchers of an area see it.
  public struct Driver: Sendable, Equatable {
    /// The driver's id. Riders get a pseudonym, which changes from time to time.
    public var driverID: Identifier
    /// The published position. Riders get the centre of a square of about 20 m instead.
    public var coordinate: Coordinate
    /// Degrees clockwise from true north. Riders get none.
    public var heading: Double?
    /// Metres per second. Riders get none.
    public var speed: Double?
    public var status: DriverStatus
    /// The clock that `timestamp` was read from.
    public var timeSource = TimeSource.fix
    /// The fix's time. Riders get the second of the tick, the same for all drivers of an update.
    public var timestamp: Timestamp

    public init(
      driverID: Identifier, coordinate: Coordinate, heading: Double?, speed: Double?, status: DriverStatus,
      timestamp: Timestamp, timeSource: TimeSource = .fix
    ) {
      self.driverID = driverID
      self.coordinate = coordinate
      self.heading = heading
      self.speed = speed
      self.status = status
      self.timeSource = timeSource
      self.timestamp = timestamp
    }
  }

  /// Further members for ops.
  public struct Details: Sendable, Equatable {
    /// The active trip that its newest position named.
    public var tripID: Identifier?
    /// The radius in metres within which the true position is with 68 %.
    public var accuracy: Double
    public var confidence: Confidence
    public var vehicleType: InlineText?
    /// False for an offline driver, shown at its last position.
    public var isOnline = true
    /// When its last trip ended (ms since 1970; 0 for none). Only hubs of a cluster send it, to each other.
    public var lastTripEnded: Int64 = 0

    public init(tripID: Identifier?, accuracy: Double, confidence: Confidence, vehicleType: InlineText?) {
      self.tripID = tripID
      self.accuracy = accuracy
      self.confidence = confidence
      self.vehicleType = vehicleType
    }
  }

  public var cell: GeohashCell
  /// Grows by one a second; all cells tick together.
  public var tick: UInt64
  /// True for a snapshot; else `drivers` are those that moved or entered.
  public var isFull: Bool
  public var drivers: [Driver]
  /// For ops one element for each of `drivers`, in the same order; empty for riders.
  public var details: [Details] = []
  /// Drivers that have left the cell. A client removes one only if no other cell has shown it since.
  public var left: [Identifier]
  /// The number of further drivers, beyond those that the cell shows.
  public var more: Int?

  public init(
    cell: GeohashCell, tick: UInt64, isFull: Bool, drivers: [Driver], left: [Identifier] = [], more: Int? = nil
  ) {
    self.cell = cell
    self.tick = tick
    self.isFull = isFull
    self.drivers = drivers
    self.left = left
    self.more = more
  }
}

extension AreaUpdate {
  /// Sorts `drivers` and `left` by the drivers' ids. O(n log n).
  public mutating func sortByName() {
    drivers.sort { $0.driverID.isBefore($1.driverID) }
    left.sort { $0.isBefore($1) }
  }
}
