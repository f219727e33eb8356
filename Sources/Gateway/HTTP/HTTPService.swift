// One loop's HTTP, from bytes to an outcome, and from a response to the socket: how far each connection may go in a
// turn, what it is charged, and its timeouts. SessionLoop+HTTP carries out the outcome.
import HubBytes
import HubCore
import HubDeflate
import HubHTTP
import HubMessages
import HubRuntime
import HubSystem
import HubTransport
import HubWebSocket

struct HTTPService {
  let loop: EventLoop
  let settings: HTTPSettings
  private let compressor = Compressor()

  /// The result of reading.
  enum Step {
    /// Bytes are missing, an answer is awaited, or others have their turn.
    case wait
    case handled(HTTPRequest, Result<Outcome, Refusal>)
    /// The bytes are no request, or no body of one.
    case failed(HTTPRequest?, Refusal)
  }

  init(_ loop: EventLoop, _ settings: HTTPSettings) {
    self.loop = loop
    self.settings = settings
  }

  private var limits: Limits { settings.configuration.limits }
  private var gzip: Gzip { compressor.gzip }
  private var now: Int64 { loop.now.uptimeNanoseconds }

  // MARK: Requests

  /// The context for handlers.
  func context(
    _ session: SessionRef, _ access: Current<TokenAccess?>, _ compression: @autoclosure () -> DeflatePolicy, now: Moment
  ) -> HTTPContext {
    HTTPContext(
      settings: settings, now: now, session: session, phase: settings.shared.lifecycle.phase(at: now.uptime),
      // Member by member: a copy of the whole configuration retains what it has, for each request.
      credentials: CredentialCheck(
        access: access.value, generation: access.generation,
        developmentHosts: settings.configuration.allowsDevelopmentCredentials ? settings.configuration.hosts : nil,
        certificates: settings.configuration.clientCertificates, now: now.timestamp),
      compression: settings.configuration.compression ? compression() : nil)
  }

  /// Takes bytes. Where an answer is due and too many wait behind its request, the socket is not read until then.
  func take(_ bytes: UnsafeRawBufferPointer, _ exchange: Exchange) {
    unsafe exchange.input.append(bytes)
    if !exchange.mayRead(atMost: limits.pipelinedBytes) { loop.pauseReading(exchange.connection) }
  }

  /// Handles the next complete request.
  func next(
    _ exchange: Exchange, _ context: HTTPContext, _ budget: inout TurnBudget, _ counters: inout LoopCounters
  ) -> Step {
    // The handshake is done before the first bytes of a request.
    if !settings.configuration.clientCertificates.isEmpty, exchange.peer.certificate == nil, !exchange.isIdle {
      exchange.peer.certificate = loop.peerCertificate(exchange.connection)
    }
    do throws(HTTPError) {
      while case .reading = exchange.state, !exchange.isIdle {
        guard exchange.mayAdvance(in: loop.turn, limits), budget.hasRoomForRequest, !loop.isBlocked(exchange.connection)
        else {
          budget.stall(exchange)
          break
        }
        switch try Routes.read(exchange, context) {
        case .incomplete:
          if let request = exchange.reading { charge(request, &budget, &counters) }
          if exchange.beginTime(until: now + nanoseconds(limits.handshakeSeconds)) {
            loop.setTimer(exchange.connection, at: exchange.deadline)
          }
          return .wait
        case .head(let request, let limits, let isHeldBack):
          charge(request, &budget, &counters)
          do throws(HTTPError) { try exchange.beginBody(of: request, limits: limits) } catch {
            return failure(error, of: request, &counters)
          }
          if isHeldBack { loop.send(to: exchange.connection) { Response.writeContinue(into: &$0) } }
        case .complete(let request):
          exchange.handled += 1
          request.completed = ClockReading.uptime()
          return .handled(request, handle(request, exchange, context, &budget, &counters))
        }
      }
      return .wait
    } catch {
      guard let request = exchange.reading else { return failure(error, of: nil, &counters) }
      request.charge(framing: exchange.input.count)
      charge(request, &budget, &counters)
      chargeUnfinished(exchange)
      return failure(error, of: request, &counters)
    }
  }

  /// Drops an incomplete request. False where an answer is due: then the connection is aborted, for its peer keeps
  /// sending.
  func dropInput(_ exchange: Exchange) -> Bool {
    chargeUnfinished(exchange)
    let isDropped = exchange.dropInput()
    if !isDropped { loop.abort(exchange.connection) }
    return isDropped
  }

  /// Charges the body that a request has had so far, which gets no further: a complete one is charged for all of it.
  func chargeUnfinished(_ exchange: Exchange) {
    guard let request = exchange.reading, request.rateKey != 0 else { return }
    settings.shared.admissions.chargeMore(request.rateKey, WorkUnits.of(bytes: request.body.count) - 1, now: now)
  }

