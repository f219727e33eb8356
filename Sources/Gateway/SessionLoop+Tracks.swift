// `GET /v1/trips/{id}/track`, and trips that the hub has forgotten: asked of the hub first, who may see it and what it
// knows, and then of the reader of the journal.
import HubBytes
import HubCore
import HubGeo
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport

/// How a track is wanted.
struct TrackRequest: Sendable, Equatable {
  var format: TrackFormat
  var source = TrackSource.filtered
  /// Metres; 0 for all points.
  var toleranceMeters = 0.0
  var time = TimeFormat.unixMilliseconds
}

/// What a request that waits for the hub wants to know of a trip.
struct PendingTrip {
  var id: Identifier
  /// Whether trips that the hub has forgotten may be shown, too: they have no people of their own any more.
  var showsForgotten: Bool
  /// Nil for the trip itself.
  var track: TrackRequest?
  var time: TimeFormat
}

extension SessionLoop {
  /// `GET /v1/trips/{id}/track`, with `.geojson`, `.gpx` or `.csv` or by `Accept`: who may subscribe to the trip.
  mutating func track(
    _ slot: Int, _ exchange: Exchange, _ request: RequestHead, _ idText: String, _ suffix: TrackFormat?,
    _ credential: Credential
  ) throws(HTTPError) {
    guard shared.history != nil else {
      return respond(
        slot, exchange, .notFound, .notFound, "this hub stores nothing, so it has no tracks (--no-journal)")
    }
    let accept = request.fields["accept"].map { String(decoding: $0, as: UTF8.self) }
    guard let format = suffix ?? TrackFormat(accept: accept) else {
      return respond(
        slot, exchange, .notAcceptable, .badMessage,
        "a track is application/geo+json, application/gpx+xml or text/csv")
    }
    var wanted = TrackRequest(format: format, time: exchange.time)
    if let text = try request.query.string("source") {
      guard let source = TrackSource(rawValue: text) else {
        return respond(slot, exchange, .badRequest, .badMessage, "source must be raw or filtered")
      }
      wanted.source = source
    }
    if let text = try request.query.string("tolerance") {
      guard let meters = Double(text), (0...1_000_000).contains(meters) else {
        return respond(slot, exchange, .badRequest, .badMessage, "tolerance must be 0 to 1000000 metres")
      }
      wanted.toleranceMeters = meters
    }
    askForTrip(slot, exchange, idText, credential, track: wanted)
  }

  /// The hub has no such trip, or has forgotten it: the journal may have it.
  mutating func askHistory(_ slot: Int, _ exchange: Exchange, for pending: PendingTrip) {
    let (limit, rules) = (limits.trackFixes, limits.hub.tracking)
    ask(slot, exchange) { access throws(HistoryError) in
      guard let trip = try access.trip(pending.id) else { return nil }
      guard let track = pending.track else {
        return Response(trip, time: pending.time)
      }
      return try access.response(trip, track, limit: limit, rules: rules)
    }
  }

  /// The track of a trip that the hub knows.
  mutating func askHistory(_ slot: Int, _ exchange: Exchange, for trip: TripReport, _ track: TrackRequest) {
    let (limit, rules) = (limits.trackFixes, limits.hub.tracking)
    ask(slot, exchange) { access throws(HistoryError) in try access.response(trip, track, limit: limit, rules: rules) }
  }

  /// Puts a question to the reader. What it gives is the answer; nil for a trip that the journal has not.
  mutating func ask(
    _ slot: Int, _ exchange: Exchange, _ body: @escaping @Sendable (HistoryAccess) throws(HistoryError) -> Response?
  ) {
    guard let reader = shared.history, let asker = requester(exchange) else { return }
    let identity = IdentityKey(asker)
    guard shared.admissions.asks(asker.role, identity) else {
      counters.historyRefused += 1
      counters.count(.queriesPerIdentity)
      return finish(
        slot, exchange, .tooManyRequests, .rateLimited, asker.role.queriesLimit(limits.hub.queriesPerIdentity),
        retryAfter: 1)
    }
    let session = reference(sessions[slot].connection)
    let answers = historyAnswers
    let isTaken =
      historyQuestions < asker.role.share(of: answers.capacity)
      && reader.ask(for: asker.role) { access in
        var answer = HistoryAnswer(
          session: session, identity: identity, response: HistoryFailure.unknown.response)
        do throws(HistoryError) {
          if let response = try body(access) { answer.response = response }
        } catch {
          answer.response = HistoryFailure(error).response
        }
        answer.room = reader.reserve(answer.response.byteCount)
        if answer.room == nil { answer.response = HistoryFailure.busy.response }
        // There is room: a loop asks no more than its mailbox holds.
        _ = answers.append(answer)
      }
    guard isTaken else {
      shared.admissions.answered(identity)
      counters.historyRefused += 1
      counters.historyFull += 1
      return finish(slot, exchange, HistoryFailure.busy.response)
    }
    historyQuestions += 1
    exchange.deadline = now.uptime + nanoseconds(limits.historySeconds)  // it is the reader's turn, not the peer's
  }

