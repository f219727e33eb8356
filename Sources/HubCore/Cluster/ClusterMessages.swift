// What a hub and the outlet that stands for the other hubs of its cluster tell each other. Without a cluster there is
// no such outlet, and none of this is sent.
public import HubGeo
public import HubMessages

/// What only the hub that has a trip, or a driver, can do.
public enum TripRequest: Sendable {
  case move(TripStatusInput)
  case change(TripChangeInput)
  /// A move over HTTP, where the answer is the trip as it is then.
  case begin(SessionRef, TripStatusReport, by: Actor)
  case alter(SessionRef, TripChange, by: Actor)
  case decline(SessionRef, MessageID, OfferDecline, by: Identifier)
  /// A driver's status, from no session of that driver.
  case status(SessionRef, MessageID, DriverStatusReport, of: Identifier, isKeyed: Bool)
  case offers(SessionRef, Identifier, OffersQuestion, by: Actor)
  case shares(SessionRef, Identifier, TripShareQuestion, by: Actor)
  /// Of one hub, for another.
  case offer(SessionRef, SentOffer)
  case notify(SessionRef, NotificationPost)

  /// Nil for what is asked of this hub alone.
  init?(_ question: TripQuestion, of session: SessionRef) {
    switch question {
    case .begin(let report, by: let actor?): self = .begin(session, report, by: actor)
    case .change(let change, let actor): self = .alter(session, change, by: actor)
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

  public var session: SessionRef {
    get {
      switch self {
      case .move(let input): input.session
      case .change(let input): input.session
      case .begin(let session, _, _), .alter(let session, _, _), .decline(let session, _, _, _),
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
      case .begin(_, let report, let actor): self = .begin(newValue, report, by: actor)
      case .alter(_, let change, let actor): self = .alter(newValue, change, by: actor)
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

  /// That of the message; 0 over HTTP, where there is none.
  public var messageID: MessageID {
    switch self {
    case .move(let input): input.messageID
    case .change(let input): input.messageID
    case .decline(_, let messageID, _, _), .status(_, let messageID, _, _, _): messageID
    case .begin, .alter, .offers, .shares, .offer, .notify: MessageID(number: 0)
    }
  }

  public var actor: Actor {
    switch self {
    case .move(let input): input.actor
    case .change(let input): input.actor
    case .begin(_, _, let actor), .alter(_, _, let actor), .offers(_, _, _, let actor), .shares(_, _, _, let actor):
      actor
    case .decline(_, _, _, let driver), .status(_, _, _, let driver, _): Actor(role: .driver, id: driver)
    case .offer, .notify: .cluster
    }
  }

  /// The channel whose hub is asked.
  public var receiver: Channel {
    switch self {
    case .move(let input): .trip(input.report.tripID)
    case .change(let input): .trip(input.change.tripID)
    case .begin(_, let report, _): .trip(report.tripID)
    case .alter(_, let change, _): .trip(change.tripID)
    case .decline(_, _, let decline, _): .trip(decline.tripID)
    case .status(_, _, _, let driver, _): .driver(driver)
    case .offers(_, let trip, _, _), .shares(_, let trip, _, _): .trip(trip)
    case .offer(_, let offer): offer.receiver
    case .notify(_, let post): post.channel
    }
  }

  /// What a trip is asked for with; nil for what changes one that is there.
  public var beginning: TripStatusReport? {
    let report: TripStatusReport
    switch self {
    case .move(let input): report = input.report
    case .begin(_, let asked, _): report = asked
    case .change, .alter, .decline, .status, .offers, .shares, .offer, .notify: return nil
    }
    return report.status == .requested ? report : nil
  }
}

/// What sessions of a hub watch of what all hubs have together.
public struct WatchedFeeds: Sendable, Equatable {
  public var stats: Bool
  public var fleet: Bool

  public init(stats: Bool = false, fleet: Bool = false) { (self.stats, self.fleet) = (stats, fleet) }
}

/// A question about families of tokens, which are each at the hub that made it.
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

/// What the hub tells its cluster.
public enum ClusterOutput: Sendable {
  /// What `replyTo` of a `subscribed` says where nobody has asked: a channel has another owner, or other numbers.
  package static let unasked = MessageID(number: 0)
  /// Cells of more characters than this (4.9 by 4.9 km) are watched as the one around them.
  package static var finestWatched: Int { 5 }

  /// A session wants a channel whose trip or driver is not here. Answered by `ClusterInput.subscribeHere`, `.followed`
  /// or `.refused`.
  case subscribe(SubscribeInput)
  /// A trip that is not here is to be moved or changed. Answered by `ClusterInput.tripRequestHere` or `.replied`.
  case tripRequest(TripRequest)
  /// All hubs are asked. Answered by `ClusterInput.answered`.
  case ask(FleetQuestion)
  /// The hub that has a family is asked, or all are. Answered by `ClusterInput.credentials`.
  case credentials(CredentialRequest)
  /// Somebody of another hub wants a channel whose trip or driver is not here.
  case notHere(SessionRef)
  /// A trip, or a driver, is here from now on. `takes`: a session of the driver has begun, so that it is nowhere else.
  /// `arrival`: how often one has, which an answer (`ClusterInput.driverElsewhere`) names; it wraps.
  /// With `.trips` the hub counts the events of all hubs' trips, and is to be told of those.
  case owned(Channel, takes: Bool, arrival: UInt16 = 0)
  /// This hub has forgotten a trip or a driver.
  case released(Channel)
  /// This hub wants a channel from its owner, all events after this point; with `eventsOnly` no positions and ETAs.
  case follow(Channel, ResumePoint, eventsOnly: Bool)
  /// The first session that follows the channel elsewhere was let in, with an answer that says this.
  case followed(Channel, ResumePoint)
  /// No session of this hub is subscribed to the channel any more, whether or not it was followed.
  case unfollowed(Channel)
  /// The driver, or who counts all trips' events, is another hub now: those of other hubs who follow it here look for
  /// it there.
  case moved(ChannelHandle, Channel)
  /// Sessions of this hub watch what is in a cell, or in a part of it, or none does any more. The cell has at most
  /// `finestWatched` characters.
  case watched(GeohashCell)
  case unwatched(GeohashCell)
  /// A second is over: what the hub has counted in it. Answered by `ClusterInput.figures`.
  case second(HubFigures, watched: WatchedFeeds)
}

/// What the cluster tells the hub.
public enum ClusterInput: Sendable {
  /// Nobody has the channel's trip or driver: the session is subscribed here, to what may begin.
  case subscribeHere(SubscribeInput)
  /// No other hub has the trip: it is moved, or begun, here.
  case tripRequestHere(TripRequest)
  /// What the hub that has the trip or driver has answered, or that none can be reached.
  case replied(SessionRef, HubOutput)
  /// What the hubs that were asked know together.
  case answered(FleetQuestion, FleetAnswer)
  /// What the hubs that were asked have answered; nil where this one is to answer, since none else could.
  case credentials(CredentialRequest, CredentialAnswer?)
  /// The channel's owner has answered a session: what follows on the channel is relayed.
  case followed(SubscribeInput, Subscribed, missed: [Publication], isParty: Bool)
  case refused(SubscribeInput, ErrorReply)
  /// No hub has the trip or driver of a channel that is followed, or the ledger cannot be asked.
  case unowned(Channel)
  /// The owner of a followed channel has answered again, after a gap or as a new owner. `missed` leads up to the answer
  /// where that is `recovered`.
  case resumed(Subscribed, missed: [Publication])
  /// What the owner of a followed channel has published; or, where this hub counts them, an event of another's trip.
  case relayed(Publication)
  /// The owner's trip is over, or a followed channel cannot be followed any more.
  case ended(Channel, Unsubscribed.Reason)
  case shareEnded(Channel, of: Identifier)
  case claimed(Channel, by: Identifier)
  /// Another hub has the channel's trip or driver, for which somebody waited or which nobody seemed to have.
  case begunElsewhere(Channel)
  /// A session of the driver has begun at another hub: its session here ends, if none has begun since that `arrival`.
  case driverElsewhere(Identifier, arrival: UInt16)
  /// This hub counts the events of all hubs' trips from now on, also anew where some may be missing; or another one
  /// does.
  case countTrips(Bool)
  /// What another hub, of this number, tells of its drivers in a cell. `endsWhole`: with this it has told all.
  case area(AreaUpdate, from: UInt32, endsWhole: Bool)
  /// Where another hub's drivers are is not known any more.
  case areasLost(of: UInt32)
  /// What hubs have counted together in the last second; or, with `isHistory`, in those before.
  case figures([HubFigures], isHistory: Bool)
}
