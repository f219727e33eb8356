// Messages to all subscribers of a channel: states (positions, ETAs, areas) and numbered events. Replies to one session
// are in Replies.swift.
import HubBytes
public import HubGeo

/// A message to the subscribers of one channel: a self-contained value, independent of the hub's tables.
public struct Publication: Sendable, Equatable {
  public var channel: Channel
  /// Numbers all publications since the hub's process began; written as the envelope's `messageId`.
  public var number: UInt64
  /// The hub's wall clock when it was published; the envelope's `timestamp`.
  public var timestamp: Timestamp
  public var body: Body

  /// What is published, by the message's `type`.
  public enum Body: Sendable, Equatable {
    case driverLocation(DriverLocation)
    case etaUpdate(ETAUpdate)
    indirect case tripUpdate(TripUpdate)
    indirect case notification(Notification)
    indirect case offer(Offer)
    indirect case areaUpdate(AreaUpdate)
    indirect case rawFix(RawFix)
    indirect case countsUpdate(CountsUpdate)
    indirect case stats(HubFigures)
  }

  public init(channel: Channel, number: UInt64, timestamp: Timestamp, body: Body) {
    self.channel = channel
    self.number = number
    self.timestamp = timestamp
    self.body = body
  }

  /// The number of an event on its channel, from 1; nil for state, which has none.
  package var sequence: UInt64? {
    switch body {
    case .tripUpdate(let update): update.sequence
    case .notification(let notification): notification.sequence
    case .offer(let offer): offer.sequence
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats: nil
    }
  }
}

/// A position as a publication: the only frequent kind. It holds no references.
public struct PublishedPosition: Sendable, Equatable, BitwiseCopyable {
  public var channel: Channel
  public var number: UInt64
  public var timestamp: Timestamp
  public var location: DriverLocation

  @inlinable @inline(__always)
  public init(channel: Channel, number: UInt64, timestamp: Timestamp, location: DriverLocation) {
    self.channel = channel
    self.number = number
    self.timestamp = timestamp
    self.location = location
  }
}

extension Publication {
  public init(_ position: PublishedPosition) {
    self.init(
      channel: position.channel, number: position.number, timestamp: position.timestamp,
      body: .driverLocation(position.location))
  }
}

/// A published position: filtered; state, the latest replaces earlier ones. Its numbers are rounded when it is made
/// (coordinates to 1e-7°, speed and accuracy to 0.01, heading to 0.01°, age to 0.001), so that what is written is
/// exact.
public struct DriverLocation: Sendable, Equatable, BitwiseCopyable {
  public var driverID: Identifier
  public var tripID: Identifier?
  public var coordinate: Coordinate
  /// Degrees clockwise from true north.
  public var heading: Double?
  /// Metres per second.
  public var speed: Double?
  /// The radius in metres within which the true position is with 68 %.
  public var accuracy: Double
  public var confidence: Confidence
  /// The clock that `timestamp` was read from.
  public var timeSource = TimeSource.fix
  /// The fix's time, unchanged, where `timeSource` is `.fix`. Strictly ascending for a driver.
  public var timestamp: Timestamp
  /// Seconds from fix to publication, by the session's estimated clock.
  public var age: Double
  /// The channel's newest event sequence when this was published.
  public var after: UInt64
  /// The driver's status; on `fleet` only.
  public var status: DriverStatus?

  @inlinable @inline(__always)
  public init(
    driverID: Identifier, tripID: Identifier?, coordinate: Coordinate, heading: Double?, speed: Double?,
    accuracy: Double, confidence: Confidence, timestamp: Timestamp, timeSource: TimeSource = .fix, age: Double,
    after: UInt64
  ) {
    self.driverID = driverID
    self.tripID = tripID
    self.coordinate = coordinate
    self.heading = heading
    self.speed = speed
    self.accuracy = accuracy
    self.confidence = confidence
    self.timeSource = timeSource
    self.timestamp = timestamp
    self.age = age
    self.after = after
  }
}

/// A trip's move, or a change of its coordinates or route: an event.
public struct TripUpdate: Sendable, Equatable {
  public var tripID: Identifier
  public var status: TripStatus
  public var previousStatus: TripStatus?
  public var driverID: Identifier?
  /// On `trips` only.
  public var riderID: Identifier?
  /// When it happened, by the sender's clock.
  public var timestamp: Timestamp
  public var location: Coordinate?
  // In a change, the changed members; on the channel `trips` the trip's current coordinates.
  public var pickup: Coordinate?
  public var dropoff: Coordinate?
  /// Encoded polyline, unchanged.
  public var route: String?
  /// Only of an ended trip.
  public var summary: TripSummary?
  public var sequence: UInt64

