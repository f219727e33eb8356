// HTTP on the same port: requests are read one at a time, in order (RFC 9112 §9.3.2), until one upgrades.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport
import HubWebSocket

extension SessionLoop {
  /// Bytes of a connection that speaks HTTP, or of a driver's that waits for its upgrade.
  mutating func receivedHTTP(_ slot: Int, _ bytes: UnsafeRawBufferPointer) {
    guard let exchange = sessions[slot].exchange else { return }  // there until an upgrade
    let room = limits.requestHeadBytes + limits.readBufferBytes + limits.requestBodyBytes
    guard exchange.input.count + bytes.count <= room else {
      // Only a peer that sends while an answer is due can get here.
      return loop.abort(sessions[slot].connection)
    }
    exchange.input.append(bytes)
    if !exchange.isStalled { advance(slot, exchange) }
  }

  /// Handles what is complete, until an answer has to be waited for, or others have to have their turn.
  mutating func advance(_ slot: Int, _ exchange: Exchange) {
    do throws(HTTPError) {
      while sessions[slot].phase == .http, !exchange.isWaiting {
        if exchange.input.isEmpty, exchange.request == nil { return }
        guard mayGoOn(slot, exchange) else { return stall(slot, exchange) }
        guard let request = try nextRequest(exchange) else { return }
        exchange.handled += 1
        requestsDone += 1
        unitsDone += WorkUnits.of(bytes: exchange.body.count) - 1
        counters.requests += 1
        exchange.keepsAlive = request.keepsAlive
        exchange.isHead = request.method == .head
        exchange.origin = nil
        if admitRequest(slot, exchange, request) { route(slot, exchange, request) }
      }
    } catch {
      counters.badRequests += 1
      exchange.keepsAlive = false
      respond(slot, exchange, error.status, error.code, error.explanation)
    }
  }

  /// The next complete request in the exchange's input, with its body in `exchange.body`; nil when more must come.
  private mutating func nextRequest(_ exchange: Exchange) throws(HTTPError) -> RequestHead? {
    if exchange.request == nil {
      let parsed = try exchange.input.withBytes { (bytes) throws(HTTPError) in
        try exchange.parser.parse(bytes, limits: httpLimits)
      }
      guard case .request(let head, let consumed) = parsed else { return nil }
      exchange.input.removeFirst(consumed)
      exchange.body.removeAll()
      exchange.checked = nil
      exchange.request = (head, try BodyReader(head.framing, limits: bodyLimits(head, exchange)))
    }
    guard let (head, unread) = exchange.request else { return nil }
    var body = unread
    let progress = try exchange.input.withBytes { (bytes) throws(HTTPError) in
      try body.read(bytes, into: &exchange.body)
    }
    exchange.input.removeFirst(progress.consumed)
    exchange.request = progress.isComplete ? nil : (head, body)
    return progress.isComplete ? head : nil
  }

  /// A large body is kept only for the endpoints that take one, and from someone who may use it.
  private mutating func bodyLimits(_ head: RequestHead, _ exchange: Exchange) -> HTTPLimits {
    guard head.framing != .none else { return httpLimits }
    let isPosted =
      head.isPath("/v1/locations") || head.isPath("/v1/trips") || head.isPath("/v1/drivers/within")
      || head.isPath("/v1/notifications")
    let isWanted =
      switch head.method {
      case .post: isPosted
      case .put: head.isPath(under: "/v1/fences/")
      case .patch: head.isPath(under: "/v1/trips/")
      case .get, .head, .delete, .options: false
      }
    guard isWanted else { return unwantedBodyLimits }
    do throws(CredentialError) {
      _ = try credential(of: head, exchange)
      return httpLimits
    } catch {
      return unwantedBodyLimits
    }
  }

  mutating func checkRequestDeadline(_ slot: Int) {
    guard let exchange = sessions[slot].exchange else { return }
    if now.uptime >= exchange.deadline {
      let id = sessions[slot].connection
      // After a stall of the loop these have not waited too long: they wait for nobody but the loops.
      if isAwaitingMetrics(id) || exchange.isStalled && !loop.isBlocked(id) {
        exchange.deadline = now.uptime + nanoseconds(limits.keepAliveSeconds)
        return loop.setTimer(id, at: exchange.deadline)
      }
      counters.requestTimeouts += 1
      guard exchange.isWaiting, exchange.unsent == nil, sessions[slot].phase == .http else {
        return loop.abort(id)
      }
      // It was asked in time: most likely for what the disk takes too long over.
      exchange.keepsAlive = false
      return finish(
        slot, exchange, .serviceUnavailable, .storageFull,
        "not stored in time; it may still be: send the same again, which changes nothing then",
        retryAfter: Int(limits.retryAfterSeconds))
    }
    loop.setTimer(sessions[slot].connection, at: exchange.deadline)
  }

