// HTTP on the same port: what comes of requests is brought to the hub, to the reader of the journal and to the socket.
// Who may ask what, and what is asked, stands in HTTP/: handlers give an outcome, which is applied here.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport

extension SessionLoop {
  private func context(_ slot: Int) -> HTTPContext {
    let hosts = configuration.allowsDevelopmentCredentials ? configuration.hosts : nil
    return HTTPContext(
      settings: http, now: now, session: reference(sessions[slot].connection),
      phase: shared.lifecycle.phase(at: now.uptime),
      credentials: CredentialCheck(
        access: access, generation: accessGeneration, developmentHosts: hosts, now: now.timestamp),
      compression: configuration.compression ? fanOut.compressionPolicy : nil)
  }

  // MARK: Requests

  /// Bytes of a connection that speaks HTTP, or of a driver's that waits for its upgrade.
  mutating func receivedHTTP(_ slot: Int, _ bytes: UnsafeRawBufferPointer) {
    guard let exchange = sessions[slot].exchange else { return }  // there until an upgrade
    let room = limits.requestHeadBytes + limits.readBufferBytes + limits.requestBodyBytes
    guard exchange.input.count + bytes.count <= room else {
      // Only a peer that sends while an answer is due can get here.
      return loop.abort(sessions[slot].connection)
    }
    exchange.input.append(bytes)
    advance(slot, exchange)
  }

  /// Handles what is complete, until an answer has to be waited for, or others have to have their turn.
  private mutating func advance(_ slot: Int, _ exchange: Exchange) {
    do throws(HTTPError) {
      while case .reading = exchange.state, !exchange.isIdle {
        guard mayHandle(slot, exchange) else { return stall(slot, exchange) }
        guard let request = try nextRequest(slot, exchange) else { return }
        exchange.countRequest()
        budget.spendRequest()
        budget.spend(units: WorkUnits.of(bytes: request.body.count) - 1)
        counters.requests += 1
        handle(slot, exchange, request)
      }
    } catch {
      counters.badRequests += 1
      refuse(slot, exchange, nil, Refusal(error))
    }
  }

  /// The next request that is complete, with its body; nil when more must come.
  private mutating func nextRequest(_ slot: Int, _ exchange: Exchange) throws(HTTPError) -> HTTPRequest? {
    if let head = try exchange.readHead(limits: http.headLimits) {
      let request = HTTPRequest(head, from: exchange.peer, origins: configuration.origins)
      let isWanted = head.framing != .none && Routes.wantsBody(of: request, context(slot))
      takeWork(of: request)
      // RFC 9110 §10.1.1: who waits with its body is told to send it, or has its answer without it. What it then sends
      // all the same is not read.
      let isHeldBack = head.expectsContinue && exchange.input.isEmpty
      if isHeldBack, !isWanted {
        request.keepsConnection = false
        return request
      }
      try exchange.beginBody(of: request, limits: isWanted ? http.headLimits : http.unwantedBodyLimits)
      if isHeldBack { sendContinue(slot) }
    }
    return try exchange.readBody()
  }

  private func sendContinue(_ slot: Int) {
    let start = loop.arena.count
    Response.writeContinue(into: &loop.arena)
    loop.send(start..<loop.arena.count, to: sessions[slot].connection)
  }

  private mutating func handle(_ slot: Int, _ exchange: Exchange, _ request: HTTPRequest) {
    let context = context(slot)
    let outcome = Result { () throws(Refusal) in
      try context.admit(request, isOverAddressLimit: exchange.isOverAddressLimit)
      return try Routes.outcome(of: request, context)
    }
    takeWork(of: request)
    request.body.removeAll(keepingAtMost: 0)  // who waits for an answer keeps no body
    apply(slot, exchange, request, outcome)
  }

  /// Counts what looking at a request has cost.
  private mutating func takeWork(of request: HTTPRequest) {
    let work = request.takeWork()
    counters.credentialChecks += work.credentialChecks
    budget.spend(units: work.units + work.checkUnits)
    guard request.rateKey != 0, work.units > 0 else { return }
    shared.admissions.chargeMore(request.rateKey, work.units, now: now.uptime)
  }

  // MARK: Outcomes