  /// Whether it is a change, not a move. Not valid on `trips`, where moves have coordinates, too.
  public var isChange: Bool { pickup != nil || dropoff != nil || route != nil }

  public init(
    tripID: Identifier, status: TripStatus, previousStatus: TripStatus?, driverID: Identifier?,
    timestamp: Timestamp, location: Coordinate?, pickup: Coordinate? = nil, dropoff: Coordinate? = nil,
    route: String? = nil, summary: TripSummary? = nil, sequence: UInt64
  ) {
    self.tripID = tripID
    self.status = status
    self.previousStatus = previousStatus
    self.driverID = driverID
    self.timestamp = timestamp
    self.location = location
    self.pickup = pickup
    self.dropoff = dropoff
    self.route = route
    self.summary = summary
    self.sequence = sequence
  }
}

/// The figures of an ended trip.
public struct TripSummary: Sendable, Equatable {
  /// Metres from `trip_started` to `arrived_destination`, along the published positions that named the trip.
  public var distance: Double
  /// Metres before `trip_started`.
  public var approach: Double
  /// `distance` and `approach` together, in metres.
  public var track: Double
  /// Seconds from `trip_started` to `arrived_destination`, or to the end of a trip that never arrived.
  public var duration: Double
  /// Seconds that the driver was stationary from `arrived_pickup` on.
  public var waiting: Double
  /// Positions that named the trip.
  public var fixes: UInt64
  /// Pauses between them that count as gaps, and the total of these in seconds.
  public var gaps: UInt64
  public var gapDuration: Double

  public init(
    distance: Double, approach: Double, track: Double, duration: Double, waiting: Double, fixes: UInt64, gaps: UInt64,
    gapDuration: Double
  ) {
    self.distance = distance
    self.approach = approach
    self.track = track
    self.duration = duration
    self.waiting = waiting
    self.fixes = fixes
    self.gaps = gaps
    self.gapDuration = gapDuration
  }
}

/// Something to notify people of: an event.
public struct Notification: Sendable, Equatable {
  /// The subject. Raw values are in journals and binary messages, and never change.
  public enum Kind: UInt8, Sendable, CaseIterable {
    case driverArriving, driverArrived, offRoute, driverOffline, driverOnline, fenceEnter, fenceExit, fenceDwell
    case hazard, speeding, message, unserved

    /// Its keyword on the wire.
    public var name: StaticString {
      switch self {
      case .driverArriving: "driver_arriving"
      case .driverArrived: "driver_arrived"
      case .offRoute: "off_route"
      case .driverOffline: "driver_offline"
      case .driverOnline: "driver_online"
      case .fenceEnter: "fence_enter"
      case .fenceExit: "fence_exit"
      case .fenceDwell: "fence_dwell"
      case .hazard: "hazard"
      case .speeding: "speeding"
      case .message: "message"
      case .unserved: "unserved"
      }
    }
  }

  /// The remaining way to the target, in a notification about a driver under way.
  public struct Leg: Sendable, Equatable {
    public var target: TripTarget
    /// Rounded to metres and seconds.
    public var distance: Double
    public var eta: Double

    public init(target: TripTarget, distance: Double, eta: Double) {
      self.target = target
      self.distance = distance
      self.eta = eta
    }
  }

  public var kind: Kind
  public var title: String
  public var body: String
  /// Written as `data: {"driverId": …, "target": …, "distance": …, "eta": …}`, without absent ones.
  public var driverID: Identifier?
  public var leg: Leg?
  /// Further members of `data`, where there is no leg.
  public var fence: FenceNotice?
  /// Further members of `data` of a posted notification, as JSON without the braces.
  public var content: String?
  /// The id by which a repeated post is recognised. Not published.
  public var messageID: MessageID?
  public var sequence: UInt64

  public init(
    kind: Kind, title: String, body: String, driverID: Identifier?, leg: Leg? = nil, fence: FenceNotice? = nil,
    content: String? = nil, messageID: MessageID? = nil, sequence: UInt64
  ) {
    self.kind = kind
    self.title = title
    self.body = body
    self.driverID = driverID
    self.leg = leg
    self.fence = fence
    self.content = content
    self.messageID = messageID
    self.sequence = sequence
  }
}

/// What a back end or ops post to a channel: the body of `POST /v1/notifications`.
public struct NotificationPost: Sendable, Equatable {
  public var channel: Channel
  public var kind: Notification.Kind
  public var title: String
  public var body: String
  /// Of `data`: the driver concerned, and the other members as JSON.
  public var driverID: Identifier?
  public var content: String?
  public var messageID: MessageID?

  public init(channel: Channel, kind: Notification.Kind, title: String, body: String) {
    self.channel = channel
    self.kind = kind
    self.title = title
    self.body = body
  }
}
