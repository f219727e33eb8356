// Messages between a hub and the outlet of the other hubs of its cluster. A hub without a cluster has no such outlet.
public import HubBytes
public import HubGeo
public import HubMessages

/// A request that only the hub of a trip or a driver can handle.
public enum TripRequest: Sendable {
  case move(TripStatusInput)
  case change(TripChangeInput)
  /// A move over HTTP, whose answer is the trip in its new state.
  case begin(SessionRef, TripStatusReport, by: Actor)
  /// A change over HTTP, whose answer is the changed trip. A repetition is recognised by its `key`.
  case alter(SessionRef, TripChange, by: Actor, key: MessageID?)
  case decline(SessionRef, MessageID, OfferDecline, by: Identifier)
  /// A driver's status, not from one of its own sessions.
  case status(SessionRef, MessageID, DriverStatusReport, of: Identifier, isKeyed: Bool)
  /// A driver's fixes, posted.
  case batch(BatchInput, of: Identifier)
  case offers(SessionRef, Identifier, OffersQuestion, by: Actor)
  case shares(SessionRef, Identifier, TripShareQuestion, by: Actor)
  /// From one hub to another.
  case offer(SessionRef, SentOffer)
  case notify(SessionRef, NotificationPost)

  /// Nil for a question that does not go to the trip's hub.
  init?(_ question: TripQuestion, of session: SessionRef) {
    switch question {
    case .begin(let report, by: let actor?): self = .begin(session, report, by: actor)
    case .change(let change, let actor, let key): self = .alter(session, change, by: actor, key: key)
    case .offers(let trip, let question, let actor): self = .offers(session, trip, question, by: actor)
    case .shares(let trip, let question, let actor): self = .shares(session, trip, question, by: actor)
    case .begin, .show, .list: return nil
    }
  }

  /// Nil for a channel that every hub has itself.
  init?(_ post: NotificationPost, of session: SessionRef) {
    switch post.channel {
    case .trip, .driver: self = .notify(session, post)
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats: return nil
    }
  }

  /// The session that asked, which is answered.
  public var session: SessionRef {
    get {
      switch self {
      case .move(let input): input.session
      case .change(let input): input.session
      case .batch(let input, _): input.session
      case .begin(let session, _, _), .alter(let session, _, _, _), .decline(let session, _, _, _),
        .status(let session, _, _, _, _), .offers(let session, _, _, _), .shares(let session, _, _, _),
        .offer(let session, _), .notify(let session, _):
        session
      }
    }
    set {
      switch self {
      case .move(var input):
        input.session = newValue
        self = .move(input)
      case .change(var input):
        input.session = newValue
        self = .change(input)
      case .batch(var input, let driver):
        input.session = newValue
        self = .batch(input, of: driver)
      case .begin(_, let report, let actor): self = .begin(newValue, report, by: actor)
      case .alter(_, let change, let actor, let key): self = .alter(newValue, change, by: actor, key: key)
      case .decline(_, let id, let decline, let driver): self = .decline(newValue, id, decline, by: driver)
      case .status(_, let id, let report, let driver, let isKeyed):
        self = .status(newValue, id, report, of: driver, isKeyed: isKeyed)
      case .offers(_, let trip, let question, let actor): self = .offers(newValue, trip, question, by: actor)
      case .shares(_, let trip, let question, let actor): self = .shares(newValue, trip, question, by: actor)
      case .offer(_, let offer): self = .offer(newValue, offer)
      case .notify(_, let post): self = .notify(newValue, post)
      }
    }
  }

  /// The message's id; 0 for a request over HTTP.
  public var messageID: MessageID {
    switch self {
    case .move(let input): input.messageID
    case .change(let input): input.messageID
    case .batch(let input, _): input.messageID
    case .decline(_, let messageID, _, _), .status(_, let messageID, _, _, _): messageID
    case .alter(_, _, _, key: let key?): key
    case .begin, .alter, .offers, .shares, .offer, .notify: MessageID(number: 0)
    }
  }