  private mutating func apply(
    _ slot: Int, _ exchange: Exchange, _ request: HTTPRequest, _ outcome: Result<Outcome, Refusal>
  ) {
    do throws(Refusal) {
      switch try outcome.get() {
      case .respond(let response, let room): respond(slot, exchange, request, response, room: room)
      case .ask(let questions, let awaited):
        exchange.state = .waiting(request, for: awaited)
        for question in questions { inputs.append(question) }
      case .query(let question, let awaited):
        do throws(ErrorReply) { try ask(question, for: asker(slot, request)) } catch { throw Refusal(error) }
        exchange.state = .waiting(request, for: awaited)
      case .consult(let question):
        guard let reader = shared.history else { return }  // or nothing would be asked of it
        try pending.consult(reader, question, for: asker(slot, request), shared.admissions, &counters)
        exchange.state = .waiting(request, for: .history)
        exchange.deadline = now.uptime + nanoseconds(limits.historySeconds)  // it is the reader's turn, not the peer's
      case .upgrade(let upgrade): try beginUpgrade(slot, exchange, request, upgrade)
      case .metrics: beginMetrics(slot, exchange, request)
      }
    } catch {
      refuse(slot, exchange, request, error)
    }
  }

  private func asker(_ slot: Int, _ request: HTTPRequest) -> Asker {
    Asker(session: reference(sessions[slot].connection), credential: request.caller!, replyTo: nil)
  }

  /// What a request waited for is there.
  mutating func finish(
    _ slot: Int, _ exchange: Exchange, _ request: HTTPRequest, _ outcome: Result<Outcome, Refusal>
  ) {
    apply(slot, exchange, request, outcome)
    advance(slot, exchange)
    reconcileInput(slot)
  }

  // MARK: Answers

  /// The hub's answer to a request, if it still waits.
  mutating func answerRequest(_ slot: Int, _ answer: HubAnswer) {
    guard let exchange = sessions[slot].exchange, case .waiting(let request, let awaited) = exchange.state else {
      return
    }
    let context = context(slot)
    finish(
      slot, exchange, request,
      Result { () throws(Refusal) in try answer.outcome(for: request, awaited, context) })
  }

  /// The answer to a request that was made over several turns, if it still waits.
  mutating func answerRequest(_ slot: Int, _ result: Result<Response, Refusal>, room: MemoryReservation? = nil) {
    guard let exchange = sessions[slot].exchange, case .waiting(let request, _) = exchange.state else { return }
    finish(slot, exchange, request, result.map { .respond($0, room: room) })
  }

  /// Brings what the reader of the journal has found to those who asked and are still there.
  mutating func deliverHistory() {
    for answer in pending.takeFound(shared.admissions) {
      guard let slot = slot(of: answer.session) else { continue }
      answerRequest(slot, answer.result, room: answer.room)
      fanOut.flushIfLarge()
    }
  }

  /// Where there are several loops, each is woken to tell its counters, and the request waits for that.
  private mutating func beginMetrics(_ slot: Int, _ exchange: Exchange, _ request: HTTPRequest) {
    guard hub.isShared else {
      publishCounters()
      return respond(slot, exchange, request, metricsPage())
    }
    let question = shared.metrics.hub.ask()
    publishCounters()
    hub.wakeOthers()
    exchange.state = .waiting(request, for: .metrics)
    pending.awaitCounters(reference(sessions[slot].connection), question: question, now: now.uptime)
  }

  /// Answers those for whom everybody has told its counters.
  mutating func answerMetrics() {
    let metrics = shared.metrics
    for page in pending.takeCounted(now: now.uptime, isAnswered: { metrics.isAnswered($0) }) {
      guard let slot = slot(of: page.session) else { continue }
      if !page.isWhole { counters.count(.metricsTime) }
      answerRequest(slot, .success(metricsPage()))
    }
  }

  private func metricsPage() -> Response {
    shared.metricsPage(configuration, connectionsPerLoop: loop.limits.maximumConnections)
  }

  // MARK: Responses

  /// `request`: nil where it could not be read.
  mutating func refuse(_ slot: Int, _ exchange: Exchange, _ request: HTTPRequest?, _ refusal: Refusal) {
    counters.count(refusal)
    if refusal.endsConnection { request?.keepsConnection = false }
    respond(slot, exchange, request, refusal.response)
  }

  private mutating func respond(
    _ slot: Int, _ exchange: Exchange, _ request: HTTPRequest?, _ response: Response, room: MemoryReservation? = nil
  ) {
    let start = loop.arena.count
    // From the signal on, so that a client finds another hub before this one closes the connection (RFC 9112 §9.6).
    let isServing = shared.lifecycle.phase(at: now.uptime) == .serving
    var response = response
    response.fields += http.corsFields(request?.origin ?? .noOrigin)
    exchange.write(
      response, to: request, keepsConnection: request?.keepsConnection == true && isServing, room: room,
      pieceBytes: limits.answerPieceBytes, into: &loop.arena)
    counters.count(status: response.status.code)
    exchange.enter(turn: loop.turn)  // the hub's answer may come in another one than the request
    sendWritten(slot, exchange, from: start)
  }

