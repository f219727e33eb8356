// Messages to one session.
public import HubBytes
public import HubGeo

/// An answer to a message, or a change that concerns one session alone.
public enum Reply: Sendable, Equatable {
  case connected(Connected)
  case subscribed(Subscribed)
  case unsubscribed(Unsubscribed)
  case ack(Ack)
  case pong(Pong)
  /// Unsolicited: sent when it changes.
  case sampling(SamplingAdvice)
  case error(ErrorReply)
  indirect case result(ResultReply)
}

/// The hub's greeting (`connected`), the first message of a session.
public struct Connected: Sendable, Equatable {
  /// What the hub takes from this session.
  public struct Limits: Sendable, Equatable {
    public var maxMessageBytes: Int
    public var maxBatch: Int
    /// Messages a second; 0 for no limit.
    public var rate: Double
    public init(maxMessageBytes: Int, maxBatch: Int, rate: Double) {
      self.maxMessageBytes = maxMessageBytes
      self.maxBatch = maxBatch
      self.rate = rate
    }
  }

  /// How often a driver should send at first.
  public struct Sampling: Sendable, Equatable {
    /// Seconds between fixes.
    public var interval: Double
    /// Metres to move before another fix is worth sending.
    public var minDistance: Double
    public init(interval: Double, minDistance: Double) {
      self.interval = interval
      self.minDistance = minDistance
    }
  }

  public var sessionID: InlineText
  public var role: Role
  public var id: Identifier
  /// Seconds.
  public var heartbeatInterval: Double
  public var serverTime: Timestamp
  public var limits: Limits
  /// For drivers.
  public var sampling: Sampling?

  public init(
    sessionID: InlineText, role: Role, id: Identifier, heartbeatInterval: Double, serverTime: Timestamp,
    limits: Limits, sampling: Sampling?
  ) {
    self.sessionID = sessionID
    self.role = role
    self.id = id
    self.heartbeatInterval = heartbeatInterval
    self.serverTime = serverTime
    self.limits = limits
    self.sampling = sampling
  }
}

/// The state of a trip.
public struct TripState: Sendable, Equatable {
  public var tripID: Identifier
  public var status: TripStatus
  public var driverID: Identifier?
  /// When the last move happened, by its sender's clock.
  public var timestamp: Timestamp

  public init(tripID: Identifier, status: TripStatus, driverID: Identifier?, timestamp: Timestamp) {
    self.tripID = tripID
    self.status = status
    self.driverID = driverID
    self.timestamp = timestamp
  }
}

/// The answer to a subscription (`subscribed`), with the channel's present state.
public struct Subscribed: Sendable, Equatable {
  /// A trip, position and ETA in their present state.
  public struct Snapshot: Sendable, Equatable {
    public var trip: TripState?
    public var position: DriverLocation?
    public var eta: ETAUpdate?
    public init(trip: TripState? = nil, position: DriverLocation? = nil, eta: ETAUpdate? = nil) {
      self.trip = trip
      self.position = position
      self.eta = eta
    }
  }

  public var replyTo: MessageID
  public var channel: Channel
  /// Of an area or nearby: the client's name of its view, and the cells that it gets updates of.
  public var viewID: InlineText?
  public var cells: [GeohashCell]?
  /// The channel's newest event sequence; the events in `missed` lead up to it.
  public var sequence: UInt64
  public var epoch: InlineText
  /// True when a resume point was given and all events since then follow.
  public var recovered: Bool
  public var snapshot: Snapshot?
  /// Nothing more will come on the channel; not on the wire, since `unsubscribed` follows.
  public var isOver = false
  /// The subscriber wants no states; not on the wire, since it has asked for that.
  public var isEventsOnly = false
  /// On `stats`: the figures of the preceding seconds, oldest first.
  public var history: [HubFigures]?

  public init(
    replyTo: MessageID, channel: Channel, sequence: UInt64, epoch: InlineText, recovered: Bool, snapshot: Snapshot?
  ) {
    self.replyTo = replyTo
    self.channel = channel
    self.sequence = sequence
    self.epoch = epoch
    self.recovered = recovered
    self.snapshot = snapshot
  }
}

/// The end of a subscription (`unsubscribed`).
public struct Unsubscribed: Sendable, Equatable {
  /// Why it ended.
  public enum Reason: UInt8, Sendable, CaseIterable {
    case asked, tripEnded, grantEnded, revoked

    /// Its keyword on the wire.
    public var name: StaticString {
      switch self {
      case .asked: "asked"
      case .tripEnded: "trip_ended"
      case .grantEnded: "grant_ended"
      case .revoked: "revoked"
      }
    }
  }

