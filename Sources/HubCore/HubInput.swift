// Inputs of the hub: values that a loop made from checked messages. The hub has no sockets and no clock.
public import HubBytes
import HubGeo
public import HubMessages

/// A session: its outlet, its slot there, and the slot's generation, by which a late input of a closed session is
/// recognised.
public struct SessionRef: Sendable, Hashable, BitwiseCopyable {
  public var outlet: UInt32
  public var slot: UInt32
  public var generation: UInt32

  public init(outlet: UInt32, slot: UInt32, generation: UInt32) {
    self.outlet = outlet
    self.slot = slot
    self.generation = generation
  }

  /// For inputs without a session, which are not answered.
  package static let nobody = SessionRef(outlet: .max, slot: 0, generation: 0)
  package var isNobody: Bool { outlet == .max }
}

/// The identity of a request, which decides its rights on a trip.
public struct Actor: Sendable, Equatable {
  public var role: Role
  public var id: Identifier

  public init(role: Role, id: Identifier) {
    self.role = role
    self.id = id
  }

  /// It holds a link to one trip, and no token of its own.
  var isShareHolder: Bool { role == .rider && TripShare.isHolder(id) }

  /// A hash of the identity in tables of the hub; seeded, so that nobody can choose to collide with another.
  func hashValue(seed: UInt64) -> UInt64 { id.text.hashValue(seed: seed ^ UInt64(role.rawValue)) }
}

/// One `location_update` of a driver's session. A loop keeps one of these, into which it reads each message, so that
/// the message is copied only once.
public struct FixInput: Sendable, BitwiseCopyable {
  public var session: SessionRef
  public var received: Moment
  /// Its id and its fix; the sender's clock when it sent, which with `received` bounds the session's clock offset.
  public var message: UpdateEnvelope
  /// False when the session's token does not name the trip; then only a trip's own driver may use it.
  public var tripIsGranted: Bool

  public init(
    session: SessionRef, messageID: MessageID, sent: Timestamp, received: Moment, update: LocationUpdate,
    tripIsGranted: Bool
  ) {
    self.session = session
    self.received = received
    message = UpdateEnvelope(messageID: messageID, timestamp: sent, update: update)
    self.tripIsGranted = tripIsGranted
  }

  /// An empty one, to read a message into.
  public init() {
    session = SessionRef(outlet: 0, slot: 0, generation: 0)
    received = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 0))
    message = UpdateEnvelope()
    tripIsGranted = false
  }
}

/// One `location_batch`, from a session or over HTTP (then the answer goes to the requesting connection).
public struct BatchInput: Sendable {
  public var session: SessionRef
  /// Set over HTTP, where no session of the driver exists.
  public var driverID: Identifier?
  public var messageID: MessageID
  public var sent: Timestamp
  public var received: Moment
  public var batch: LocationBatch
  public var tripIsGranted: Bool
  /// Where the batch names no trip, its fixes belong to the driver's only active trip, if there is exactly one.
  public var takesCurrentTrip = false
  /// The batch names no trip, and is of the driver's only one.
  var isOfCurrentTrip: Bool { takesCurrentTrip && batch.tripID == nil }
  /// The app of a request in its own format; else nil.
  public var phone: PhoneFormat?
  /// The hub that had the driver has failed: this one takes the driver over.
  public var seizesDriver = false

  public init(
    session: SessionRef, driverID: Identifier?, messageID: MessageID, sent: Timestamp, received: Moment,
    batch: LocationBatch, tripIsGranted: Bool
  ) {
    self.session = session
    self.driverID = driverID
    self.messageID = messageID
    self.sent = sent
    self.received = received
    self.batch = batch
    self.tripIsGranted = tripIsGranted
  }
}

/// One `trip_status`.
public struct TripStatusInput: Sendable {
  public var session: SessionRef
  public var actor: Actor
  public var messageID: MessageID
  public var report: TripStatusReport
  public var tripIsGranted: Bool

  public init(
    session: SessionRef, actor: Actor, messageID: MessageID, report: TripStatusReport, tripIsGranted: Bool
  ) {
    self.session = session
    self.actor = actor
    self.messageID = messageID
    self.report = report
    self.tripIsGranted = tripIsGranted
  }
}

/// One `trip_change`.
public struct TripChangeInput: Sendable {
  public var session: SessionRef
  public var actor: Actor
  public var messageID: MessageID
  /// The sender's clock when it sent.
  public var timestamp: Timestamp
  public var change: TripChange

  public init(session: SessionRef, actor: Actor, messageID: MessageID, timestamp: Timestamp, change: TripChange) {
    self.session = session
    self.actor = actor
    self.messageID = messageID
    self.timestamp = timestamp
    self.change = change
  }
}

/// How far a session's credential opens a channel by itself. The parties of a trip, and whether it has ended, only the
/// hub knows.
public enum ChannelGrant: UInt8, Sendable {
  /// A token names it, or the role may see all of its kind.
  case granted
  /// A trip's, for a driver with a token for development: while the trip has no other driver.
  case whileUnclaimed
  /// A trip's, for the trip's own driver and rider.
  case onlyForParties
}

/// One `subscribe`.
public struct SubscribeInput: Sendable {
  public var session: SessionRef
  public var actor: Actor
  public var messageID: MessageID
  public var request: Subscribe
  public var grant: ChannelGrant

  public init(session: SessionRef, actor: Actor, messageID: MessageID, request: Subscribe, grant: ChannelGrant) {
    self.session = session
    self.actor = actor
    self.messageID = messageID
    self.request = request
    self.grant = grant
  }
}

