// Clients' messages after reading and checking.
public import HubBytes
public import HubGeo

/// A message from a client, with its envelope.
public struct ClientEnvelope: Sendable, Equatable {
  public var messageID: MessageID
  /// The sender's clock at sending.
  public var timestamp: Timestamp
  public var message: ClientMessage

  public init(messageID: MessageID, timestamp: Timestamp, message: ClientMessage) {
    self.messageID = messageID
    self.timestamp = timestamp
    self.message = message
  }
}

/// A `location_update` with its envelope.
public struct UpdateEnvelope: Sendable, Equatable, BitwiseCopyable {
  public var messageID: MessageID
  /// The sender's clock at sending.
  public var timestamp: Timestamp
  public var update: LocationUpdate

  public init(messageID: MessageID, timestamp: Timestamp, update: LocationUpdate) {
    self.messageID = messageID
    self.timestamp = timestamp
    self.update = update
  }

  /// An empty one, to read a message into.
  public init() {
    let nowhere = Coordinate(clampingLatitude: 0, wrappingLongitude: 0)
    self.init(
      messageID: MessageID(checked: InlineText()), timestamp: Timestamp(milliseconds: 0),
      update: LocationUpdate(fix: Fix(coordinate: nowhere, timestamp: Timestamp(milliseconds: 0))))
  }
}

/// Every client message. All cases but the frequent `locationUpdate` are `indirect`, so it alone sets the size.
public enum ClientMessage: Sendable, Equatable {
  case locationUpdate(LocationUpdate)
  indirect case locationBatch(LocationBatch)
  indirect case driverStatus(DriverStatusReport)
  indirect case tripStatus(TripStatusReport)
  indirect case tripChange(TripChange)
  indirect case offerDecline(OfferDecline)
  indirect case subscribe(Subscribe)
  indirect case unsubscribe(Unsubscribe)
  indirect case ping(Ping)
  indirect case refresh(Refresh)
  indirect case query(QueryRequest)
}

/// A driver's live fix (`location_update`), perhaps on a trip.
public struct LocationUpdate: Sendable, Equatable, BitwiseCopyable {
  public var tripID: Identifier?
  public var fix: Fix

  public init(tripID: Identifier? = nil, fix: Fix) {
    self.tripID = tripID
    self.fix = fix
  }
}

/// 1–500 fixes, oldest first. An invalid fix keeps its index with the reason, so that the rest is accepted.
public struct LocationBatch: Sendable, Equatable {
  public var tripID: Identifier?
  public var fixes: [Result<Fix, ErrorCode>]

  public init(tripID: Identifier? = nil, fixes: [Result<Fix, ErrorCode>]) {
    self.tripID = tripID
    self.fixes = fixes
  }
}

/// A driver's availability (`driver_status`), and what the vehicle is.
public struct DriverStatusReport: Sendable, Equatable {
  /// Never `onTrip`.
  public var status: DriverStatus
  /// Nil leaves the earlier value; an empty list of tags removes all.
  public var vehicleType: InlineText?
  public var tags: [InlineText]?

  public init(status: DriverStatus, vehicleType: InlineText? = nil, tags: [InlineText]? = nil) {
    self.status = status
    self.vehicleType = vehicleType
    self.tags = tags
  }
}

/// A trip's move to a status (`trip_status`); the first one, `requested`, makes the trip.
public struct TripStatusReport: Sendable, Equatable {
  public var tripID: Identifier
  public var status: TripStatus
  public var timestamp: Timestamp
  public var location: Coordinate?
  /// The status that the sender expects; the move is refused if the trip has another.
  public var expectedStatus: TripStatus?
  /// Present with `requested`, and with `accepted` where ops assign a driver.
  public var driverID: Identifier?
  // Only with `requested`.
  public var pickup: Coordinate?
  public var dropoff: Coordinate?
  public var riderID: Identifier?
  public var route: Route?
  /// If present, the hub offers the trip to drivers at once, by these criteria.
  public var offer: OfferCriteria?

