// Offers: what the nearest drivers that fit are asked, and what is asked for (protocol/offers.md).
public import HubBytes
public import HubGeo

/// Which drivers are asked for a trip, how many at a time, and for how long: `offer` of a request for a trip, and the
/// body of `POST /v1/trips/{id}/offers`.
public struct OfferCriteria: Sendable, Equatable {
  public var vehicleType: InlineText?
  /// A driver has all of these.
  public var tags: [InlineText] = []
  /// Metres round the pickup.
  public var radiusMeters = OfferCriteria.defaultRadiusMeters
  /// Drivers that are asked at a time.
  public var atOnce = OfferCriteria.defaultAtOnce
  /// Seconds that each has.
  public var seconds = OfferCriteria.defaultSeconds
  /// Drivers that are asked in all.
  public var limit = OfferCriteria.defaultLimit

  public init() {}
}

/// A trip that is offered to a driver, or is no more: an event on the driver's channel.
public struct Offer: Sendable, Equatable {
  public var tripID: Identifier
  public var state: State
  public var sequence: UInt64

  public enum State: Sendable, Equatable {
    case made(Terms)
    case withdrawn(Withdrawal)
  }

  /// What a driver is told of a trip to decide by.
  public struct Terms: Sendable, Equatable {
    public var pickup: Coordinate
    public var dropoff: Coordinate?
    /// Whole metres from the driver's position to the pickup, as the crow flies.
    public var distance: Double
    /// Whole seconds until the driver would be there.
    public var eta: Double
    /// By the hub's wall clock.
    public var expires: Timestamp

    public init(pickup: Coordinate, dropoff: Coordinate?, distance: Double, eta: Double, expires: Timestamp) {
      self.pickup = pickup
      self.dropoff = dropoff
      self.distance = distance
      self.eta = eta
      self.expires = expires
    }
  }

  /// Why an offer holds no more. Each that is made ends by one of these, or by its driver's `accepted`.
  public enum Withdrawal: UInt8, Sendable, CaseIterable {
    /// Another driver has the trip.
    case taken
    case cancelled
    /// The driver's time has passed.
    case expired
    case declined
    /// The driver went offline, said that it is not available, or is on another trip.
    case unavailable
    /// Who has asked for the offers has ended them.
    case stopped

    public var name: StaticString {
      switch self {
      case .taken: "taken"
      case .cancelled: "cancelled"
      case .expired: "expired"
      case .declined: "declined"
      case .unavailable: "unavailable"
      case .stopped: "stopped"
      }
    }
  }

  public init(tripID: Identifier, state: State, sequence: UInt64) {
    self.tripID = tripID
    self.state = state
    self.sequence = sequence
  }

  /// The message's type.
  public var type: StaticString {
    switch state {
    case .made: "offer"
    case .withdrawn: "offer_withdrawn"
    }
  }
}

/// A driver does not want the trip that it is offered.
public struct OfferDecline: Sendable, Equatable {
  public var tripID: Identifier

  public init(tripID: Identifier) { self.tripID = tripID }
}

/// The offers of a trip as they stand: the body of `GET /v1/trips/{id}/offers`.
public struct OffersReport: Sendable, Equatable {
  /// How a search for a driver ends.
  public enum End: UInt8, Sendable, CaseIterable {
    case taken, unserved, cancelled, stopped

    public var name: StaticString {
      switch self {
      case .taken: "taken"
      case .unserved: "unserved"
      case .cancelled: "cancelled"
      case .stopped: "stopped"
      }
    }
  }

  /// One driver that was asked.
  public struct Asked: Sendable, Equatable {
    public enum Answer: Sendable, Equatable {
      case open
      case accepted
      case withdrawn(Offer.Withdrawal)

      public var name: StaticString {
        switch self {
        case .open: "open"
        case .accepted: "accepted"
        case .withdrawn(let reason): reason.name
        }
      }
    }

    public var driverID: Identifier
    public var offered: Timestamp
    public var expires: Timestamp
    public var answer: Answer

    public init(driverID: Identifier, offered: Timestamp, expires: Timestamp, answer: Answer) {
      self.driverID = driverID
      self.offered = offered
      self.expires = expires
      self.answer = answer
    }
  }

  public var tripID: Identifier
  public var criteria: OfferCriteria
  public var began: Timestamp
  /// Nil while it goes on.
  public var end: End?
  /// In the order in which they were asked.
  public var asked: [Asked]

  public init(tripID: Identifier, criteria: OfferCriteria, began: Timestamp, end: End?, asked: [Asked]) {
    self.tripID = tripID
    self.criteria = criteria
    self.began = began
    self.end = end
    self.asked = asked
  }
}