  // MARK: Routes

  private mutating func route(_ slot: Int, _ exchange: Exchange, _ request: RequestHead) {
    do throws(HTTPError) {
      guard let endpoint = Endpoint(path: try request.pathSegments()) else {
        return respond(slot, exchange, .notFound, .notFound, "there is no such endpoint")
      }
      guard !exchange.isAdmin || endpoint.isForOperators else {
        return respond(slot, exchange, .notFound, .notFound, "the admin port has /healthz, /readyz and /metrics only")
      }
      if isPreflight(exchange, request) { return answerPreflight(slot, exchange, endpoint) }
      guard endpoint.allows(request.method) else { return refuseMethod(slot, exchange, endpoint) }
      switch endpoint {
      case .socket: upgrade(slot, exchange, request)
      case .health: respond(slot, exchange, .ok, text: "ok\n")
      case .readiness: ready(slot, exchange)
      case .metrics: if admitOperator(slot, exchange, request) { metrics(slot, exchange) }
      case .locations, .nearby, .within, .driver, .trips, .trip, .track, .fences, .fence, .notifications:
        try serve(slot, exchange, request, endpoint)
      }
    } catch {
      respond(slot, exchange, error.status, error.code, error.explanation)
    }
  }

  /// The endpoints that need a credential.
  private mutating func serve(
    _ slot: Int, _ exchange: Exchange, _ request: RequestHead, _ endpoint: Endpoint
  ) throws(HTTPError) {
    let credential: Credential
    do throws(CredentialError) {
      credential = try self.credential(of: request, exchange)
    } catch {
      return refuse(slot, exchange, error)
    }
    guard let time = TimeFormat(queryValue: request.query.text("time")) else {
      return respond(slot, exchange, .badRequest, .badMessage, TimeFormat.queryHelp)
    }
    exchange.time = time
    if let fault = request.query.fault(knowing: endpoint.parameters) {
      return respond(slot, exchange, .badRequest, .badMessage, "\(fault)")
    }
    switch endpoint {
    case .locations: postLocations(slot, exchange, credential)
    case .nearby, .within: drivers(slot, exchange, request, endpoint, credential)
    case .driver(let id): driver(slot, exchange, id, credential)
    case .trips where request.method == .post: requestTrip(slot, exchange, credential)
    case .trips: try trips(slot, exchange, request, credential)
    case .trip(let id) where request.method == .patch: changeTrip(slot, exchange, id, credential)
    case .trip(let id): trip(slot, exchange, id, credential)
    case .track(let id, let format): try track(slot, exchange, request, id, format, credential)
    case .fences: listFences(slot, exchange, request, credential)
    case .fence(let id): fence(slot, exchange, request, id, credential)
    case .notifications: postNotification(slot, exchange, credential)
    case .socket, .health, .readiness, .metrics: break
    }
  }

  private mutating func refuseMethod(_ slot: Int, _ exchange: Exchange, _ endpoint: Endpoint) {
    var body = ByteBuffer()
    JSONWriter.writeError(.badMessage, message: "allowed here: \(endpoint.allowedMethods)", into: &body)
    counters.errors[Int(ErrorCode.badMessage.rawValue)] += 1
    respond(
      slot, exchange,
      Response(
        .methodNotAllowed, contentType: "application/json", body: body.array(),
        fields: [OutgoingField("Allow", endpoint.allowedMethods)]))
  }

  private mutating func ready(_ slot: Int, _ exchange: Exchange) {
    switch shared.lifecycle.phase(at: now.uptime) {
    case .serving: respond(slot, exchange, .ok, text: "ready\n")
    case .unready, .draining: respond(slot, exchange, .serviceUnavailable, .shuttingDown, "the hub is shutting down")
    }
  }

  /// `POST /v1/locations`: a fix or a batch, of a driver without a socket.
  private mutating func postLocations(_ slot: Int, _ exchange: Exchange, _ credential: Credential) {
    guard credential.role == .driver else {
      return respond(slot, exchange, .forbidden, .forbidden, "only a driver sends locations")
    }
    let batch: LocationBatch
    do throws(MessageError) {
      batch = try exchange.body.withBytes { (bytes) throws(MessageError) in
        try reader.readLocations(bytes, time: exchange.time)
      }
    } catch {
      return respond(
        slot, exchange, error.code == .tooLarge ? .contentTooLarge : .badRequest, error.code, error.text)
    }
    charge(exchange, fixes: batch.fixes.count)
    guard let messageID = MessageID("http") else { return }
    exchange.isWaiting = true
    inputs.append(
      .batch(
        BatchInput(
          session: reference(sessions[slot].connection), driverID: credential.id, messageID: messageID,
          sent: now.timestamp, received: now, batch: batch,
          tripIsGranted: batch.tripID.map(credential.names(trip:)) ?? false)))
    tellVehicle(credential)
  }
}