  /// The answered `unsubscribe`, if any.
  public var replyTo: MessageID?
  public var channel: Channel
  /// Nil where a newer hub gave a reason that this version does not know.
  public var reason: Reason?

  public init(replyTo: MessageID?, channel: Channel, reason: Reason?) {
    self.replyTo = replyTo
    self.channel = channel
    self.reason = reason
  }

  /// Whether the client has asked for it: ends by the hub have no `replyTo`.
  public var isAsked: Bool { replyTo != nil || reason == .asked }
}

/// What an `ack` answers, and since when.
public struct AckOrigin: Sendable {
  /// The message's type.
  public enum Kind: UInt8, Sendable, CaseIterable {
    case driverStatus, locationBatch, tripStatus, tripChange, offerDecline

    /// The type's name in messages.
    public var name: StaticString {
      switch self {
      case .driverStatus: "driver_status"
      case .locationBatch: "location_batch"
      case .tripStatus: "trip_status"
      case .tripChange: "trip_change"
      case .offerDecline: "offer_decline"
      }
    }
  }

  public var kind: Kind
  /// When the hub began to handle it (uptime, ns).
  public var since: Int64

  public init(_ kind: Kind, since: Int64) {
    self.kind = kind
    self.since = since
  }
}

/// The answer to a message that was accepted (`ack`).
public struct Ack: Sendable, Equatable {
  /// The outcome of a batch, fix by fix.
  public struct Batch: Sendable, Equatable {
    /// A fix that was refused: its index in the batch, from 0, and why.
    public struct Rejection: Sendable, Equatable {
      public var index: Int
      public var code: ErrorCode
      public init(index: Int, code: ErrorCode) {
        self.index = index
        self.code = code
      }
    }
    public var accepted: Int
    public var duplicates: Int
    public var rejected: [Rejection]
    public init(accepted: Int, duplicates: Int, rejected: [Rejection]) {
      self.accepted = accepted
      self.duplicates = duplicates
      self.rejected = rejected
    }
  }

  public var replyTo: MessageID
  public var batch: Batch?
  /// The trip's state, where `requested` asked for an existing trip.
  public var trip: TripState?
  /// For the hub's own figures: not sent, and ignored by `==`.
  public var origin: AckOrigin?

  public init(replyTo: MessageID, batch: Batch? = nil, trip: TripState? = nil, origin: AckOrigin? = nil) {
    self.replyTo = replyTo
    self.batch = batch
    self.trip = trip
    self.origin = origin
  }

  /// Whether both are the same on the wire: `origin` is not compared.
  public static func == (one: Ack, other: Ack) -> Bool {
    one.replyTo == other.replyTo && one.batch == other.batch && one.trip == other.trip
  }
}

/// The answer to a ping (`pong`).
public struct Pong: Sendable, Equatable {
  public var replyTo: MessageID
  public var ping: Ping
  public var serverTime: Timestamp
  /// For drivers: the timestamp up to which all fixes that came are stored.
  public var storedThrough: Timestamp?

  public init(replyTo: MessageID, ping: Ping, serverTime: Timestamp, storedThrough: Timestamp?) {
    self.replyTo = replyTo
    self.ping = ping
    self.serverTime = serverTime
    self.storedThrough = storedThrough
  }
}

/// The refusal of a message (`error`), or what ends a session.
public struct ErrorReply: Error, Equatable {
  public var code: ErrorCode
  /// For developers: what was wrong, where, and what would be right.
  public var message: String
  public var replyTo: MessageID?
  /// Seconds.
  public var retryAfter: Double?
  /// Written as `details: {"status": …}`: the trip's status, with `invalid_transition`.
  public var status: TripStatus?
  /// Whether the sender has reached a limit of its own: over HTTP 429 instead of a full hub's 503. Not on the wire.
  public var isOwnLimit = false
  /// Whether a newer hub sent an unknown code, which counts as `internal`. Not on the wire, and ignored by `==`.
  public var hasNewerCode = false

  public init(
    code: ErrorCode, message: String, replyTo: MessageID? = nil, retryAfter: Double? = nil, status: TripStatus? = nil
  ) {
    self.code = code
    self.message = message
    self.replyTo = replyTo
    self.retryAfter = retryAfter
    self.status = status
  }

  /// Whether both are the same to a client of this version.
  public static func == (one: ErrorReply, other: ErrorReply) -> Bool {
    one.code == other.code && one.message == other.message && one.replyTo == other.replyTo
      && one.retryAfter == other.retryAfter && one.status == other.status && one.isOwnLimit == other.isOwnLimit
  }
}
