// The trip endpoints: a trip is asked for, shown, listed.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport

extension SessionLoop {
  /// `POST /v1/trips`: ops. Answered when the trip is on stable storage.
  mutating func requestTrip(_ slot: Int, _ exchange: Exchange, _ credential: Credential) {
    guard credential.role == .ops else {
      return respond(slot, exchange, .forbidden, .forbidden, "only ops may do this; others send trip_status")
    }
    let report: TripStatusReport
    do throws(MessageError) {
      let id = Identifier.random()
      report = try exchange.body.withBytes { (bytes) throws(MessageError) in
        try reader.readTripRequest(bytes, time: exchange.time, id: id, now: now.timestamp)
      }
    } catch {
      return respond(
        slot, exchange, error.code == .tooLarge ? .contentTooLarge : .badRequest, error.code, error.text)
    }
    charge(exchange, positions: report.route?.count ?? 0)
    exchange.isWaiting = true
    inputs.append(.trips(reference(sessions[slot].connection), .begin(report)))
  }

  /// `PATCH /v1/trips/{id}`: who may change it, as with `trip_change`. Answered when the change is on stable storage.
  mutating func changeTrip(_ slot: Int, _ exchange: Exchange, _ idText: String, _ credential: Credential) {
    guard let id = Identifier(idText) else {
      return respond(slot, exchange, .badRequest, .badMessage, "a trip id is 1-64 of A-Z a-z 0-9 . _ -")
    }
    let change: TripChange
    do throws(MessageError) {
      change = try exchange.body.withBytes { (bytes) throws(MessageError) in
        try reader.readTripChange(bytes, id: id)
      }
    } catch {
      return respond(slot, exchange, error.code.status, error.code, error.text)
    }
    charge(exchange, positions: change.route?.count ?? 0)
    exchange.isWaiting = true
    inputs.append(
      .trips(
        reference(sessions[slot].connection), .change(change, Actor(role: credential.role, id: credential.id))))
  }

  /// `GET /v1/trips/{id}`: who may subscribe to it.
  mutating func trip(_ slot: Int, _ exchange: Exchange, _ idText: String, _ credential: Credential) {
    askForTrip(slot, exchange, idText, credential, track: nil)
  }

  /// Asks the hub for a trip, to show it or its track.
  mutating func askForTrip(
    _ slot: Int, _ exchange: Exchange, _ idText: String, _ credential: Credential, track: TrackRequest?
  ) {
    guard let id = Identifier(idText) else {
      return respond(slot, exchange, .badRequest, .badMessage, "a trip id is 1-64 of A-Z a-z 0-9 . _ -")
    }
    guard let grant = credential.grant(for: .trip(id)) else {
      return respond(slot, exchange, .forbidden, .forbidden, "your credential does not open this trip")
    }
    exchange.isWaiting = true
    exchange.pendingTrip = PendingTrip(
      id: id, showsForgotten: credential.role == .ops && shared.history != nil, track: track, time: exchange.time)
    let actor = Actor(role: credential.role, id: credential.id)
    inputs.append(
      .trips(reference(sessions[slot].connection), .show(TripQuery(id: id, actor: actor, grant: grant))))
  }

  /// `query` of kind `trip`: likewise, of what the hub knows.
  mutating func askForTrip(_ slot: Int, _ messageID: MessageID, _ id: Identifier, _ credential: Credential) {
    guard let grant = credential.grant(for: .trip(id)) else {
      return refuse(slot, messageID, .forbidden, "your credential does not open this trip")
    }
    let actor = Actor(role: credential.role, id: credential.id)
    inputs.append(
      .trips(
        reference(sessions[slot].connection), .show(TripQuery(id: id, actor: actor, grant: grant)),
        replyTo: messageID))
  }

  // MARK: Answers

  /// To a message of a session, which asks for one trip only.
  private mutating func answer(_ slot: Int, _ answer: TripAnswer, to messageID: MessageID) {
    switch answer {
    case .trip(let report, _):
      let before = loop.arena.count
      send(.result(ResultReply(replyTo: messageID, result: .trip(report))), to: slot)
      chargeAnswer(slot, bytes: loop.arena.count - before)
    case .refused(let error): send(.error(error), to: slot)
    case .list: break
    }
  }

  mutating func answer(_ slot: Int, _ answer: TripAnswer, replyTo: MessageID?) {
    if let replyTo { return self.answer(slot, answer, to: replyTo) }
    guard let exchange = sessions[slot].exchange, exchange.isWaiting else { return }
    switch answer {
    case .trip(let report, let isNew): self.answer(slot, exchange, report, isNew: isNew)
    case .list(let reports, let next): self.answer(slot, exchange, reports, next: next)
    case .refused(let error): self.answer(slot, exchange, error)
    }
  }

  /// The hub has shown or made a trip.
  private mutating func answer(_ slot: Int, _ exchange: Exchange, _ report: TripReport, isNew: Bool) {
    if let track = exchange.takePendingTrip()?.track { return askHistory(slot, exchange, for: report, track) }
    var response = Response(report, time: exchange.time)
    if isNew {
      response.status = .created
      response.fields.append(OutgoingField("Location", "/v1/trips/\(report.tripID)"))
    }
    finish(slot, exchange, response)
  }

  /// The hub refuses something; a trip that it does not know may be in the journal.
  private mutating func answer(_ slot: Int, _ exchange: Exchange, _ error: ErrorReply) {
    if let pending = exchange.takePendingTrip(), pending.showsForgotten, error.code == .unknownTrip {
      return askHistory(slot, exchange, for: pending)
    }
    finish(slot, exchange, error)
  }
}

extension Response {
  /// A trip as the endpoints show it.
  init(_ report: TripReport, time: TimeFormat) {
    var body = ByteBuffer(capacity: 512)
    JSONWriter.write(report, time: time, into: &body)
    self.init(.ok, contentType: "application/json", body: body.array())
  }
}

extension Identifier {
  /// 100 bits of the system's randomness, as 20 of 0-9 a-z but for i l o u.
  static func random() -> Identifier {
    var random = SystemRandomNumberGenerator()
    let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
    let (high, low) = (random.next(), random.next())
    let text = (0..<20).map { alphabet[Int(($0 < 10 ? high : low) >> UInt64($0 % 10 * 5) & 31)] }
    return text.withUnsafeBytes { Identifier($0)! }  // 20 characters that ids may have
  }
}
