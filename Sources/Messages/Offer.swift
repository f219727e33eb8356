// Offers of trips to the nearest fitting drivers, and their criteria (protocol/offers.md).
public import HubBytes
public import HubGeo

/// Which drivers are asked for a trip, how many at a time, and for how long: `offer` of a request for a trip, and the
/// body of `POST /v1/trips/{id}/offers`.
public struct OfferCriteria: Sendable, Equatable {
  public var vehicleType: InlineText?
  /// A driver must have all of these.
  public var tags: [InlineText] = []
  /// Metres round the pickup.
  public var radiusMeters = OfferCriteria.defaultRadiusMeters
  /// Drivers that are asked at a time.
  public var atOnce = OfferCriteria.defaultAtOnce
  /// Seconds that each driver has to answer.
  public var seconds = OfferCriteria.defaultSeconds
  /// Drivers that are asked in all.
  public var limit = OfferCriteria.defaultLimit

  public init() {}
}

/// An offer of a trip to a driver, or its withdrawal: an event on the driver's channel.
public struct Offer: Sendable, Equatable {
  public var tripID: Identifier
  public var state: State
  public var sequence: UInt64

  /// Whether the driver can still accept.
  public enum State: Sendable, Equatable {
    case made(Terms)
    case withdrawn(Withdrawal)
  }

  /// The terms of a trip for the driver's decision.
  public struct Terms: Sendable, Equatable {
    public var pickup: Coordinate
    public var dropoff: Coordinate?
    /// Great-circle metres (rounded to 1 m) from the driver's position to the pickup.
    public var distance: Double
    /// Seconds until the driver would be at the pickup, rounded.
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

  /// Why an offer was withdrawn. Every offer ends by one of these, or by its driver's `accepted`.
  public enum Withdrawal: UInt8, Sendable, CaseIterable {
    /// Another driver has accepted.
    case taken
    case cancelled
    /// The driver's time to answer is over.
    case expired
    case declined
    /// The driver went offline, became unavailable, or is on another trip.
    case unavailable
    /// Ops have stopped the search for a driver.
    case stopped

    /// Its keyword on the wire.
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

/// A driver declines an offered trip.
public struct OfferDecline: Sendable, Equatable {
  public var tripID: Identifier

  public init(tripID: Identifier) { self.tripID = tripID }
}

/// The state of a trip's offers: the body of `GET /v1/trips/{id}/offers`.
public struct OffersReport: Sendable, Equatable {
  /// How a search for a driver ends.
  public enum End: UInt8, Sendable, CaseIterable {
    case taken, unserved, cancelled, stopped

    /// Its keyword on the wire.
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
    /// The outcome of the offer to this driver, or that it is still open.
    public enum Answer: Sendable, Equatable {
      case open
      case accepted
      case withdrawn(Offer.Withdrawal)

      /// Its keyword on the wire.
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
  /// Nil while it is running.
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
