// Requests of drivers without a socket, and queries about drivers as with `query` over the socket.
import HubBytes
import HubCore
import HubGeo
import HubHTTP
import HubMessages

enum DriverEndpoints {
  static let messageID = MessageID("http")!  // a valid id

  /// `POST /v1/locations`: a fix or a batch.
  static func locate(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let (caller, now, time) = (try call.caller(), call.context.now, call.time)
    let batch = try unsafe call.read { (reader, bytes) throws(MessageError) in
      try unsafe reader.readLocations(bytes, time: time)
    }
    call.request.charge(fixes: batch.fixes.count)
    var input = BatchInput(
      session: call.context.session, driverID: caller.id, messageID: messageID, sent: now.timestamp, received: now,
      batch: batch, tripIsGranted: batch.tripID.map(caller.names(trip:)) ?? false)
    if let trip = try call.query.parameter("trip") {
      guard trip == "current" else { throw Refusal(.badMessage, "the only value allowed for trip is current") }
      input.takesCurrentTrip = true
    }
    return .ask([.batch(input)] + (caller.vehicleInput.map { [$0] } ?? []))
  }

  /// The outcome of each fix.
  static func answer(_ batch: Ack.Batch?) -> Response {
    .json(capacity: 128) { body in
      body.append("{\"accepted\":")
      body.append(integer: Int64(batch?.accepted ?? 0))
      body.append(",\"duplicates\":")
      body.append(integer: Int64(batch?.duplicates ?? 0))
      body.append(",\"rejected\":[")
      for (index, rejection) in (batch?.rejected ?? []).enumerated() {
        body.append(index == 0 ? "{\"index\":" : ",{\"index\":")
        body.append(integer: Int64(rejection.index))
        body.append(",\"code\":\"")
        body.append(rejection.code.name)
        body.append("\"}")
      }
      body.append("]}")
    }
  }

  /// `PUT /v1/drivers/{id}/status`, by the driver or for it. Answered with the driver, once stored.
  static func setStatus(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let (id, caller) = (try call.id(of: "driver"), try call.caller())
    guard caller.role == .ops || caller.role == .driver && caller.id == id else {
      throw Refusal(.forbidden, "only ops and the driver itself may set its status")
    }
    let report = try unsafe call.read { (reader, bytes) throws(MessageError) in
      try unsafe reader.readDriverStatus(bytes)
    }
    let rights = SessionRights(caller, expires: .max)
    let key = try call.idempotencyKey().map { MessageID(ofStatusSetBy: caller.actor, key: $0) }
    return .ask(
      [
        .driverStatus(
          call.context.session, key ?? messageID, rights.withClaims(report), of: id, isKeyed: key != nil)
      ], .statusSet(of: id))
  }

  static func show(_ call: HTTPCall) throws(Refusal) -> Outcome { .query(.driver(try call.id(of: "driver"))) }

  /// A page of all drivers that the hub knows.
  static func list(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let query = try DriverListQuery(call.query, maximumLimit: call.context.limits.driversPerPage)
    return .ask([.query(call.context.session, .list(query))])
  }

  static func nearby(_ call: HTTPCall) throws(Refusal) -> Outcome {
    .query(.drivers(try DriverSearch(nearby: call.query)))
  }

  static func withinBox(_ call: HTTPCall) throws(Refusal) -> Outcome {
    .query(.drivers(try DriverSearch(box: call.query)))
  }

  /// The polygons are in the body.
  static func withinPolygons(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let polygons = try unsafe call.read { (reader, bytes) throws(MessageError) in try unsafe reader.readPolygons(bytes)
    }
    let search = try DriverSearch(polygons, call.query)
    call.request.charge(positions: search.area.positionCount)
    call.request.isReadOnly = true
    return .query(.drivers(search))
  }
}

extension DriverListQuery {
  /// `search` (the beginning of ids), `status` (one or several with commas), `limit`, `cursor`.
  init(_ query: Query, maximumLimit: Int) throws(Refusal) {
    self.init(limit: try query.pageLimit(maximumLimit) ?? min(Limits.pageEntries, maximumLimit))
    if let text = try query.parameter("search"), !text.isEmpty {
      guard let id = Identifier(text) else {
        throw Refusal(.badMessage, "search must be an id prefix: 1-64 of A-Z a-z 0-9 . _ -")
      }
      prefix = id.text
    }
    if let text = try query.parameter("status") {
      states = []
      for word in text.split(separator: ",", omittingEmptySubsequences: false) {
        guard let state = State.allCases.first(where: { "\($0.name)" == word }) else {
          throw Refusal(
            .badMessage, "status must be a comma-separated list of available, on_trip, unavailable, background, offline"
          )
        }
        states.insert(state)
      }
    }
    if let text = try query.parameter("cursor") {
      guard resumes(from: text) else {
        throw Refusal(.badMessage, "cursor must be the value of next in an earlier answer")
      }
    }
  }

  /// Continues where a page ended with this cursor; false where it is invalid.
  mutating func resumes(from cursor: String) -> Bool {
    guard let position = ListCursor(cursor, of: .drivers), position.number <= UInt64(UInt32.max) else { return false }
    (from, lastHub) = (Int(position.number), position.hub)
    return true
  }
}