  public init(
    tripID: Identifier, status: TripStatus, timestamp: Timestamp, location: Coordinate? = nil,
    expectedStatus: TripStatus? = nil, pickup: Coordinate? = nil, dropoff: Coordinate? = nil,
    driverID: Identifier? = nil, riderID: Identifier? = nil, route: Route? = nil
  ) {
    self.tripID = tripID
    self.status = status
    self.timestamp = timestamp
    self.location = location
    self.expectedStatus = expectedStatus
    self.pickup = pickup
    self.dropoff = dropoff
    self.driverID = driverID
    self.riderID = riderID
    self.route = route
  }
}

/// Changes of an existing trip; nil for unchanged. At least one of the three.
public struct TripChange: Sendable, Equatable {
  public var tripID: Identifier
  public var pickup: Coordinate?
  public var dropoff: Coordinate?
  /// The route from the new pickup to the new dropoff.
  public var route: Route?

  public init(tripID: Identifier, pickup: Coordinate? = nil, dropoff: Coordinate? = nil, route: Route? = nil) {
    self.tripID = tripID
    self.pickup = pickup
    self.dropoff = dropoff
    self.route = route
  }

  /// Whether it changes nothing.
  public var isEmpty: Bool { pickup == nil && dropoff == nil && route == nil }
}

/// The event from which a subscriber resumes.
public struct ResumePoint: Sendable, Equatable {
  /// The last sequence that the client saw on the channel.
  public var since: UInt64
  /// The epoch of the sequence: the history of numbers that it belongs to.
  public var epoch: InlineText

  public init(since: UInt64, epoch: InlineText) {
    self.since = since
    self.epoch = epoch
  }
}

/// The request to follow a channel (`subscribe`).
public struct Subscribe: Sendable, Equatable {
  public var channel: Channel
  public var resume: ResumePoint?
  /// The client's name of its view of the map: subscribing again with the same one moves it. 1–64 bytes.
  public var viewID: InlineText?
  /// Characters of the geohashes of a view's cells, within `Channel.areaPrecisions`; nil leaves it to the hub.
  public var precision: Int?
  /// Whether the subscriber wants only events: no positions, no ETAs.
  public var isEventsOnly: Bool

  public init(
    channel: Channel, resume: ResumePoint? = nil, viewID: InlineText? = nil, precision: Int? = nil,
    isEventsOnly: Bool = false
  ) {
    self.channel = channel
    self.resume = resume
    self.viewID = viewID
    self.precision = precision
    self.isEventsOnly = isEventsOnly
  }
}

extension Subscribe {
  /// Checks the number of characters of a view's cells; throws where it is out of range.
  static func precision(_ characters: Int) throws(ValidationError) -> Int {
    guard Channel.areaPrecisions.contains(characters) else {
      throw ValidationError(.precision, "expected a whole number from 3 to 8")
    }
    return characters
  }
}

/// The subscription to end.
public enum Unsubscribe: Sendable, Equatable {
  case channel(Channel)
  case view(InlineText)
}

/// A new token for the session that sends it, for the same `sub` and role.
public struct Refresh: Sendable, Equatable {
  /// 1–8,192 bytes, not checked here.
  public var token: String

  public init(token: String) { self.token = token }
}

/// A ping; its payload is echoed in the pong, so its JSON text is kept unchanged.
public struct Ping: Sendable, Equatable {
  /// The members of the payload object without its braces, or nil when the payload is not an object or is empty.
  /// Members that the pong sets itself (replyTo, serverTime, storedThrough) are left out.
  public var members: [UInt8]?

  public init(members: [UInt8]? = nil) { self.members = members }

  /// Throws for a ping whose members take more than 4,096 bytes.
  static func check(_ bytes: Int) throws(ValidationError) {
    if bytes > maximumBytes { throw ValidationError(.payload, "expected at most 4,096 bytes of members") }
  }
}
