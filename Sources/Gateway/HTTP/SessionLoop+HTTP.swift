// HTTP on the same port: what comes of requests is brought to the hub, to the reader of the journal and to the socket.
// Who may ask what, and what is asked, stands beside this file: handlers give an outcome, which is applied here.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport

extension SessionLoop {
  private func context(_ exchange: Exchange) -> HTTPContext {
    HTTPContext(
      settings: http, now: now, session: reference(exchange.connection),
      phase: shared.lifecycle.phase(at: now.uptime),
      credentials: CredentialCheck(access, accessGeneration, configuration, now: now.timestamp),
      compression: configuration.compression ? fanOut.compressionPolicy : nil)
  }

  // MARK: Requests

  /// Bytes of a connection that speaks HTTP, or of a driver's that waits for its upgrade.
  mutating func receivedHTTP(_ slot: Int, _ bytes: UnsafeRawBufferPointer) {
    guard let exchange = sessions[slot].exchange else { return }  // there until an upgrade
    let room = limits.requestHeadBytes + limits.readBufferBytes + limits.requestBodyBytes
    // Only a peer that sends while an answer is due can get there.
    guard exchange.input.count + bytes.count <= room else { return loop.abort(exchange.connection) }
    exchange.input.append(bytes)
    advance(exchange)
  }

  /// Handles what is complete, until an answer has to be waited for, or others have to have their turn.
  private mutating func advance(_ exchange: Exchange) {
    do throws(HTTPError) {
      while case .reading = exchange.state, !exchange.isIdle {
        guard exchange.mayAdvance(in: loop.turn, limits), budget.hasRoomForRequest, !loop.isBlocked(exchange.connection)
        else { return stall(exchange) }
        switch try Routes.read(exchange, context(exchange)) {
        case .incomplete: return
        case .head(let request, let limits, let isHeldBack):
          takeWork(of: request)
          try exchange.beginBody(of: request, limits: limits)
          if isHeldBack { loop.send(to: exchange.connection) { Response.writeContinue(into: &$0) } }
        case .complete(let request): handle(request, exchange)
        }
      }
    } catch {
      counters.badRequests += 1
      refuse(Refusal(error), to: nil, exchange)
    }
  }

