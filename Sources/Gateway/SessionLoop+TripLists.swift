// `GET /v1/trips`: first what the hub knows, and then, for who asks for times long past, what only the journal has.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport

extension SessionLoop {
  /// `GET /v1/trips`: ops.
  mutating func trips(
    _ slot: Int, _ exchange: Exchange, _ request: RequestHead, _ credential: Credential
  ) throws(HTTPError) {
    guard credential.role == .ops else {
      return respond(slot, exchange, .forbidden, .forbidden, "only ops may list trips")
    }
    let list: TripListParameters
    do throws(TripListParameters.Invalid) {
      list = try TripListParameters(request.query, time: exchange.time, maximumLimit: limits.tripsPerPage)
    } catch {
      return respond(slot, exchange, .badRequest, .badMessage, error.text)
    }
    exchange.isWaiting = true
    if list.isOfHistory, shared.history != nil { return askHistory(slot, exchange, list.query, behind: []) }
    if let since = list.query.since, since < forgottenBy, shared.history != nil { exchange.pendingList = list.query }
    inputs.append(.trips(reference(sessions[slot].connection), .list(list.query)))
  }

  /// What ended by this time the hub has forgotten.
  private var forgottenBy: Timestamp {
    Timestamp(milliseconds: now.timestamp.milliseconds - Int64(configuration.timings.retention * 1000))
  }

  /// A page of what the hub knows; what is missing to a whole one the journal may have.
  mutating func answer(_ slot: Int, _ exchange: Exchange, _ reports: [TripReport], next: UInt64?) {
    let pending = exchange.takePendingList()
    if let next { return finish(slot, exchange, page(reports, .known(below: next), exchange)) }
    guard var pending else { return finish(slot, exchange, page(reports, nil, exchange)) }
    pending.limit -= reports.count
    pending.below = .max
    guard pending.limit > 0 else { return finish(slot, exchange, page(reports, .forgotten(below: .max), exchange)) }
    askHistory(slot, exchange, pending, behind: reports)
  }

  private func page(_ reports: [TripReport], _ next: TripCursor?, _ exchange: Exchange) -> Response {
    Response(reports, next: next, time: exchange.time)
  }

  private mutating func askHistory(
    _ slot: Int, _ exchange: Exchange, _ query: TripListQuery, behind known: [TripReport]
  ) {
    let (time, endedBy, limit) = (exchange.time, forgottenBy, limits.historyTrips)
    ask(slot, exchange) { access throws(HistoryError) in
      var trips = try access.trips(query, endedBy: endedBy, limit: limit)
      let hasMore = trips.count > query.limit
      if hasMore { trips.removeLast() }
      let next = hasMore ? trips.last.map { TripCursor.forgotten(below: $0.number) } : nil
      let seen = Set(known.map(\.tripID))
      let forgotten = trips.map(\.report).filter { !seen.contains($0.tripID) }.map { report in
        var short = report
        short.route = nil
        return short
      }
      return Response(known + forgotten, next: next, time: time)
    }
  }
}

extension Response {
  /// A page of trips.
  fileprivate init(_ reports: [TripReport], next: TripCursor?, time: TimeFormat) {
    var body = ByteBuffer(capacity: 64 + reports.count * 384)
    JSONWriter.write(reports, next: next?.text, time: time, into: &body)
    self.init(.ok, contentType: "application/json", body: body.array())
  }
}