  /// The outcome for malformed input. The connection ends, since it is unknown where the next request would begin.
  private func failure(_ error: HTTPError, of request: HTTPRequest?, _ counters: inout LoopCounters) -> Step {
    counters.badRequests += 1
    var refusal = Refusal(error)
    refusal.endsConnection = true
    return .failed(request, refusal)
  }

  private func handle(
    _ request: HTTPRequest, _ exchange: Exchange, _ context: HTTPContext, _ budget: inout TurnBudget,
    _ counters: inout LoopCounters
  ) -> Result<Outcome, Refusal> {
    budget.spendRequest()
    budget.spend(bytes: request.body.count)
    counters.requests += 1
    let outcome = Result { () throws(Refusal) in
      try context.admit(
        request, isOverAddressLimit: exchange.isOverAddressLimit, isForAllOrigins: Routes.isForAllOrigins(request))
      return try Routes.outcome(of: request, context)
    }
    charge(request, &budget, &counters)
    request.body.removeAll(keepingAtMost: 0)  // no body is kept while an answer is awaited
    return outcome
  }

  /// Charges a request's work.
  private func charge(_ request: HTTPRequest, _ budget: inout TurnBudget, _ counters: inout LoopCounters) {
    let work = request.takeWork()
    counters.credentialChecks += work.credentialChecks
    budget.spend(units: work.units + work.checkUnits)
    guard request.rateKey != 0, work.units + work.unitsLater > 0 else { return }
    settings.shared.admissions.chargeMore(request.rateKey, work.units + work.unitsLater, now: now)
  }

  // MARK: Responses

  /// Refuses a request, nil where its head could not be read.
  ///
  /// Gives the entry for the audit trail.
  func refuse(
    _ refusal: Refusal, to request: HTTPRequest?, _ exchange: Exchange, _ budget: inout TurnBudget,
    _ counters: inout LoopCounters
  ) -> AuditEntry? {
    if refusal.endsConnection { request?.keepsConnection = false }
    refusal.count(in: &counters)
    let posted = request?.postedMessage
    let response = posted.map { $0.response(refusal) } ?? refusal.response
    respond(response, to: request, exchange, &budget, &counters)
    guard let request, let action = request.audit else { return nil }
    let source = request.auditSource(action, trusted: settings.configuration.trustedProxies)
    return AuditEntry(source, about: nil, status: Int(response.status.code))
  }

  /// Answers a request, nil where its head could not be read. `memory`: what the journal's reader has reserved.
  func respond(
    _ response: Response, to request: HTTPRequest?, _ exchange: Exchange, memory: MemoryReservation? = nil,
    _ budget: inout TurnBudget, _ counters: inout LoopCounters
  ) {
    var memory = memory
    if memory == nil, let request, request.isReadOnly, !response.isShort(limits) {
      memory = MemoryReservation(response.body.count, of: settings.shared.longAnswers, by: request.memoryOwner)
      guard memory != nil else {
        _ = refuse(.tooMuchUnread, to: request, exchange, &budget, &counters)
        return
      }
    }
    counters.count(status: response.status.code)
    if let request, let family = request.family, request.completed > 0 {
      counters.requestTimes[Int(family.rawValue)].record(nanoseconds: ClockReading.uptime() - request.completed)
    }
    // No connection is kept after the signal to stop, so that clients find another hub early (RFC 9112 §9.6).
    let isServing = settings.shared.lifecycle.phase(at: now) == .serving
    var response = response
    response.fields += settings.corsFields(request?.origin ?? .noOrigin, for: response)
    if let request, request.rateKey != 0 {
      response.fields += settings.shared.admissions.allowance(request.rateKey, now: now).fields
    }
    let compression = compression(of: &response, to: request, &budget)
    exchange.enter(turn: loop.turn)  // the hub's answer may come in a later turn
    send(exchange, &budget) {
      exchange.write(
        response, to: request, keepsConnection: request?.keepsConnection == true && isServing, memory: memory,
        pieceBytes: compression == nil ? limits.answerPieceBytes : limits.compressedPieceBytes, compression, into: &$0)
    }
  }

