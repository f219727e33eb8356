// Clients' messages, by `type`.
import HubBytes
import HubGeo

extension JSONTape {
  /// Reads a parsed message of a client.
  @inline(__always)
  func clientEnvelope(
    _ envelope: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> ClientEnvelope {
    let head = try envelopeHead(envelope, bytes, time)
    let type = try typeIndex(envelope)
    if equals(type, bytes, "location_update") {  // nine in ten messages are
      try checkSendingTime(envelope, bytes, time)
      let update = try locationUpdate(try payload(envelope), bytes, time)
      return ClientEnvelope(messageID: head.messageID, timestamp: head.timestamp, message: .locationUpdate(update))
    }
    let message = try otherMessage(type, envelope, bytes, time)
    return ClientEnvelope(messageID: head.messageID, timestamp: head.timestamp, message: message)
  }

  /// Checks the envelope's time of a message with fixes like theirs: it shows the offset of the phone's clock.
  private func checkSendingTime(
    _ envelope: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) {
    _ = try clientTimestamp(envelope, .timestamp, bytes, time, early: .invalidLocation)
  }

  @inline(never)
  private func otherMessage(
    _ type: Int, _ envelope: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> ClientMessage {
    if equals(type, bytes, "location_batch") {
      try checkSendingTime(envelope, bytes, time)
      return .locationBatch(try locationBatch(try payload(envelope), bytes, time))
    }
    if equals(type, bytes, "trip_status") {
      return .tripStatus(try tripStatus(try payload(envelope), bytes, time))
    }
    if equals(type, bytes, "trip_change") {
      _ = try clientTimestamp(envelope, .timestamp, bytes, time, early: .badMessage)
      return .tripChange(try tripChange(try payload(envelope), bytes))
    }
    if equals(type, bytes, "offer_decline") { return .offerDecline(try offerDecline(try payload(envelope), bytes)) }
    if equals(type, bytes, "driver_status") {
      return .driverStatus(try driverStatus(try payload(envelope), bytes))
    }
    if equals(type, bytes, "subscribe") {
      return .subscribe(try subscribe(try payload(envelope), bytes))
    }
    if equals(type, bytes, "unsubscribe") {
      return .unsubscribe(try unsubscribe(try payload(envelope), bytes))
    }
    if equals(type, bytes, "ping") {
      guard envelope[.payload] != 0 else { throw ValidationError(.payload, "is missing") }  // null is allowed
      return .ping(try ping(envelope[.payload], bytes))
    }
    if equals(type, bytes, "query") { return .query(try query(try payload(envelope), bytes)) }
    if equals(type, bytes, "refresh") { return .refresh(try refresh(try payload(envelope), bytes)) }
    throw ValidationError(
      .unknownType, .type,
      """
      expected location_update, location_batch, driver_status, trip_status, trip_change, offer_decline, subscribe, \
      unsubscribe, query, ping or refresh
      """)
  }

  private func tripStatus(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> TripStatusReport {
    let tripID = try required(identifier(payload, .tripId, bytes), .tripId)
    let timestamp = try required(
      clientTimestamp(payload, .timestamp, bytes, time, early: .badMessage), .timestamp)
    return try tripStatus(payload, bytes, of: tripID, at: timestamp)
  }

  /// The members of a move besides its trip and time.
  private func tripStatus(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, of tripID: Identifier, at timestamp: Timestamp
  ) throws(ValidationError) -> TripStatusReport {
    let words: StaticString = """
      expected requested, accepted, driver_en_route, arrived_pickup, trip_started, arrived_destination, completed or \
      cancelled
      """
    let status: TripStatus = try required(keyword(payload, .status, bytes, words), .status)
    var report = TripStatusReport(tripID: tripID, status: status, timestamp: timestamp)
    report.location = try place(payload, .location)
    report.expectedStatus = try keyword(payload, .expectedStatus, bytes, words)
    switch status {
    case .requested: try readRequest(payload, bytes, into: &report)
    case .accepted: report.driverID = try identifier(payload, .driverId, bytes)
    case .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed, .cancelled: break
    }
    return report
  }

  /// The members of `requested`.
  private func readRequest(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, into report: inout TripStatusReport
  ) throws(ValidationError) {
    report.pickup = try place(payload, .pickup)
    report.dropoff = try place(payload, .dropoff)
    report.driverID = try identifier(payload, .driverId, bytes)
    report.riderID = try identifier(payload, .riderId, bytes)
    report.route = try route(payload, bytes)
    if let offer = try object(payload, .offer) { report.offer = try offerCriteria(offer, bytes) }
  }

  private func tripChange(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> TripChange {
    try changes(payload, bytes, of: try required(identifier(payload, .tripId, bytes), .tripId))
  }

  private func changes(
    _ members: JSONMembers, _ bytes: Span<UInt8>, of tripID: Identifier
  ) throws(ValidationError) -> TripChange {
    let change = TripChange(
      tripID: tripID, pickup: try place(members, .pickup), dropoff: try place(members, .dropoff),
      route: try route(members, bytes))
    guard !change.isEmpty else { throw ValidationError(.unknown, "expected pickup, dropoff or route") }
    return change
  }

  /// The body of `PATCH /v1/trips/{id}`: the changes.
  func tripChange(_ bytes: Span<UInt8>, id: Identifier) throws(ValidationError) -> TripChange {
    guard self[0].kind == .object else {
      throw ValidationError(.unknown, "expected an object: pickup, dropoff or route")
    }
    let body = members(of: 0)
    if let named = try identifier(body, .tripId, bytes), named != id {
      throw ValidationError(.tripId, "must match the path, or be omitted")
    }
    return try changes(body, bytes, of: id)
  }

  /// The body of `POST /v1/trips`: the members of a `trip_status` with `requested`; id and time may be left out.
  func tripRequest(
    _ bytes: Span<UInt8>, _ time: TimeFormat, id: Identifier, now: Timestamp
  ) throws(ValidationError) -> TripStatusReport {
    let body = try members(ofBody: "expected an object: a trip")
    let words: StaticString = "expected requested, or nothing"
    let status: TripStatus? = try keyword(body, .status, bytes, words)
    guard status ?? .requested == .requested else { throw ValidationError(.status, words) }
    var report = TripStatusReport(
      tripID: try identifier(body, .tripId, bytes) ?? id, status: .requested,
      timestamp: try clientTimestamp(body, .timestamp, bytes, time, early: .badMessage) ?? now)
    report.location = try place(body, .location)
    try readRequest(body, bytes, into: &report)
    return report
  }

  /// The body of `POST /v1/trips/{id}/status`: a move of that trip, and the id by which a repetition is recognised, if
  /// it has one. `now`: the time of a move without one.
  func tripMove(
    _ bytes: Span<UInt8>, _ time: TimeFormat, id: Identifier, now: Timestamp
  ) throws(ValidationError) -> (messageID: MessageID?, report: TripStatusReport) {
    let body = try members(ofBody: "expected an object: a move of a trip")
    if let named = try identifier(body, .tripId, bytes), named != id {
      throw ValidationError(.tripId, "the path names another trip")
    }
    let timestamp = try clientTimestamp(body, .timestamp, bytes, time, early: .badMessage) ?? now
    return (try messageID(ofBody: body, bytes), try tripStatus(body, bytes, of: id, at: timestamp))
  }

  /// The body of `PUT /v1/drivers/{id}/status`.
  func driverStatus(_ bytes: Span<UInt8>) throws(ValidationError) -> DriverStatusReport {
    try driverStatus(try members(ofBody: "expected an object: a driver's status"), bytes)
  }

  func members(ofBody words: StaticString) throws(ValidationError) -> JSONMembers {
    guard self[0].kind == .object else { throw ValidationError(.unknown, words) }
    return members(of: 0)
  }

  /// An encoded polyline, or an array of coordinates.
  func route(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Route? {
    guard let index = present(payload, .route) else { return nil }
    let words: StaticString =
      "expected 2 places or more: an encoded polyline (precision 5), or an array of {latitude, longitude}"
    let isPolyline = isText(index)
    guard isPolyline || self[index].kind == .array else { throw ValidationError(.route, words) }
    let points = isPolyline ? [] : try routePoints(index)
    do throws(Route.Fault) {
      guard isPolyline else { return try Route(points: points) }
      return try unsafe Route(polyline: withText(index, bytes) { unsafe String(decoding: $0, as: UTF8.self) })
    } catch {
      switch error {
      case .tooManyPoints: throw ValidationError(.tooLarge, .route, "expected up to 5,000 places")
      case .notAPolyline, .tooShort: throw ValidationError(.route, words)
      }
    }
  }

  private func routePoints(_ list: Int) throws(ValidationError) -> [Coordinate] {
    let count = Int(self[list].count)
    guard count <= Route.maximumPoints else { throw ValidationError(.tooLarge, .route, "expected up to 5,000 places") }
    var points: [Coordinate] = []
    points.reserveCapacity(count)
    var i = list + 1
    for _ in 0..<count {
      guard self[i].kind == .object else {
        throw ValidationError(.route, "expected {latitude, longitude} for each place")
      }
      points.append(try coordinate(members(of: i)))
      i = Int(self[i].next)
    }
    return points
  }

  private func driverStatus(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> DriverStatusReport
  {
    let words: StaticString = "expected available, unavailable or background (on_trip follows from the driver's trips)"
    let status: DriverStatus = try required(keyword(payload, .status, bytes, words), .status)
    guard status != .onTrip else { throw ValidationError(.status, words) }
    var report = DriverStatusReport(status: status)
    report.vehicleType = try inlineText(payload, .vehicleType, bytes)
    report.tags = try tags(payload, bytes)
    return report
  }

  func tags(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> [InlineText]? {
    guard let list = present(payload, .tags) else { return nil }
    guard self[list].kind == .array, Int(self[list].count) <= DriverStatusReport.maximumTags else {
      throw ValidationError(.tags, "expected an array of up to 8 strings")
    }
    var tags: [InlineText] = []
    try forEach(payload, .tags) { (index) throws(ValidationError) in
      guard isText(index), let tag = unsafe withText(index, bytes, { unsafe InlineText($0) }), !tag.isEmpty else {
        throw ValidationError(.tags, "expected strings of 1–64 bytes")
      }
      tags.append(tag)
    }
    return tags
  }

  private func refresh(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Refresh {
    let token = try required(string(payload, .token, bytes), .token)
    guard (1...Refresh.maximumBytes).contains(token.utf8.count) else {
      throw ValidationError(.token, "expected a string of 1–8,192 bytes")
    }
    return Refresh(token: token)
  }

  private func subscribe(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Subscribe {
    let channel = try required(channel(payload, bytes), .channel)
    var subscribe = Subscribe(channel: channel, viewID: try inlineText(payload, .viewId, bytes))
    if let precision = try count(payload, .precision, bytes) {
      subscribe.precision = try Subscribe.precision(Int(clamping: precision))
    }
    subscribe.isEventsOnly = try bool(payload, .eventsOnly) ?? false
    guard let since = try count(payload, .since, bytes) else { return subscribe }
    // A number means nothing without its epoch.
    let epoch = try required(inlineText(payload, .epoch, bytes, atMost: MessageLimits.epochBytes), .epoch)
    subscribe.resume = ResumePoint(since: since, epoch: epoch)
    return subscribe
  }

  private func unsubscribe(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Unsubscribe {
    if let id = try inlineText(payload, .viewId, bytes) { return .view(id) }
    return .channel(try required(channel(payload, bytes), .channel))
  }
}
