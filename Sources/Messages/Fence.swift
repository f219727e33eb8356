// Fences: areas on the map, or distances between drivers, whose crossings the hub publishes. protocol/fences.md
// describes them; a fence value has passed all checks that do not depend on the hub's tables.
public import HubBytes
public import HubGeo

/// A fence that ops have defined: its shape, its drivers, and what is published about them.
public struct Fence: Sendable, Equatable {
  /// The kinds of fences.
  public enum Kind: UInt8, Sendable, CaseIterable {
    /// An area.
    case area
    /// An area that drivers are warned of.
    case hazard
    /// Two drivers near each other.
    case roaming

    /// Its keyword on the wire.
    public var name: StaticString {
      switch self {
      case .area: "area"
      case .hazard: "hazard"
      case .roaming: "roaming"
      }
    }
  }

  /// The shape.
  public enum Shape: Sendable, Equatable {
    case area(FenceArea)
    case hazard(FenceArea)
    /// A driver of the fence and one of `others` are within this distance of each other, anywhere.
    case roaming(meters: Double, others: FenceFilter)
  }

  /// The range of seconds for `fence_dwell`.
  public static let dwellSeconds = 1.0...86_400
  /// Metres per second.
  public static let speedLimits = 0.5...90.0

  public var id: Identifier
  /// A name for people.
  public var title: InlineText?
  public var shape: Shape
  /// The drivers it applies to.
  public var drivers: FenceFilter
  /// Seconds after which a stay is reported (`fence_dwell`); nil for never.
  public var dwell: Double?
  /// Metres per second above which `speeding` is reported; nil for never.
  public var speedLimit: Double?

  public init(
    id: Identifier, title: InlineText? = nil, shape: Shape, drivers: FenceFilter = FenceFilter(),
    dwell: Double? = nil, speedLimit: Double? = nil
  ) {
    self.id = id
    self.title = title
    self.shape = shape
    self.drivers = drivers
    self.dwell = dwell
    self.speedLimit = speedLimit
  }

  /// Its kind, which follows from the shape.
  public var kind: Kind {
    switch shape {
    case .area: .area
    case .hazard: .hazard
    case .roaming: .roaming
    }
  }

  /// The area; nil of a roaming fence.
  public var area: FenceArea? {
    switch shape {
    case .area(let area), .hazard(let area): area
    case .roaming: nil
    }
  }

  /// Whether it has no area, but a distance between two drivers.
  public var isRoaming: Bool { kind == .roaming }

  /// Vertices of its shape, with which its memory grows.
  public var positionCount: Int {
    switch area {
    case .circle, nil: 1
    case .polygons(let polygons): polygons.positions.reduce(0) { $0 + $1.reduce(0) { $0 + $1.count } }
    case .corridor(let corridor, _): Edges(corridor.path).all.count + 1
    }
  }
}

/// An area on the map, including its borders.
public enum FenceArea: Sendable, Equatable {
  case circle(Circle)
  case polygons(MultiPolygon)
  /// The corridor, and the route as it was given, for answers.
  case corridor(Corridor, Route)

  /// Whether the place is inside or on the border; `direction` is the same place as a unit vector. O(1) for circles,
  /// O(edges) for others.
  public func contains(_ place: Coordinate, _ direction: UnitVector) -> Bool {
    switch self {
    case .circle(let circle): circle.contains(place, direction)
    case .polygons(let polygons): polygons.contains(place)
    case .corridor(let corridor, _): corridor.contains(place)
    }
  }

  /// Metres to the border.
  public func distanceToBorder(from place: Coordinate) -> Double {
    switch self {
    case .circle(let circle): circle.distanceToBorder(from: place)
    case .polygons(let polygons): polygons.distanceToBorder(from: place)
    case .corridor(let corridor, _): corridor.distanceToBorder(from: place)
    }
  }

  /// A measure of size in metres: a radius, half a corridor's width, or the radius of a circle of the polygons' area.
  public var sizeMeters: Double {
    switch self {
    case .circle(let circle): circle.radiusMeters
    case .polygons(let polygons): (max(0, polygons.areaSquareMeters) / .pi).squareRoot()
    case .corridor(let corridor, _): corridor.halfWidthMeters
    }
  }

  /// The smallest box around the area, or slightly more.
  public var boundingBox: BoundingBox {
    switch self {
    case .circle(let circle): circle.boundingBox
    case .polygons(let polygons): polygons.boundingBox
    case .corridor(let corridor, _): corridor.boundingBox
    }
  }
}

/// Selects drivers: a member that is nil or empty matches any.
public struct FenceFilter: Sendable, Equatable {
  public var status: DriverStatus?
  public var vehicleType: InlineText?
  /// All of these, up to 8.
  public var tags: [InlineText]

  public init(status: DriverStatus? = nil, vehicleType: InlineText? = nil, tags: [InlineText] = []) {
    self.status = status
    self.vehicleType = vehicleType
    self.tags = tags
  }

  public var isEmpty: Bool { status == nil && vehicleType == nil && tags.isEmpty }
}

/// A fence in answers.
public struct FenceReport: Sendable, Equatable {
  public var fence: Fence
  /// When it was last put, by the hub's wall clock.
  public var updated: Timestamp
  /// Drivers, or pairs of drivers, in it.
  public var inside: Int

  public init(fence: Fence, updated: Timestamp, inside: Int) {
    self.fence = fence
    self.updated = updated
    self.inside = inside
  }
}

/// The fence members of a notification.
public struct FenceNotice: Sendable, Equatable {
  /// Why a stay ended without a position outside.
  public enum Reason: UInt8, Sendable, CaseIterable {
    /// The fence no longer applies to the driver.
    case filter
    /// One of a pair has gone offline.
    case offline
    /// The hub has forgotten the driver after a long absence.
    case forgotten

    /// Its keyword on the wire.
    public var name: StaticString {
      switch self {
      case .filter: "filter"
      case .offline: "offline"
      case .forgotten: "forgotten"
      }
    }
  }

  public var fenceID: Identifier
  /// Of a roaming fence, the other driver.
  public var otherID: Identifier?
  /// Metres between the two.
  public var distance: Double?
  /// The time of the deciding position or, without one, of the hub's wall clock.
  public var timestamp: Timestamp
  /// That position's coordinate.
  public var location: Coordinate?
  /// Seconds since the driver entered; only in `fence_exit` and `fence_dwell`.
  public var duration: Double?
  public var speed: Double?
  public var speedLimit: Double?
  public var reason: Reason?

  public init(fenceID: Identifier, timestamp: Timestamp, location: Coordinate? = nil) {
    self.fenceID = fenceID
    self.timestamp = timestamp
    self.location = location
  }
}