  /// How to compress a response; nil where it is not compressed, or short enough to be compressed at once. A long one
  /// is sent in pieces, each in a turn of its own: all of 287 KB took 1.1 ms, which delays others' positions, a piece
  /// of 16 KiB 0.04 ms.
  private func compression(
    of response: inout Response, to request: HTTPRequest?, _ budget: inout TurnBudget
  ) -> Gzip? {
    guard let request, response.body.count > limits.gzipFreeBytes, !response.isCoded else { return nil }
    response.fields.append(OutgoingField("Vary", "Accept-Encoding"))
    // Pieces are chunks, which HTTP/1.0 does not have (RFC 9112 §6.1).
    let isShort = response.body.count <= limits.compressedPieceBytes
    guard request.head.fields.acceptGzip, request.head.method != .head, isShort || request.head.version == .http11
    else { return nil }
    if request.rateKey != 0 {
      settings.shared.admissions.chargeMore(request.rateKey, WorkUnits.of(bytes: response.body.count) - 1, now: now)
    }
    let coding = OutgoingField("Content-Encoding", "gzip")
    guard isShort else {
      response.fields.append(coding)
      return gzip
    }
    budget.spend(bytes: 2 * response.body.count)
    let compressed = gzip.compress(response.body)
    guard compressed.count < response.body.count else { return nil }
    response.fields.append(coding)
    response.body = compressed
    return nil
  }

  /// Continues, a turn later, with the next piece of a long answer, or with reading.
  func resume(_ exchange: Exchange, _ budget: inout TurnBudget) {
    exchange.resume()
    guard case .sending = exchange.state else { return }
    budget.spendRequest()  // a piece is as much work as a request
    let pieceBytes = pieceBytes(of: exchange, &budget)
    send(exchange, &budget) { exchange.writePiece(atMost: pieceBytes, gzip, into: &$0) }
  }

  /// Compressing a piece is twice the work of reading as many bytes.
  private func pieceBytes(of exchange: Exchange, _ budget: inout TurnBudget) -> Int {
    guard exchange.isCompressing else { return limits.answerPieceBytes }
    budget.spend(bytes: 2 * limits.compressedPieceBytes)
    return limits.compressedPieceBytes
  }

  private func send(_ exchange: Exchange, _ budget: inout TurnBudget, _ write: (inout ByteBuffer) -> Void) {
    exchange.answeredBytes += loop.send(to: exchange.connection, write)
    if case .over = exchange.state { end(exchange) } else { extend(exchange) }
    if case .sending = exchange.state { budget.stall(exchange) }
  }

  /// Closes a connection after its last answer. The peer has as long to read it as where the connection is kept.
  func end(_ exchange: Exchange) {
    loop.close(exchange.connection)
    loop.setTimer(exchange.connection, at: nextDeadline)
  }

  // MARK: Time

  /// Until when the next request or piece, or the hub's answer, is awaited (uptime, ns).
  var nextDeadline: Int64 { now + nanoseconds(limits.keepAliveSeconds) }

  /// Restarts the timeout for the next request or piece.
  private func extend(_ exchange: Exchange) {
    exchange.extend(until: nextDeadline, now: now, limits)
    loop.setTimer(exchange.connection, at: exchange.deadline)
  }

  /// Handles the connection's timeout: gives the request whose answer is overdue, or closes a connection whose peer was
  /// too slow.
  func timerFired(_ exchange: Exchange, _ counters: inout LoopCounters) -> HTTPRequest? {
    let id = exchange.connection
    guard now >= exchange.deadline else {
      loop.setTimer(id, at: exchange.deadline)
      return nil
    }
    switch exchange.state {
    // The peer does not make these wait: a loop does, perhaps one that has stalled.
    case .waiting(_, for: .metrics),
      .stalled where !loop.isBlocked(id), .sending where !loop.isBlocked(id) && now < exchange.answerEnd ?? .max:
      extend(exchange)
      return nil
    case .waiting: break
    case .reading, .stalled, .sending, .admitting, .over: loop.abort(id)
    }
    counters.requestTimeouts += 1
    return exchange.waiting
  }
}

extension EventLoop {
  /// Sends what was written at the arena's end; gives its size.
  @discardableResult
  func send(to connection: ConnectionID, _ write: (inout ByteBuffer) -> Void) -> Int {
    let start = arena.count
    write(&arena)
    send(start..<arena.count, to: connection)
    return arena.count - start
  }
}

extension Response {
  /// Whether a precompressed body exists: then each form has a tag.
  fileprivate var isCoded: Bool { fields.contains { "\($0.name)" == "ETag" } }

  /// Whether it needs no reserved memory: it is sent at once, or its bytes are kept for everybody.
  fileprivate func isShort(_ limits: Limits) -> Bool {
    body.count <= limits.compressedPieceBytes || isCoded || isShared
  }
}

/// Made with the first answer that is compressed: it takes 280 kB.
private final class Compressor {
  /// Level 1: nine tenths of what level 6 saves of our JSON, in a third of the time.
  lazy var gzip = Gzip(level: 1)
}
