// The hub's messages, by `type`, as a client reads them.
import HubBytes
import HubGeo

extension JSONTape {
  /// Reads a parsed message of the hub.
  func serverEnvelope(
    _ envelope: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> ServerEnvelope {
    let head = try envelopeHead(envelope, bytes, time)
    let type = try typeIndex(envelope)
    var message: ServerMessage
    var answered: MessageID?
    do throws(ValidationError) {
      if let body = try publication(type, envelope, bytes, time) {
        let channel = try required(channel(try payload(envelope), bytes), .channel)
        let number = head.messageID.publicationNumber
        message = .publication(
          Publication(channel: channel, number: number, timestamp: head.timestamp, body: body))
      } else if let reply = try reply(type, envelope, bytes, time) {
        message = .reply(reply)
      } else {
        message = .unknown(type: text(type, bytes))
      }
    } catch {
      guard error.isUnknownKeyword else { throw error }
      message = .unknown(type: text(type, bytes))
      // Of the answers only a `result` can fail so: the others are read without the unknown keyword.
      if equals(type, bytes, "result") { answered = try replyTo(try payload(envelope), bytes) }
    }
    var read = ServerEnvelope(messageID: head.messageID, timestamp: head.timestamp, message: message)
    if case .unknown = message { read.unknownEvent = unknownEvent(envelope, bytes) }
    read.unknownReplyTo = answered
    return read
  }

  /// The event in a message that is unknown: a payload with a channel and a sequence that is no answer; else nil.
  private func unknownEvent(_ envelope: JSONMembers, _ bytes: Span<UInt8>) -> UnknownEvent? {
    do throws(ValidationError) {
      let payload = try payload(envelope)
      guard present(payload, .replyTo) == nil, let channel = try channel(payload, bytes),
        let sequence = try count(payload, .sequence, bytes)
      else { return nil }
      return UnknownEvent(channel: channel, sequence: sequence)
    } catch {
      return nil  // a newer hub means something else by these members
    }
  }

  private func text(_ index: Int, _ bytes: Span<UInt8>) -> String {
    unsafe withText(index, bytes) { unsafe String(decoding: $0, as: UTF8.self) }
  }

  /// Nil for a type that is no publication.
  private func publication(
    _ type: Int, _ envelope: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> Publication.Body? {
    if equals(type, bytes, "driver_location") {
      return .driverLocation(try driverLocation(try payload(envelope), bytes, time))
    }
    if equals(type, bytes, "eta_update") {
      return .etaUpdate(try etaUpdate(try payload(envelope), bytes, time))
    }
    if equals(type, bytes, "trip_update") {
      return .tripUpdate(try tripUpdate(try payload(envelope), bytes, time))
    }
    if equals(type, bytes, "notification") {
      return .notification(try notification(try payload(envelope), bytes, time))
    }
    if equals(type, bytes, "offer") { return .offer(try offer(try payload(envelope), bytes, time)) }
    if equals(type, bytes, "offer_withdrawn") { return .offer(try offerWithdrawn(try payload(envelope), bytes)) }
    if equals(type, bytes, "area_update") {
      return .areaUpdate(try areaUpdate(try payload(envelope), bytes, time))
    }
    if equals(type, bytes, "counts_update") { return .countsUpdate(try countsUpdate(try payload(envelope), bytes)) }
    if equals(type, bytes, "raw_fix") { return .rawFix(try rawFix(try payload(envelope), bytes, time)) }
    if equals(type, bytes, "stats"), let payload = present(envelope, .payload), self[payload].kind == .object {
      return .stats(try figures(payload, bytes, time))
    }
    return nil
  }

  /// Nil for a type that is no reply.
  private func reply(
    _ type: Int, _ envelope: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> Reply? {
    if equals(type, bytes, "ack") { return .ack(try ack(try payload(envelope), bytes, time)) }
    if equals(type, bytes, "pong") { return .pong(try pong(envelope, bytes, time)) }
    if equals(type, bytes, "subscribed") { return .subscribed(try subscribed(try payload(envelope), bytes, time)) }
    if equals(type, bytes, "unsubscribed") { return .unsubscribed(try unsubscribed(try payload(envelope), bytes)) }
    if equals(type, bytes, "result") { return .result(try result(try payload(envelope), bytes, time)) }
    if equals(type, bytes, "error") { return .error(try errorReply(try payload(envelope), bytes)) }
    if equals(type, bytes, "sampling") { return .sampling(try samplingAdvice(try payload(envelope), bytes)) }
    if equals(type, bytes, "connected") { return .connected(try connected(try payload(envelope), bytes, time)) }
    return nil
  }

  /// The clock of a position's `timestamp`: the fix's own by default.
  func timeSource(_ members: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> TimeSource {
    try keyword(members, .timeSource, bytes, "expected fix or hub") ?? .fix
  }

  private func driverLocation(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> DriverLocation {
    var location = DriverLocation(
      driverID: try required(identifier(payload, .driverId, bytes), .driverId),
      tripID: try identifier(payload, .tripId, bytes),
      coordinate: try coordinate(payload),
      heading: try heading(payload),
      speed: try speed(payload),
      accuracy: try required(number(payload, .accuracy), .accuracy),
      confidence: try required(
        keyword(payload, .confidence, bytes, "expected high, medium or low"), .confidence),
      timestamp: try required(timestamp(payload, .timestamp, bytes, time), .timestamp),
      timeSource: try timeSource(payload, bytes),
      age: try required(number(payload, .age), .age),
      after: try required(count(payload, .after, bytes), .after))
    location.status = try keyword(payload, .status, bytes, "expected the status of a driver")
    return location
  }

  private func etaUpdate(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> ETAUpdate {
    ETAUpdate(
      tripID: try required(identifier(payload, .tripId, bytes), .tripId),
      target: try required(keyword(payload, .target, bytes, "expected pickup or dropoff"), .target),
      eta: try required(nonNegative(payload, .eta), .eta),
      distance: try required(nonNegative(payload, .distance), .distance),
      arrivalTime: try required(timestamp(payload, .arrivalTime, bytes, time), .arrivalTime),
      basis: try required(keyword(payload, .basis, bytes, "expected route or direct"), .basis),
      after: try required(count(payload, .after, bytes), .after))
  }

  private func tripUpdate(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> TripUpdate {
    let words: StaticString = "expected the name of a state of a trip"
    var update = TripUpdate(
      tripID: try required(identifier(payload, .tripId, bytes), .tripId),
      status: try required(keyword(payload, .status, bytes, words), .status),
      previousStatus: try keyword(payload, .previousStatus, bytes, words),
      driverID: try identifier(payload, .driverId, bytes),
      timestamp: try required(timestamp(payload, .timestamp, bytes, time), .timestamp),
      location: try place(payload, .location),
      pickup: try place(payload, .pickup),
      dropoff: try place(payload, .dropoff),
      route: try string(payload, .route, bytes),
      summary: try object(payload, .summary).map { (members) throws(ValidationError) in try tripSummary(members, bytes)
      },
      sequence: try required(count(payload, .sequence, bytes), .sequence))
    update.riderID = try identifier(payload, .riderId, bytes)
    return update
  }

  func tripSummary(_ summary: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> TripSummary {
    TripSummary(
      distance: try required(nonNegative(summary, .distance), .distance),
      approach: try required(nonNegative(summary, .approach), .approach),
      track: try required(nonNegative(summary, .track), .track),
      duration: try required(nonNegative(summary, .duration), .duration),
      waiting: try required(nonNegative(summary, .waiting), .waiting),
      fixes: try required(count(summary, .fixes, bytes), .fixes),
      gaps: try required(count(summary, .gaps, bytes), .gaps),
      gapDuration: try required(nonNegative(summary, .gapDuration), .gapDuration))
  }

  private func notification(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> Notification {
    let data = try object(payload, .data)
    var made = Notification(
      kind: try required(keyword(payload, .kind, bytes, "expected a kind of notification"), .kind),
      title: try required(string(payload, .title, bytes), .title),
      body: try required(string(payload, .body, bytes), .body),
      driverID: try data.flatMap { (data) throws(ValidationError) in try identifier(data, .driverId, bytes) },
      leg: try data.flatMap { (data) throws(ValidationError) in try leg(data, bytes) },
      sequence: try required(count(payload, .sequence, bytes), .sequence))
    if made.leg == nil, let data { made.fence = try fenceNotice(data, bytes, time) }
    if made.leg == nil, made.fence == nil { made.content = notificationContent(payload, bytes) }
    return made
  }

  /// The remaining way in a notification's `data`; nil in others, where members of these names may mean something else.
  private func leg(_ data: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Notification.Leg? {
    let target: TripTarget? = try keyword(data, .target, bytes, "expected pickup or dropoff")
    guard let target, let distance = try nonNegative(data, .distance), let eta = try nonNegative(data, .eta) else {
      return nil
    }
    return Notification.Leg(target: target, distance: distance, eta: eta)
  }

  private func subscribed(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> Subscribed {
    var made = Subscribed(
      replyTo: try required(replyTo(payload, bytes), .replyTo),
      channel: try required(channel(payload, bytes), .channel),
      sequence: try required(count(payload, .sequence, bytes), .sequence),
      epoch: try required(inlineText(payload, .epoch, bytes, atMost: MessageLimits.epochBytes), .epoch),
      recovered: try required(bool(payload, .recovered), .recovered),
      snapshot: nil)
    made.viewID = try inlineText(payload, .viewId, bytes)
    made.cells = try cells(payload, made.channel.isOfCounts ? .blocks : .cells, bytes)
    made.history = try history(payload, bytes, time)
    guard let snapshot = try object(payload, .snapshot) else { return made }
    made.snapshot = Subscribed.Snapshot()
    if let trip = try object(snapshot, .trip) { made.snapshot?.trip = try knownTripState(trip, bytes, time) }
    if let position = try object(snapshot, .position) {
      made.snapshot?.position = try knownPart { () throws(ValidationError) in try driverLocation(position, bytes, time)
      }
    }
    if let eta = try object(snapshot, .eta) {
      made.snapshot?.eta = try knownPart { () throws(ValidationError) in try etaUpdate(eta, bytes, time) }
    }
    return made
  }

  /// The trip's state; nil where its status is one that only a newer hub knows.
  private func knownTripState(
    _ trip: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> TripState? {
    try knownPart { () throws(ValidationError) in
      TripState(
        tripID: try required(identifier(trip, .tripId, bytes), .tripId),
        status: try required(keyword(trip, .status, bytes, "expected the name of a state of a trip"), .status),
        driverID: try identifier(trip, .driverId, bytes),
        timestamp: try required(timestamp(trip, .timestamp, bytes, time), .timestamp))
    }
  }

  private func unsubscribed(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Unsubscribed {
    Unsubscribed(
      replyTo: try replyTo(payload, bytes),
      channel: try required(channel(payload, bytes), .channel),
      reason: try knownPart { () throws(ValidationError) in
        try keyword(payload, .reason, bytes, "expected asked, trip_ended, grant_ended or revoked")
      })
  }

  private func pong(_ envelope: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat) throws(ValidationError) -> Pong {
    let payload = try payload(envelope)
    return Pong(
      replyTo: try required(replyTo(payload, bytes), .replyTo),
      ping: try ping(envelope[.payload], bytes),
      serverTime: try required(timestamp(payload, .serverTime, bytes, time), .serverTime),
      storedThrough: try timestamp(payload, .storedThrough, bytes, time))
  }

  private func samplingAdvice(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> SamplingAdvice {
    SamplingAdvice(
      interval: try required(nonNegative(payload, .interval), .interval),
      minDistance: try required(nonNegative(payload, .minDistance), .minDistance),
      reason: try knownPart { () throws(ValidationError) in
        try keyword(payload, .reason, bytes, "expected a reason for an interval")
      })
  }

  private func ack(_ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat) throws(ValidationError) -> Ack {
    Ack(
      replyTo: try required(replyTo(payload, bytes), .replyTo), batch: try batchOutcome(payload, bytes),
      trip: try object(payload, .trip).flatMap { (trip) throws(ValidationError) in
        try knownTripState(trip, bytes, time)
      })
  }

  /// Nil for an answer to anything but a batch.
  private func batchOutcome(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Ack.Batch? {
    guard let accepted = try smallCount(payload, .accepted, bytes) else { return nil }
    var batch = Ack.Batch(
      accepted: accepted, duplicates: try smallCount(payload, .duplicates, bytes) ?? 0, rejected: [])
    try forEachObject(payload, .rejected) { (fix) throws(ValidationError) in
      let index = try required(smallCount(fix, .index, bytes), .index)
      batch.rejected.append(Ack.Batch.Rejection(index: index, code: try code(fix, bytes) ?? .internalError))
    }
    return batch
  }

  private func errorReply(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> ErrorReply {
    let details = try object(payload, .details)
    let code = try code(payload, bytes)
    var reply = ErrorReply(
      code: code ?? .internalError,
      message: try string(payload, .message, bytes) ?? "",
      replyTo: try replyTo(payload, bytes),
      retryAfter: try nonNegative(payload, .retryAfter),
      status: try details.flatMap { (details) throws(ValidationError) in
        try knownPart { () throws(ValidationError) in
          try keyword(details, .status, bytes, "expected the name of a state of a trip")
        }
      })
    reply.hasNewerCode = code == nil
    return reply
  }

  private func connected(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> Connected {
    let limits = try required(object(payload, .limits), .limits)
    var made = Connected(
      sessionID: try required(inlineText(payload, .sessionId, bytes), .sessionId),
      role: try required(keyword(payload, .role, bytes, "expected driver, rider or ops"), .role),
      id: try required(identifier(payload, .id, bytes), .id),
      heartbeatInterval: try required(nonNegative(payload, .heartbeatInterval), .heartbeatInterval),
      serverTime: try required(timestamp(payload, .serverTime, bytes, time), .serverTime),
      limits: Connected.Limits(
        maxMessageBytes: try required(smallCount(limits, .maxMessageBytes, bytes), .maxMessageBytes),
        maxBatch: try required(smallCount(limits, .maxBatch, bytes), .maxBatch),
        rate: try required(nonNegative(limits, .rate), .rate)),
      sampling: nil)
    if let sampling = try object(payload, .sampling) {
      made.sampling = Connected.Sampling(
        interval: try required(nonNegative(sampling, .interval), .interval),
        minDistance: try required(nonNegative(sampling, .minDistance), .minDistance))
    }
    return made
  }

  // MARK: Members that several share

  func replyTo(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> MessageID? {
    guard let index = present(payload, .replyTo) else { return nil }
    guard isText(index), let id = unsafe withText(index, bytes, { unsafe MessageID($0) }) else {
      throw ValidationError(.replyTo, "expected a string of 1–64 bytes")
    }
    return id
  }

  /// An error code; nil for one that only a newer hub knows.
  private func code(_ members: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> ErrorCode? {
    try knownPart { () throws(ValidationError) in
      try required(keyword(members, .code, bytes, "expected an error code"), .code)
    }
  }

  /// Reads an optional part of a message; nil where it has a keyword that only a newer hub knows.
  private func knownPart<T>(_ read: () throws(ValidationError) -> T?) throws(ValidationError) -> T? {
    do throws(ValidationError) { return try read() } catch {
      guard error.isUnknownKeyword else { throw error }
      return nil
    }
  }

  /// The speed of a published position.
  func speed(_ members: JSONMembers) throws(ValidationError) -> Double? {
    guard let value = try nonNegative(members, .speed) else { return nil }
    guard value <= DriverLocation.maximumSpeed else {
      throw ValidationError(.speed, "expected 0…1000 metres per second")
    }
    return value
  }

  func smallCount(_ members: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>) throws(ValidationError) -> Int? {
    guard let value = try count(members, key, bytes) else { return nil }
    guard let small = Int(exactly: value) else { throw ValidationError(key, "expected a smaller number") }
    return small
  }
}

extension MessageID {
  /// The number in a publication's id (`p123`); 0 for another form.
  var publicationNumber: UInt64 {
    unsafe text.withBytes { bytes in
      guard unsafe bytes.first == UInt8(ascii: "p") else { return 0 }
      return unsafe parseUnsignedInteger(UnsafeRawBufferPointer(rebasing: bytes[1...])) ?? 0
    }
  }
}
