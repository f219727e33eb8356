// Queries for drivers and their answers: the same over the socket (`query`, `result`) and HTTP.
public import HubBytes
public import HubGeo

/// A `query`.
public enum QueryRequest: Sendable, Equatable {
  /// `nearby` and `within`.
  case drivers(DriverSearch)
  case driver(Identifier)
  case trip(Identifier)
}

/// The criteria of a search.
public struct DriverSearch: Sendable, Equatable {
  /// Where to search.
  public enum Area: Sendable, Equatable {
    /// Around a point, nearest first; a nil radius is the largest that the asker may use.
    case nearby(Coordinate, radiusMeters: Double?)
    case box(BoundingBox)
    case polygons(MultiPolygon)

    /// Positions of polygons, with which its memory grows.
    public var positionCount: Int {
      guard case .polygons(let polygons) = self else { return 0 }
      return polygons.positions.reduce(0) { $0 + $1.reduce(0) { $0 + $1.count } }
    }
  }

  public var area: Area
  /// 1…1,000.
  public var limit: Int?
  public var filter: DriverFilter

  public init(area: Area, limit: Int? = nil, filter: DriverFilter = DriverFilter()) {
    self.area = area
    self.limit = limit
    self.filter = filter
  }
}

/// Criteria besides the position; nil and empty for any.
public struct DriverFilter: Sendable, Equatable {
  public var status: DriverStatus?
  public var vehicleType: InlineText?
  /// All of these, up to 8.
  public var tags: [InlineText]
  /// The largest age of the position in seconds.
  public var maxAge: Double?
  /// Whether drivers that have been silent for long are found, too.
  public var includesStale: Bool

  public init(
    status: DriverStatus? = nil, vehicleType: InlineText? = nil, tags: [InlineText] = [], maxAge: Double? = nil,
    includesStale: Bool = false
  ) {
    self.status = status
    self.vehicleType = vehicleType
    self.tags = tags
    self.maxAge = maxAge
    self.includesStale = includesStale
  }
}

/// The body of an answer.
public enum QueryResult: Sendable, Equatable {
  case driver(DriverReport)
  case drivers(DriverList)
  case trip(TripReport)
}

/// What `nearby` and `within` found, nearest first.
public struct DriverList: Sendable, Equatable {
  public var drivers: [DriverReport]
  /// The number of further ones; only for `within`, and only where there are any.
  public var more: Int
  /// Of a page: the cursor of the next; nil at the end.
  public var cursor: String?
  /// Of a page: the drivers' indices at the hub, by which hubs merge pages. Not sent.
  public var indices: [Int]?

  public init(drivers: [DriverReport], more: Int = 0, cursor: String? = nil, indices: [Int]? = nil) {
    self.drivers = drivers
    self.more = more
    self.cursor = cursor
    self.indices = indices
  }
}

/// A driver in answers. Its numbers are rounded when it is made, so that what is written is exact.
public struct DriverReport: Sendable, Equatable {
  /// For riders a pseudonym.
  public var driverID: Identifier
  public var status: DriverStatus
  /// The vehicle as the driver reported it.
  public var vehicleType: InlineText?
  public var tags: [InlineText] = []
  /// The published position; nil before the first accepted fix.
  public var position: Place?
  /// The extrapolated coordinate, by its speed, heading and turn; nil where it is not known to move.
  public var predicted: Coordinate?
  /// Metres from the requested point, or from the middle of the area, to the position.
  public var distance: Double?
  /// Nil in a list, except in a page of all drivers, which also has each position's confidence and the trip.
  public var isOnline: Bool?
  public var confidence: Confidence?
  public var tripID: Identifier?

  /// A driver's newest position, as the asker may see it.
  public struct Place: Sendable, Equatable {
    public var coordinate: Coordinate
    public var heading: Double?
    public var speed: Double?
    /// Nil for riders, like the time of the fix.
    public var accuracy: Double?
    /// Seconds since the fix.
    public var age: Double
    public var timestamp: Timestamp?
    /// The clock that `timestamp` was read from.
    public var timeSource = TimeSource.fix

    public init(
      coordinate: Coordinate, heading: Double?, speed: Double?, accuracy: Double?, age: Double, timestamp: Timestamp?,
      timeSource: TimeSource = .fix
    ) {
      self.coordinate = coordinate
      self.heading = heading
      self.speed = speed
      self.accuracy = accuracy
      self.age = age
      self.timestamp = timestamp
      self.timeSource = timeSource
    }
  }

  public init(driverID: Identifier, status: DriverStatus) {
    self.driverID = driverID
    self.status = status
  }
}

/// The answer to a `query` over the socket.
public struct ResultReply: Sendable, Equatable {
  public var replyTo: MessageID
  public var result: QueryResult

  public init(replyTo: MessageID, result: QueryResult) {
    self.replyTo = replyTo
    self.result = result
  }
}
