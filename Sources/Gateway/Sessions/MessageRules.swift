// Decides about a client's message by its session's rights: an input of the hub, an answer, or a refusal. A pure
// function of values.
import HubCore
import HubGeo
import HubMessages

/// The decision about a message.
enum MessageOutcome {
  case ask(HubInput)
  /// Requests a subscription, which counts as unanswered from now on.
  case subscribe(SubscribeInput)
  case reply(Reply)
  case query(QueryRequest)
  case refresh(Refresh)
  case refuse(MessageRefusal)
}

/// A message's sender and circumstances.
struct MessageRules {
  let session: SessionRef
  let rights: SessionRights
  let envelope: ClientEnvelope
  let now: Moment
  /// The largest radius that ops may watch, in metres.
  let areaRadiusMeters: Double
  /// Whether it was posted over HTTP, not sent in a session.
  var isPosted = false

  private var messageID: MessageID { envelope.messageID }

  /// The outcome of any message but a session's `location_update`, which `SessionLoop` handles before these rules.
  var outcome: MessageOutcome {
    switch envelope.message {
    // `SessionLoop.receivedFix` takes those of drivers' sessions.
    case .locationUpdate where !isPosted: .refuse(Self.roleRefusal(of: messageID))
    case .locationUpdate(let update):
      ofDriver { input(of: LocationBatch(tripID: update.tripID, fixes: [.success(update.fix)])) }
    case .locationBatch(let batch): ofDriver { input(of: batch) }
    case .driverStatus(let report):
      // Only posts are keyed: a repeated one takes effect once, however late. A session's messages are in order.
      ofDriver { .driverStatus(session, messageID, rights.withClaims(report), of: postedBy, isKeyed: isPosted) }
    case .tripStatus(let report):
      .ask(
        .tripStatus(
          TripStatusInput(
            session: session, actor: actor, messageID: messageID, report: report,
            tripIsGranted: rights.names(report.tripID))))
    case .tripChange(let change):
      .ask(
        .tripChange(
          TripChangeInput(
            session: session, actor: actor, messageID: messageID, timestamp: envelope.timestamp, change: change)))
    case .offerDecline(let decline): ofDriver { .offerDecline(session, messageID, decline, by: rights.id) }
    case .subscribe(let request): outcome(of: request)
    case .unsubscribe(.view(let id)): .ask(.leaveView(session, messageID, .view(id)))
    case .unsubscribe(.channel(let channel)):
      switch channel {
      case .area, .nearby, .box, .counts, .countsBlock: .ask(.leaveView(session, messageID, .channel(channel)))
      case .trip, .driver, .fence, .fleet, .trips, .raw, .stats: .ask(.unsubscribe(session, messageID, channel))
      }
    case .ping(let ping):
      // A driver's pong has `storedThrough`, which only the hub knows.
      if rights.role == .driver {
        .ask(.ping(session, messageID, ping, of: postedBy))
      } else {
        .reply(.pong(Pong(replyTo: messageID, ping: ping, serverTime: now.timestamp, storedThrough: nil)))
      }
    case .refresh(let request): .refresh(request)
    case .query(let request): .query(request)
    }
  }

  private var actor: Actor { rights.credential.actor }
  private var postedBy: Identifier? { isPosted ? rights.id : nil }

  private func input(of batch: LocationBatch) -> HubInput {
    .batch(
      BatchInput(
        session: session, driverID: postedBy, messageID: messageID, sent: envelope.timestamp, received: now,
        batch: batch, tripIsGranted: rights.names(batch.tripID)))
  }

  private func ofDriver(_ input: () -> HubInput) -> MessageOutcome {
    rights.role == .driver ? .ask(input()) : .refuse(Self.roleRefusal(of: messageID))
  }

  /// The refusal of a driver's message from another role.
  static func roleRefusal(of messageID: MessageID) -> MessageRefusal {
    MessageRefusal(.forbidden, "only a driver's session sends this", replyTo: messageID)
  }

  private func refuse(
    _ code: ErrorCode, _ text: String, retryAfter: Double? = nil, at limit: LimitHit? = nil
  ) -> MessageOutcome {
    .refuse(MessageRefusal(code, text, replyTo: messageID, retryAfter: retryAfter, at: limit))
  }

  // MARK: Subscribing

  private func outcome(of request: Subscribe) -> MessageOutcome {
    if let fault = areaFault(request.channel) ?? precisionFault(request) { return refuse(fault.code, fault.text) }
    let credential = rights.credential
    guard let grant = credential.grant(for: request.channel) else {
      return refuse(.forbidden, "a \(rights.role.name) may not subscribe to this channel")
    }
    return .subscribe(
      SubscribeInput(session: session, actor: credential.actor, messageID: messageID, request: request, grant: grant))
  }

  /// Why a request may not choose the size of its cells; nil where it may, or does not.
  private func precisionFault(_ request: Subscribe) -> (code: ErrorCode, text: String)? {
    if request.precision == nil { return nil }
    if rights.role != .ops { return (.forbidden, "a \(rights.role.name) may not choose the size of cells") }
    switch request.channel {
    case .nearby, .box, .counts: return nil
    case .area, .countsBlock, .trip, .driver, .fence, .fleet, .trips, .raw, .stats:
      return (.badMessage, "precision goes with nearby:, box: and counts: of a box")
    }
  }

  /// Why a role may not watch an area; nil where it may. What is reserved for ops is forbidden to others, as in
  /// queries.
  private func areaFault(_ channel: Channel) -> (code: ErrorCode, text: String)? {
    let isOps = rights.role == .ops
    switch channel {
    case .area(let cell):
      if isOps || cell.precision >= 5 { return nil }
      return (.forbidden, "a \(rights.role.name) may watch areas of 5 to 8 characters")
    case .nearby(_, let radius):
      let limit = isOps ? areaRadiusMeters : PublicAudience.maximumRadiusMeters
      if radius <= limit { return nil }
      let who = isOps ? "ops" : "a \(rights.role.name)"
      return (isOps ? .badMessage : .forbidden, "\(who) may watch up to \(Int(limit)) m around a place")
    case .box, .counts, .countsBlock, .trip, .driver, .fence, .fleet, .trips, .raw, .stats: return nil
    }
  }
}

extension MessageRules {
  /// For a message that came by HTTP.
  init(_ context: HTTPContext, _ rights: SessionRights, _ envelope: ClientEnvelope) {
    self.init(
      session: context.session, rights: rights, envelope: envelope, now: context.now,
      areaRadiusMeters: context.limits.areaRadiusMeters)
  }
}
