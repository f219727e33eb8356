// Questions to all hubs of a cluster, and the merged answers.
import HubBytes
public import HubMessages

extension Actor {
  /// Stands for the sessions of another hub.
  package static let cluster = Actor(role: .ops, id: Identifier("cluster") ?? Identifier(checked: InlineText()))
}

/// What hubs are asked together.
public enum FleetRequest: Sendable {
  /// A search for drivers, or for one driver or trip that is not here.
  case query(QueryRequest)
  /// A page of the drivers, or of the trips, of all hubs.
  case drivers(DriverListQuery)
  case trips(TripListQuery)
}

/// A question that any hub may answer, wholly or in part.
public struct FleetQuestion: Sendable {
  public var session: SessionRef
  /// The message that asked; nil for a request.
  public var replyTo: MessageID?
  public var request: FleetRequest
  public var actor: Actor
  public var audience: Audience
  /// The credential's rights on the trip.
  public var grant: ChannelGrant

  public init(
    session: SessionRef, replyTo: MessageID?, request: FleetRequest, actor: Actor, audience: Audience,
    grant: ChannelGrant
  ) {
    self.session = session
    self.replyTo = replyTo
    self.request = request
    self.actor = actor
    self.audience = audience
    self.grant = grant
  }

  init(_ query: HubQuery, _ session: SessionRef, _ replyTo: MessageID?) {
    switch query {
    case .driver(let id): self.init(ofOps: .query(.driver(id)), Actor(role: .ops, id: id), session, replyTo)
    case .drivers(let search, let audience, let actor):
      self.init(ofOps: .query(.drivers(search)), actor, session, replyTo)
      self.audience = audience
    case .list(let query): self.init(ofOps: .drivers(query), .cluster, session, replyTo)
    }
  }

  /// A search for offers, which handle the answer themselves.
  init(_ search: DriverSearch, for offers: Handle, of trip: Identifier) {
    var session = SessionRef.nobody
    (session.slot, session.generation) = (offers.index, offers.generation)
    self.init(ofOps: .query(.drivers(search)), Actor(role: .ops, id: trip), session, nil)
  }

  var offers: Handle? {
    session.isNobody ? Handle(index: session.slot, generation: session.generation) : nil
  }

  init(_ query: TripQuery, _ session: SessionRef, _ replyTo: MessageID?) {
    self.init(
      session: session, replyTo: replyTo, request: .query(.trip(query.id)), actor: query.actor, audience: .riders,
      grant: query.grant)
  }

  init(_ query: TripListQuery, _ session: SessionRef, _ replyTo: MessageID?) {
    self.init(ofOps: .trips(query), .cluster, session, replyTo)
  }

  private init(ofOps request: FleetRequest, _ actor: Actor, _ session: SessionRef, _ replyTo: MessageID?) {
    self.init(
      session: session, replyTo: replyTo, request: request, actor: actor, audience: .ops, grant: .granted)
  }

  /// The question for one hub, with that hub's own position in a list.
  public func asked(of hub: String) -> FleetQuestion {
    var own = self
    switch request {
    case .query: break
    case .drivers(let query): own.request = .drivers(query.asked(of: hub))
    case .trips(let query): own.request = .trips(query.asked(of: hub))
    }
    return own
  }
}

/// The merged answer.
public enum FleetAnswer: Sendable {
  /// Nil where no hub knows the driver.
  case result(QueryResult?)
  case trips(TripPage)
  case refused(ErrorReply)
}
