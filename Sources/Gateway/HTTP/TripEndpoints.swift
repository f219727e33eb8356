// The trip endpoints: begin, change, show, list. A list has first what the hub knows, and then, for times long past,
// what only the journal has.
import HubCore
import HubHTTP
import HubMessages
import HubTokens

enum TripEndpoints {
  /// Answered once the trip is stored.
  static func begin(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let actor = try call.caller().actor
    let id = try call.idempotencyKey().map { Identifier(ofTripAskedBy: actor, key: $0) } ?? .random()
    let report = try unsafe call.read { (reader, bytes) throws(MessageError) in
      try unsafe reader.readTripRequest(bytes, time: call.time, id: id, now: call.context.now.timestamp)
    }
    call.request.charge(positions: report.route?.count ?? 0)
    return .ask([.trips(call.context.session, .begin(report, by: actor))])
  }

  /// A move by the caller, as with `trip_status`. Answered with the trip, once stored.
  static func move(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let (id, caller, key) = (try call.id(of: "trip"), try call.caller(), try call.idempotencyKey())
    let move = try unsafe call.read { (reader, bytes) throws(MessageError) in
      try unsafe reader.readTripMove(bytes, time: call.time, id: id, now: call.context.now.timestamp)
    }
    guard key == nil || move.messageID == nil else {
      throw Refusal(.badMessage, "give messageId or Idempotency-Key, not both")
    }
    call.request.charge(positions: move.report.route?.count ?? 0)
    let input = TripStatusInput(
      session: call.context.session, actor: caller.actor, messageID: key ?? move.messageID ?? .random(),
      report: move.report, tripIsGranted: caller.names(trip: id))
    return .ask([.tripStatus(input)], .move(of: id))
  }

  /// For those who may change it, as with `trip_change`. Answered once the change is stored.
  static func change(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let id = try call.id(of: "trip")
    let change = try unsafe call.read { (reader, bytes) throws(MessageError) in
      try unsafe reader.readTripChange(bytes, id: id)
    }
    call.request.charge(positions: change.route?.count ?? 0)
    return .ask([.trips(call.context.session, .change(change, try call.caller().actor))])
  }

  /// For those who may subscribe to it.
  static func show(_ call: HTTPCall) throws(Refusal) -> Outcome { try show(call, track: nil) }

  static func show(_ call: HTTPCall, track: TrackRequest?) throws(Refusal) -> Outcome {
    let id = try call.id(of: "trip")
    let showsForgotten = try call.caller().role == .ops && call.context.settings.hasHistory
    return .query(.trip(id), .trip(PendingTrip(id: id, showsForgotten: showsForgotten, track: track)))
  }

  static func list(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let context = call.context
    let list = try TripListParameters(call.query, time: call.time, maximumLimit: context.limits.tripsPerPage)
    if list.isOfHistory, context.settings.hasHistory {
      return .consult(.history(.trips(list.query, endedBy: context.forgottenBy, behind: [], call.time)))
    }
    let isOfBoth = context.settings.hasHistory && list.query.since.map { $0 < context.forgottenBy } == true
    return .ask(
      [.trips(context.session, .list(list.query))], .trips(inJournal: isOfBoth ? list.query : nil))
  }

  // MARK: Answers