/// A query over HTTP or the socket.
public enum HubQuery: Sendable {
  case driver(Identifier)
  /// `by`: the identity whose share of running queries it counts for.
  case drivers(DriverSearch, Audience, by: Actor)
  /// A page of all drivers, for ops.
  case list(DriverListQuery)
}

/// The audience of an answer.
public enum Audience: UInt8, Sendable, CaseIterable {
  case ops
  /// They see only what `PublicAudience` shows.
  case riders
}

/// The inputs of a turn from one outlet, in order: fixes separately, the others among them.
public typealias HubInputs = MixedList<FixInput, HubInput>

/// All inputs of the hub. All but the frequent cases are `indirect`.
public enum HubInput: Sendable {
  case fix(FixInput)
  indirect case batch(BatchInput)
  /// A driver wants to connect; answered by `.admitted`, `.conflict` or `.full`, before its upgrade is. `client` is the
  /// same for connections with the same credential and address, and 0 where that is unknown.
  case driverConnecting(SessionRef, Identifier, client: UInt32 = 0)
  case driverDisconnected(SessionRef)
  /// What a driver's credential states of its vehicle: after the driver's admission, and with each refreshed token.
  indirect case vehicle(Identifier, VehicleClaims)
  /// An outlet has resumed after a stall: what its drivers sent meanwhile is still to be read.
  case loopStalled
  /// `of`: the driver, where no session of it sends this. `isKeyed`: a repetition with the same id changes nothing.
  indirect case driverStatus(
    SessionRef, MessageID, DriverStatusReport, of: Identifier? = nil, isKeyed: Bool = false)
  indirect case tripStatus(TripStatusInput)
  indirect case tripChange(TripChangeInput)
  /// `by`: the driver of the session or request.
  indirect case offerDecline(SessionRef, MessageID, OfferDecline, by: Identifier)
  /// An offer, its end or a refusal, between a trip's hub and its driver's.
  indirect case offer(SessionRef, SentOffer)
  /// `replyTo` is the message's id; nil over HTTP.
  indirect case trips(SessionRef, TripQuestion, replyTo: MessageID? = nil)
  indirect case subscribe(SubscribeInput)
  indirect case unsubscribe(SessionRef, MessageID, Channel)
  /// An outlet removed one subscription to a channel; the hub counts them.
  case released(outlet: UInt32, ChannelHandle)
  /// A session begins to watch cells, or has fallen behind in them: it needs snapshots.
  indirect case areaSnapshots(SessionRef, [ChannelHandle])
  /// A session stops watching a part of the map. Its outlet knows the cells; the hub answers in order with its output.
  indirect case leaveView(SessionRef, MessageID, Unsubscribe)
  /// Asks, after a change of the session's grants, for the name of a subscribed channel and whether the session is a
  /// party of its trip.
  indirect case name(SessionRef, Actor, ChannelHandle)
  /// From ops, over HTTP; answered by `.notified`.
  indirect case notify(SessionRef, NotificationPost)
  /// From ops, over HTTP.
  indirect case fences(SessionRef, FenceQuestion)
  /// Over HTTP, or from other hubs, without an audit entry; answered by `.credentials`.
  indirect case credentials(SessionRef, CredentialQuestion, AuditSource?)
  /// A request about tokens that was refused before it came to the hub.
  indirect case audit(AuditEntry)
  /// `replyTo` is the message's id; nil over HTTP.
  indirect case query(SessionRef, HubQuery, replyTo: MessageID? = nil)
  /// A driver's ping: its pong says what is stored, so it is handled behind the fixes that came before it. `of`: as
  /// with `driverStatus`.
  indirect case ping(SessionRef, MessageID, Ping, of: Identifier? = nil)
  /// The figures of the hub's process for the last second, for the channel `stats`.
  indirect case figures(HubFigures)
  /// The answer to a `HistoryLookup`: the times that were found, ascending.
  indirect case knownFixes(ticket: UInt64, [Int64])
  /// From other hubs of the cluster.
  indirect case cluster(ClusterInput)
}

extension HubInput {
  /// A request as the input of the trip's hub.
  public init(_ request: TripRequest) {
    switch request {
    case .move(let input): self = .tripStatus(input)
    case .change(let input): self = .tripChange(input)
    case .begin(let session, let report, let actor): self = .trips(session, .begin(report, by: actor))
    case .alter(let session, let change, let actor, let key): self = .trips(session, .change(change, actor, key: key))
    case .decline(let session, let messageID, let decline, let driver):
      self = .offerDecline(session, messageID, decline, by: driver)
    case .status(let session, let messageID, let report, let driver, let isKeyed):
      self = .driverStatus(session, messageID, report, of: driver, isKeyed: isKeyed)
    case .batch(let input, _): self = .batch(input)
    case .offers(let session, let trip, let question, let actor):
      self = .trips(session, .offers(trip, question, actor))
    case .shares(let session, let trip, let question, let actor):
      self = .trips(session, .shares(trip, question, actor))
    case .offer(let session, let offer): self = .offer(session, offer)
    case .notify(let session, let post): self = .notify(session, post)
    }
  }

  /// A question as the input of one hub.
  public init(_ question: FleetQuestion) {
    let (session, actor, replyTo) = (question.session, question.actor, question.replyTo)
    switch question.request {
    case .query(.driver(let id)): self = .query(session, .driver(id), replyTo: replyTo)
    case .query(.drivers(let search)):
      self = .query(session, .drivers(search, question.audience, by: actor), replyTo: replyTo)
    case .query(.trip(let id)):
      self = .trips(session, .show(TripQuery(id: id, actor: actor, grant: question.grant)), replyTo: replyTo)
    case .drivers(let query): self = .query(session, .list(query), replyTo: replyTo)
    case .trips(let query): self = .trips(session, .list(query), replyTo: replyTo)
    }
  }
}
