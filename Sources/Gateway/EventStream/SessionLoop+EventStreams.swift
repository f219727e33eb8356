// Streams of events on a loop: from a request whose channels were looked at to a session, its comments, and its end.
// What becomes of its channels, EventStream.swift says; its messages are fan-out's, as those of all sessions.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

extension SessionLoop {
  // MARK: From a request to a stream

  /// The hub has answered for a channel of a stream that is to begin; nothing where the request is gone.
  mutating func looked(_ session: SessionRef, _ look: EventStream.Look) {
    guard let slot = sessions.slot(of: session), let exchange = sessions[slot].exchange,
      case .waiting(let request, for: .channels(let stream)) = exchange.state, let verdict = stream.looked(look)
    else { return }
    switch verdict {
    case .refuse(let error): finish(.failure(Refusal(error)), to: request, exchange)
    case .nothingLeft: finish(.success(.respond(Response(.noContent))), to: request, exchange)
    case .begin:
      do throws(Refusal) { try begin(stream, request, exchange) } catch {
        finish(.failure(error), to: request, exchange)
      }
    }
  }

  private mutating func begin(_ stream: EventStream, _ request: HTTPRequest, _ exchange: Exchange) throws(Refusal) {
    let (slot, connection) = (exchange.slot, exchange.connection)
    let credential = try request.caller(by: context(exchange).credentials)
    try admission.beginSession(slot, from: exchange.peer, request, credential, now: now.uptime)
    let rights = SessionRights(credential, expires: credential.sessionEnd(by: access.value, now: now.timestamp))
    exchange.state = .over
    stream.rateKey = request.rateKey
    let session = OpenSession(
      rights: rights, form: .json(request.time), encoding: .stream(request.time, hidesIDs: rights.isShare),
      pacing: Pacing(rights.rate(budget.usualRate), now: now.uptime))
    sessions[slot].beginStream(session, stream)
    fanOut.streams.open(slot, stream)
    counters.sessionOpened(credential.role, .eventStream, .json(request.time), isCompressed: false)
    counters.count(status: Status.ok.code)
    let seed = UInt64(bitPattern: now.uptime) ^ UInt64(connection.slot) &* Mix64.golden
    var head = EventStreamEndpoint.head
    head.fields += http.settings.corsFields(request.origin, for: head)
    loop.send(to: connection) {
      head.writeEndlessHead(into: &$0)
      $0.append("retry: ")
      $0.append(integer: EventStream.retryMilliseconds(seed: seed))
      $0.append("\n\n")
    }
    log.opened(reference(connection).name, credential)
    control.arm(&sessions[slot], now: now)
    endIfRevoked(slot)  // while the hub was asked
    advanceStream(slot)
  }

  // MARK: An open stream

  /// Subscribes to the next channel, once what there is to send has left.
  mutating func advanceStream(_ slot: Int) {
    guard sessions[slot].phase == .open, let stream = sessions[slot].stream,
      !loop.isBlocked(sessions[slot].connection)
    else { return }
    while let step = stream.takeStep() {
      switch step {
      case .subscribe(let input):
        sessions[slot].open.subscriptions.ask()
        return inputs.append(.subscribe(input))
      case .giveUp(let channel):
        send(.unsubscribed(Unsubscribed(replyTo: nil, channel: channel, reason: .grantEnded)), to: slot)
      }
    }
    if !stream.isAsking, sessions[slot].open.subscriptions.count == 0 { close(slot, .normal) }
  }

  /// Ends the streams whose last channel is over.
  mutating func endStreams() {
    for connection in fanOut.streams.takeEnded() where sessions.isCurrent(connection) {
      close(Int(connection.slot), .normal)
    }
  }

  /// The hub has answered for a channel of an open stream, which is live now, or was refused: then the client comes
  /// again and is told so by a status. `wasMuch`: what it had missed leaves before the next channel's turn.
  mutating func followed(_ slot: Int, wasMuch: Bool, _ refusal: MessageRefusal?) {
    if refusal != nil { return close(slot, .tryAgainLater) }
    if wasMuch { loop.setTimer(sessions[slot].connection, at: now.uptime) } else { advanceStream(slot) }
  }
}

extension CloseReason {
  /// What a stream is told before it ends; nil where the client finds out by a status when it comes again, or has been
  /// told.
  var lastWords: ErrorReply? {
    switch self {
    case .goingAway: ErrorReply(code: .shuttingDown, message: "\(text)")
    case .tokenExpired: ErrorReply(code: .tokenExpired, message: "\(text)")
    case .normal, .protocolError, .unsupportedData, .invalidPayload, .messageTooBig, .tryAgainLater,
      .tooManyBadMessages, .silentTooLong, .replaced, .slowConsumer, .overRate:
      nil
    }
  }
}

extension ControlFrames {
  /// Ends a stream: what was sent before goes out first, but for who was too slow for it.
  func end(stream connection: ConnectionID, _ code: CloseCode) {
    if code.rawValue == CloseReason.slowConsumer.rawValue { loop.dropPending(connection) }
    loop.close(connection)
    loop.setTimer(connection, at: loop.now.uptimeNanoseconds + nanoseconds(limits.closingSeconds))
  }

  /// The timer of an open stream has fired: a comment, by which the peer and proxies between see that it is there.
  func streamTimerFired(_ session: inout Session, now: Moment) -> TimerOutcome {
    if session.open.rights.isExpired(now.timestamp) { return .close(.tokenExpired) }
    if !loop.isBlocked(session.connection) { loop.send(to: session.connection) { $0.append(":\n\n") } }
    arm(&session, now: now)
    return .nothing
  }
}