  /// Sends what was written of an answer: all of it, or a piece.
  private mutating func sendWritten(_ slot: Int, _ exchange: Exchange, from start: Int) {
    let connection = sessions[slot].connection
    loop.send(start..<loop.arena.count, to: connection)
    exchange.countAnswer(bytes: loop.arena.count - start)
    switch exchange.state {
    case .reading, .stalled, .waiting, .admitting: setDeadline(slot, exchange, seconds: limits.keepAliveSeconds)
    case .sending:
      setDeadline(slot, exchange, seconds: limits.keepAliveSeconds)  // for the next piece
      stall(slot, exchange)
    case .over:
      sessions[slot].beginClosing()
      loop.close(connection)
      loop.setTimer(connection, at: now.uptime + nanoseconds(limits.closingSeconds))
    }
  }

  private func setDeadline(_ slot: Int, _ exchange: Exchange, seconds: Double) {
    exchange.deadline = now.uptime + nanoseconds(seconds)
    loop.setTimer(sessions[slot].connection, at: exchange.deadline)
  }

  // MARK: Turns and time

  /// Whether another request may be handled in this turn. Some answers are long (1,000 drivers: 250 KiB), so their
  /// bytes count too: what one turn makes for a peer that reads nothing stays within its outbox.
  private func mayHandle(_ slot: Int, _ exchange: Exchange) -> Bool {
    exchange.enter(turn: loop.turn)
    return exchange.handled < limits.requestsPerTurn && exchange.answeredBytes < limits.answerBytesPerTurn
      && budget.hasRoomForRequest && !loop.isBlocked(sessions[slot].connection)
  }

  /// Enough requests were answered in this turn.
  private mutating func stall(_ slot: Int, _ exchange: Exchange) {
    exchange.stall()
    loop.pauseReading(sessions[slot].connection)
    budget.wait(sessions[slot].connection)
  }

  /// A turn later: goes on with what waited.
  mutating func resume(_ slot: Int, _ exchange: Exchange) {
    exchange.resume()
    if case .sending = exchange.state {
      let start = loop.arena.count
      exchange.writePiece(atMost: limits.answerPieceBytes, into: &loop.arena)
      budget.spendRequest()  // as much work as another one
      sendWritten(slot, exchange, from: start)
    }
    advance(slot, exchange)
    if !exchange.isStalled { loop.resumeReading(sessions[slot].connection) }
  }

  mutating func checkRequestDeadline(_ slot: Int) {
    guard let exchange = sessions[slot].exchange else { return }
    let id = sessions[slot].connection
    guard now.uptime >= exchange.deadline else { return loop.setTimer(id, at: exchange.deadline) }
    switch exchange.state {
    // After a stall of the loop these have not waited too long: they wait for nobody but the loops.
    case .waiting(_, for: .metrics): return setDeadline(slot, exchange, seconds: limits.keepAliveSeconds)
    case .stalled where !loop.isBlocked(id), .sending where !loop.isBlocked(id):
      return setDeadline(slot, exchange, seconds: limits.keepAliveSeconds)
    case .waiting(let request, _):
      // It was asked in time: most likely for what the disk takes too long over.
      counters.requestTimeouts += 1
      var refusal = Refusal(
        .storageFull, "not stored in time; it may still be: send the same again, which changes nothing then",
        retryAfter: Int(limits.retryAfterSeconds))
      refusal.endsConnection = true
      finish(slot, exchange, request, .failure(refusal))
    case .reading, .stalled, .sending, .admitting, .over:
      counters.requestTimeouts += 1
      loop.abort(id)
    }
  }

  /// There is no room for what a request has sent so far: that is dropped, and the peer told.
  mutating func refuseInput(_ slot: Int, _ exchange: Exchange) {
    guard !exchange.isAnswering, sessions[slot].phase == .http else {
      return loop.abort(sessions[slot].connection)  // an answer is due, and it goes on sending
    }
    exchange.dropInput()
    refuse(
      slot, exchange, nil,
      Refusal(
        .rateLimited, "this hub has too many incomplete requests", retryAfter: Int(limits.retryAfterSeconds)))
  }
}