  /// Whether its receiver recognises a repetition, so that sending it again undoes nothing that was done since.
  public var isRecognised: Bool {
    switch self {
    case .offers(_, _, .begin(_, key: nil), _), .offers(_, _, .stop, _): false
    case .move, .change, .begin, .alter, .decline, .status, .batch, .offers, .shares, .offer, .notify: true
    }
  }

  /// How many fixes it carries.
  public var fixCount: Int { if case .batch(let input, _) = self { input.batch.fixes.count } else { 0 } }

  /// On whose behalf it is made.
  public var actor: Actor {
    switch self {
    case .move(let input): input.actor
    case .change(let input): input.actor
    case .begin(_, _, let actor), .alter(_, _, let actor, _), .offers(_, _, _, let actor),
      .shares(_, _, _, let actor):
      actor
    case .decline(_, _, _, let driver), .status(_, _, _, let driver, _), .batch(_, let driver):
      Actor(role: .driver, id: driver)
    case .offer, .notify: .cluster
    }
  }

  /// The channel of the trip or driver whose hub gets the request.
  public var receiver: Channel {
    switch self {
    case .move(let input): .trip(input.report.tripID)
    case .change(let input): .trip(input.change.tripID)
    case .begin(_, let report, _): .trip(report.tripID)
    case .alter(_, let change, _, _): .trip(change.tripID)
    case .decline(_, _, let decline, _): .trip(decline.tripID)
    case .status(_, _, _, let driver, _), .batch(_, let driver): .driver(driver)
    case .offers(_, let trip, _, _), .shares(_, let trip, _, _): .trip(trip)
    case .offer(_, let offer): offer.receiver
    case .notify(_, let post): post.channel
    }
  }

  /// The report of a trip that a request may begin; nil for a change of an existing one, and where its sender has no
  /// right to it.
  public var beginning: TripStatusReport? {
    let report: TripStatusReport
    switch self {
    case .move(let input) where input.mayRequest: report = input.report
    case .begin(_, let asked, _): report = asked
    case .move, .change, .alter, .decline, .status, .batch, .offers, .shares, .offer, .notify: return nil
    }
    return report.status == .requested ? report : nil
  }
}

/// Which cluster-wide channels have subscribers at a hub.
public struct WatchedFeeds: Sendable, Equatable {
  public var stats: Bool
  public var fleet: Bool

  public init(stats: Bool = false, fleet: Bool = false) { (self.stats, self.fleet) = (stats, fleet) }
}

/// A question about families of tokens; each family is at the hub that made it.
public struct CredentialRequest: Sendable {
  public var session: SessionRef
  public var question: CredentialQuestion
  public var source: AuditSource?

  public init(_ session: SessionRef, _ question: CredentialQuestion, _ source: AuditSource?) {
    self.session = session
    self.question = question
    self.source = source
  }
}

/// From the hub to its cluster.
public enum ClusterOutput: Sendable {
  /// The `replyTo` of an unsolicited `subscribed`: a channel has another owner, or other numbers.
  package static let unsolicited = MessageID(number: 0)
  /// Cells of more characters than this (4.9 by 4.9 km) are watched through the larger cell.
  package static var finestWatched: Int { 5 }

