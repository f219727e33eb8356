// What moves in a part of the map: one message a tick for each cell of a geohash grid (protocol/areas.md).
public import HubBytes
public import HubGeo

/// What happened in one cell since the tick before, or all that is in it. State: latest wins, nothing is numbered.
public struct AreaUpdate: Sendable, Equatable {
  /// A driver as those who watch an area see it.
  public struct Driver: Sendable, Equatable {
    /// Riders get a pseudonym, which changes from time to time.
    public var driverID: Identifier
    /// Riders get the middle of a square of about 20 m.
    public var coordinate: Coordinate
    /// Degrees clockwise from true north. Riders get none.
    public var heading: Double?
    /// Metres per second. Riders get none.
    public var speed: Double?
    public var status: DriverStatus
    /// Whose clock `timestamp` is by.
    public var timeSource = TimeSource.fix
    /// Of the fix. Riders get the whole second of the tick, the same for all drivers of an update.
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

  /// What ops are shown of a driver besides.
  public struct Details: Sendable, Equatable {
    /// The trip that its newest position named, while that goes on.
    public var tripID: Identifier?
    /// The radius in metres that holds the truth with 68 %.
    public var accuracy: Double
    public var confidence: Confidence
    public var vehicleType: InlineText?
    /// False for a driver that is offline and was where it is shown when it was heard of last.
    public var isOnline = true
    /// When its last trip ended (ms since 1970; 0 for none): for other hubs of a cluster, in no message.
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
  /// True where `drivers` is all that there is; else it is what moved or came.
  public var isFull: Bool
  public var drivers: [Driver]
  /// As many as `drivers`, in their order, for ops; none for riders.
  public var details: [Details] = []
  /// Who was in the cell and is not any more. Counts only for those whom the cell showed last.
  public var left: [Identifier]
  /// How many drivers there are besides, where the cell has more than it shows.
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
  /// Puts `drivers` and `left` in the order of the drivers' ids. O(n log n).
  public mutating func sortByName() {
    drivers.sort { $0.driverID.isBefore($1.driverID) }
    left.sort { $0.isBefore($1) }
  }
}