  static func answer(
    _ answer: TripAnswer, _ request: HTTPRequest, _ awaited: Awaited, _ context: HTTPContext
  ) throws(Refusal) -> Outcome {
    switch (answer, awaited) {
    case (.trip(let report, _), .trip(let pending)):
      guard let track = pending.track else { return .respond(Response(report, time: request.time)) }
      return .consult(.history(.track(report, track, request.time)))
    case (.trip(let report, let isNew), _):
      return .respond(Response(report, time: request.time, isNew: isNew))
    // The trip's hub has moved it, but its new state has not come in time.
    case (.refused, .trip(let pending)) where pending.isMoved: return .respond(Response(.noContent))
    case (.refused(let error), .trip(let pending)) where pending.showsForgotten && error.code == .unknownTrip:
      return .consult(.history(.forgotten(pending.id, pending.track, request.time)))
    case (.refused(let error), _): throw Refusal(error)
    case (.shares(let shares), _): return .respond(ShareEndpoints.answer(shares, time: request.time))
    case (.shared(let share, let trip), _):
      return .respond(try ShareEndpoints.answer(share, of: trip, request, context))
    case (.unshared, _), (.offersStopped, _): return .respond(Response(.noContent))
    case (.offers(let offers, let isNew), _):
      return .respond(OfferEndpoints.answer(offers, isNew: isNew, time: request.time))
    case (.list(let page), .trips(inJournal: var query?)):
      // After a start, and while nothing can be stored, the hub still knows trips that the journal lists, too. In a
      // cluster they stay, since those of others are not in this hub's journal: some may be listed twice.
      let isAlone = context.configuration.cluster == nil
      let known = page.trips.filter { trip in !isAlone || trip.ended.map { $0 > context.forgottenBy } ?? true }
      query.limit -= known.count
      query.below = .max
      guard page.next == nil, query.limit > 0 else {
        let next = page.next.map { TripCursor.known($0) } ?? .forgotten(below: .max)
        return .respond(Response(known, next: next, time: request.time))
      }
      return .consult(.history(.trips(query, endedBy: context.forgottenBy, behind: known, request.time)))
    case (.list(let page), _):
      return .respond(Response(page.trips, next: page.next.map { .known($0) }, time: request.time))
    }
  }
}

extension Response {
  /// A trip as the endpoints show it.
  init(_ report: TripReport, time: TimeFormat, isNew: Bool = false) {
    self = .json(
      isNew ? .created : .ok, fields: isNew ? [OutgoingField("Location", "/v1/trips/\(report.tripID)")] : []
    ) { JSONWriter.write(report, time: time, into: &$0) }
  }

  /// A page of trips.
  init(_ reports: [TripReport], next: TripCursor?, time: TimeFormat) {
    self = .json(capacity: 64 + reports.count * 384) {
      JSONWriter.write(reports, next: next?.text, time: time, into: &$0)
    }
  }
}

extension Identifier {
  /// 100 bits as 20 of 0-9 a-z without i l o u: the first characters are bits of `start`, the others are random.
  static func random(beginning start: UInt64 = 0, characters: Int = 0) -> Identifier {
    var random = SystemRandomNumberGenerator()
    let (high, low) = (random.next(), random.next())
    return Identifier { $0 < characters ? start : $0 < 10 ? high : low }
  }

  /// The id of a trip requested with an `Idempotency-Key`: any hub of a cluster derives the same one for the same
  /// request. 100 bits of a SHA-256.
  init(ofTripAskedBy actor: Actor, key: MessageID) { self.init(digestOf: "\(actor.role.name) \(actor.id) \(key)") }

  /// The id of a family of tokens requested with a key: the same for each repetition by one client.
  init(ofTokensAskedBy actor: Actor, key: MessageID) {
    self.init(digestOf: "tokens \(actor.role.name) \(actor.id) \(key)")
  }

  fileprivate init(digestOf text: String) {
    let digest = Digest.sha256(of: Array(text.utf8))
    func word(_ start: Int) -> UInt64 { digest[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
    self.init { $0 < 10 ? word(0) : word(8) }
  }

  /// 20 characters, each from five bits of a word.
  private init(word: (_ index: Int) -> UInt64) {
    let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
    let text = (0..<20).map { alphabet[Int(word($0) >> UInt64($0 % 10 * 5) & 31)] }
    self = unsafe text.withUnsafeBytes { unsafe Identifier($0)! }  // a valid id
  }
}

extension MessageID {
  /// For a driver's status with an `Idempotency-Key`, which belongs to its sender.
  init(ofStatusSetBy actor: Actor, key: MessageID) {
    let digest = Identifier(digestOf: "status \(actor.role.name) \(actor.id) \(key)")
    self = MessageID("\(digest)")!  // 20 characters
  }

  /// For a message without an id, which nobody can repeat.
  static func random() -> MessageID { MessageID("\(Identifier.random())")! }  // 20 characters
}