  private mutating func handle(_ request: HTTPRequest, _ exchange: Exchange) {
    exchange.handled += 1
    budget.spendRequest()
    budget.spend(bytes: request.body.count)
    counters.requests += 1
    let context = context(exchange)
    let outcome = Result { () throws(Refusal) in
      try context.admit(request, isOverAddressLimit: exchange.isOverAddressLimit)
      return try Routes.outcome(of: request, context)
    }
    takeWork(of: request)
    request.body.removeAll(keepingAtMost: 0)  // who waits for an answer keeps no body
    apply(outcome, to: request, exchange)
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

  private mutating func apply(_ outcome: Result<Outcome, Refusal>, to request: HTTPRequest, _ exchange: Exchange) {
    do throws(Refusal) {
      switch try outcome.get() {
      case .respond(let response, let room): respond(response, to: request, exchange, room: room)
      case .ask(let questions, let awaited):
        for question in questions { inputs.append(question) }
        exchange.state = .waiting(request, for: awaited)
      case .query(let question, let awaited):
        do throws(ErrorReply) { try ask(question, for: asker(request, exchange)) } catch { throw Refusal(error) }
        exchange.state = .waiting(request, for: awaited)
      case .consult(let question):
        try pending.consult(question, for: asker(request, exchange), shared, &counters)
        exchange.state = .waiting(request, for: .history)
        exchange.deadline = now.uptime + nanoseconds(limits.historySeconds)  // it is the reader's turn, not the peer's
      case .upgrade(let upgrade): try beginUpgrade(upgrade, of: request, exchange)
      case .metrics: beginMetrics(request, exchange)
      }
    } catch {
      refuse(error, to: request, exchange)
    }
  }

  private func asker(_ request: HTTPRequest, _ exchange: Exchange) -> Asker {
    Asker(session: reference(exchange.connection), credential: request.caller!, replyTo: nil)  // a handler knew it
  }

  /// What a request waited for is there.
  mutating func finish(_ outcome: Result<Outcome, Refusal>, to request: HTTPRequest, _ exchange: Exchange) {
    apply(outcome, to: request, exchange)
    advance(exchange)
    reconcileInput(exchange.slot)
  }

  /// The answer to a request, if it still waits.
  mutating func answerRequest(of session: SessionRef, _ answer: HubAnswer) {
    guard let slot = slot(of: session), let exchange = sessions[slot].exchange,
      case .waiting(let request, let awaited) = exchange.state
    else { return }
    let context = context(exchange)
    finish(Result { () throws(Refusal) in try answer.outcome(for: request, awaited, context) }, to: request, exchange)
  }

  /// Brings what the reader of the journal has found to those who asked.
  mutating func deliverHistory() {
    guard pending.historyQuestions > 0 else { return }
    for answer in pending.takeFound(shared.admissions) {
      answerRequest(of: answer.session, .made(answer.result, room: answer.room))
      fanOut.flushIfLarge()
    }
  }

  /// Where there are several loops, each is woken to tell its counters, and the request waits for that.
  private mutating func beginMetrics(_ request: HTTPRequest, _ exchange: Exchange) {
    let question = hub.isShared ? shared.metrics.hub.ask() : 0
    publishCounters()
    guard hub.isShared else { return respond(http.metricsPage(), to: request, exchange) }
    hub.wakeOthers()
    exchange.state = .waiting(request, for: .metrics)
    pending.awaitCounters(reference(exchange.connection), question: question, now: now.uptime)
  }

  /// Answers those for whom everybody has told its counters.
  mutating func answerMetrics() {
    let metrics = shared.metrics
    for page in pending.takeCounted(now: now.uptime, isAnswered: { metrics.isAnswered($0) }) {
      if !page.isWhole { counters.count(.metricsTime) }
      answerRequest(of: page.session, .made(.success(http.metricsPage())))
    }
  }

  // MARK: Responses

  /// `request`: nil where it could not be read.
  private mutating func refuse(_ refusal: Refusal, to request: HTTPRequest?, _ exchange: Exchange) {
    if refusal.endsConnection { request?.keepsConnection = false }
    counters.count(refusal)
    respond(refusal.response, to: request, exchange)
  }

  private mutating func respond(
    _ response: Response, to request: HTTPRequest?, _ exchange: Exchange, room: MemoryReservation? = nil
  ) {
    counters.count(status: response.status.code)
    responder.respond(response, to: request, exchange, room: room)
    settle(exchange)
  }

  /// An answer was handed over, or a piece of it.
  private mutating func settle(_ exchange: Exchange) {
    switch exchange.state {
    case .reading, .stalled, .waiting, .admitting: break
    case .sending: stall(exchange)
    case .over: sessions[exchange.slot].beginClosing()
    }
  }

  // MARK: Turns and time

  /// Enough was answered in this turn.
  private mutating func stall(_ exchange: Exchange) {
    exchange.stall()
    loop.pauseReading(exchange.connection)
    budget.wait(exchange.connection)
  }

  /// A turn later: goes on with what waited. The socket is read again only where nothing is left to wait.
  mutating func resume(_ exchange: Exchange) {
    exchange.resume()
    if case .sending = exchange.state {
      budget.spendRequest()  // as much work as another one
      responder.sendPiece(exchange)
      settle(exchange)
    }
    advance(exchange)
    if !exchange.isStalled { loop.resumeReading(exchange.connection) }
  }

  mutating func checkRequestDeadline(_ slot: Int) {
    guard let exchange = sessions[slot].exchange else { return }
    let id = exchange.connection
    guard now.uptime >= exchange.deadline else { return loop.setTimer(id, at: exchange.deadline) }
    switch exchange.state {
    // After a stall of the loop these have not waited too long: they wait for nobody but the loops.
    case .waiting(_, for: .metrics): return responder.extend(exchange)
    case .stalled where !loop.isBlocked(id), .sending where !loop.isBlocked(id): return responder.extend(exchange)
    case .waiting(let request, _): finish(.failure(.notStoredInTime(limits)), to: request, exchange)
    case .reading, .stalled, .sending, .admitting, .over: loop.abort(id)
    }
    counters.requestTimeouts += 1
  }

  /// There is no room for what a request has sent so far: that is dropped, and the peer told.
  mutating func refuseInput(_ exchange: Exchange) {
    // An answer may be due, and it goes on sending.
    guard exchange.dropInput() else { return loop.abort(exchange.connection) }
    let message = "this hub has too many incomplete requests"
    refuse(Refusal(.rateLimited, message, retryAfter: Int(limits.retryAfterSeconds)), to: nil, exchange)
  }
}