  /// Brings what the reader has found to those who asked and are still there.
  mutating func deliverHistory() {
    guard historyQuestions > 0 else { return }
    var answers: [HistoryAnswer] = []
    historyAnswers.drain(into: &answers)
    for answer in answers {
      historyQuestions -= 1
      shared.admissions.answered(answer.identity)
      guard let slot = slot(of: answer.session), let exchange = sessions[slot].exchange, exchange.isWaiting else {
        continue
      }
      exchange.room = answer.room
      finish(slot, exchange, answer.response)
      fanOut.flushIfLarge()
    }
  }
}

/// What the reader has for a request that waits.
struct HistoryAnswer: Sendable {
  var session: SessionRef
  /// Who has asked.
  var identity: IdentityKey
  var response: Response
  var room: MemoryReservation?
}

/// Why there is no answer out of the journal.
enum HistoryFailure {
  case unknown
  case tooManyFixes(limit: Int)
  case tooManyTrips(limit: Int)
  case busy
  case stopping
  case unreadable

  init(_ error: HistoryError) {
    switch error {
    case .journal: self = .unreadable
    case .tooManyFixes(let limit): self = .tooManyFixes(limit: limit)
    case .tooManyTrips(let limit): self = .tooManyTrips(limit: limit)
    case .stopping: self = .stopping
    }
  }

  var response: Response {
    switch self {
    case .unknown: Self.response(.notFound, .unknownTrip, "neither the hub nor its journal has such a trip")
    case .tooManyFixes(let limit):
      Self.response(.contentTooLarge, .tooLarge, "this trip has more than \(limit) fixes; see journal export")
    case .tooManyTrips(let limit):
      Self.response(.contentTooLarge, .tooLarge, "more than \(limit) trips have ended since then; see journal export")
    case .busy:
      Self.response(.serviceUnavailable, .rateLimited, "this hub reads its journal for many others now")
        .retryAfter(seconds: 1)
    case .stopping:
      Self.response(.serviceUnavailable, .shuttingDown, "the hub is shutting down").retryAfter(seconds: 5)
    case .unreadable:
      Self.response(.internalServerError, .internalError, "the journal cannot be read as a whole; see journal verify")
    }
  }

  private static func response(_ status: Status, _ code: ErrorCode, _ message: String) -> Response {
    var body = ByteBuffer()
    JSONWriter.writeError(code, message: message, into: &body)
    return Response(status, contentType: "application/json", body: body.array())
  }
}

extension HistoryAccess {
  /// A trip's track in the form that was asked for.
  fileprivate func response(
    _ trip: TripReport, _ request: TrackRequest, limit: Int, rules: Tracker.Rules
  ) throws(HistoryError) -> Response {
    var track = try track(of: trip, request.source, limit: limit, rules: rules)
    if request.toleranceMeters > 0 { track = track.simplified(toleranceMeters: request.toleranceMeters) }
    var bytes = ByteBuffer()
    request.format.write(track, time: request.time, into: &bytes)
    let name = "attachment; filename=\"\(trip.tripID).\(request.format.rawValue)\""
    return Response(
      .ok, contentType: request.format.mediaType, body: bytes.array(),
      fields: [OutgoingField("Content-Disposition", name)])
  }
}

extension Response {
  fileprivate var byteCount: Int {
    switch body {
    case .bytes(let bytes): bytes.count
    case .untilClose: 0
    }
  }
}