  /// A session wants a channel whose trip or driver is not here. Answered by `ClusterInput.subscribeHere`, `.followed`
  /// or `.refused`.
  case subscribe(SubscribeInput)
  /// A request for a trip that is not here. Answered by `ClusterInput.tripRequestHere` or `.replied`.
  case tripRequest(TripRequest)
  /// A question to all hubs. Answered by `ClusterInput.answered`.
  case ask(FleetQuestion)
  /// A question to the hub of a family, or to all. Answered by `ClusterInput.credentials`.
  case credentials(CredentialRequest)
  /// Another hub's session wants a channel whose trip or driver is not here.
  case notHere(SessionRef)
  /// A trip, or a driver, is here from now on. `seizes`: even if another hub has the driver, which then loses it.
  /// `arrival`: how often it has come here, which an answer (`ClusterInput.driverElsewhere`) names; it wraps.
  /// With `.trips` the hub counts the events of all hubs' trips, which are to be sent to it.
  case owned(Channel, seizes: Bool, arrival: UInt16 = 0)
  /// This hub has forgotten a trip or a driver.
  case released(Channel)
  /// A request that would have begun a trip, or the tokens of a key (`TokenFamily.word`), was refused for want of room,
  /// before anything was done: any hub may begin them.
  case tripRefused(Identifier)
  case tokensRefused(InlineText)
  /// Sessions of this hub are subscribed to a channel that no hub has: another one may have it next.
  case waiting(Channel)
  /// Follows a channel at its owner; with `eventsOnly`, without positions and ETAs. The point is this hub's newest
  /// event where sessions have this hub's numbers, else nil.
  case follow(Channel, ResumePoint?, eventsOnly: Bool)
  /// The hub has handled an owner's answer to a session (`ClusterInput.followed`). Outputs from before this one, such
  /// as `unfollowed`, do not take that session into account.
  case followed(Channel)
  /// This hub does not follow the channel: no session is subscribed to it any more, or it is here, or nowhere.
  case unfollowed(Channel)
  /// A driver's hub, or the hub that numbers all trips' events, has changed, or the driver is forgotten: followers from
  /// other hubs look for it again.
  case moved(ChannelHandle, Channel)
  /// Sessions of this hub begin to watch in a cell of at most `finestWatched` characters, or none does any more.
  case watched(GeohashCell)
  case unwatched(GeohashCell)
  /// The hub's figures of the last second. Answered by `ClusterInput.figures`.
  case second(HubFigures, watched: WatchedFeeds)
}

/// From the cluster to the hub.
public enum ClusterInput: Sendable {
  /// No hub has the channel's trip or driver: the session is subscribed here, where it may begin.
  case subscribeHere(SubscribeInput)
  /// No other hub has the trip: the request is handled here.
  case tripRequestHere(TripRequest)
  /// The answer of the trip's or driver's hub, or that none can be reached.
  case replied(SessionRef, HubOutput)
  /// The merged answer of the hubs that were asked.
  case answered(FleetQuestion, FleetAnswer)
  /// The answer of other hubs; nil where this hub has to answer, since no other can.
  case credentials(CredentialRequest, CredentialAnswer?)
  /// The channel's owner has answered a session; further publications are relayed.
  case followed(SubscribeInput, Subscribed, missed: [Publication], isParty: Bool)
  case refused(SubscribeInput, ErrorReply)
  /// No hub has a followed channel's trip or driver (`isKnown`), or the ledger cannot be reached. `isDenied`: the owner
  /// that the ledger named has answered that it does not have it.
  case unowned(Channel, isKnown: Bool, isDenied: Bool)
  /// The owner of a followed channel has answered again, after a gap or as a new owner. `missed` leads up to the answer
  /// where that is `recovered`.
  case resumed(Subscribed, missed: [Publication])
  /// A publication of a followed channel's owner that is no position; or, where this hub numbers them, an event of
  /// another hub's trip.
  case relayed(Publication)
  /// Positions of followed channels' owners, in order: many together, since they are frequent.
  case relayedPositions([PublishedPosition])
  /// The owner's trip has ended, or the channel cannot be followed any more.
  case ended(Channel, Unsubscribed.Reason)
  case shareEnded(Channel, of: Identifier)
  case claimed(Channel, by: Identifier)
  /// Another hub has a channel's trip or driver, which sessions waited for or no hub seemed to have.
  case begunElsewhere(Channel)
  /// The driver is at another hub: its session here ends, if it has not come here since that `arrival`.
  case driverElsewhere(Identifier, arrival: UInt16)
  /// This hub counts the events of all hubs' trips from now on, anew where some may be missing; or another one does.
  case numberTrips(Bool)
  /// Drivers of the hub `from` in a cell. `endsSnapshot`: the last part of a snapshot.
  case area(AreaUpdate, from: UInt32, endsSnapshot: Bool)
  /// Another hub's drivers are not known any more.
  case areasLost(of: UInt32)
  /// Figures of all hubs for the last second; with `isHistory`, for those before.
  case figures([HubFigures], isHistory: Bool)
}
