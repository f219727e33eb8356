// What an open stream of events does that other sessions do not: it sends a head, subscribes to one channel after the
// other, sends comments, and states why it ends.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

extension FanOut {
  /// Subscribes a stream to its next channel, once all pending output has left. True where nothing is left to follow:
  /// the stream is over.
  mutating func advance(_ session: inout Session, asking inputs: inout HubInputs) -> Bool {
    guard session.phase == .open, let stream = session.stream, !loop.isBlocked(session.connection) else { return false }
    while let step = stream.takeStep() {
      switch step {
      case .subscribe(let input):
        session.open.subscriptions.ask()
        inputs.append(.subscribe(input))
        return false
      case .giveUp(let channel):
        // Always fits: a short message.
        let reply = Unsubscribed(replyTo: nil, channel: channel, reason: .grantEnded)
        _ = send(.unsubscribed(reply), to: session.recipient)
      }
    }
    return !stream.isAsking && session.open.subscriptions.count == 0
  }
}

extension HTTPService {
  /// Sends the head of a stream, and the delay before its client reconnects if the stream breaks.
  func sendStreamHead(to request: HTTPRequest, _ exchange: Exchange, _ counters: inout LoopCounters) {
    counters.count(status: Status.ok.code)
    let now = loop.now.uptimeNanoseconds
    let seed = UInt64(bitPattern: now) ^ UInt64(exchange.connection.slot) &* Mix64.golden
    var head = EventStreamEndpoint.head
    head.fields += settings.corsFields(request.origin, for: head)
    if request.rateKey != 0 { head.fields += settings.shared.admissions.allowance(request.rateKey, now: now).fields }
    // The client sends nothing, so one that is gone without closing would go unnoticed and keep its session.
    loop.abortIfUnread(exchange.connection, afterMilliseconds: Limits.streamSilenceMilliseconds)
    loop.send(to: exchange.connection) {
      head.writeEndlessHead(into: &$0)
      $0.append("retry: ")
      $0.append(integer: EventStream.retryMilliseconds(seed: seed))
      $0.append("\n\n")
    }
  }
}

extension CloseReason {
  /// The last message of a stream; nil where the client gets a status when it reconnects, or was notified.
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
  /// Ends a stream after its pending output, or at once for a client that was too slow for that.
  func end(stream connection: ConnectionID, _ code: CloseCode) {
    if code.rawValue == CloseReason.slowConsumer.rawValue { loop.dropPending(connection) }
    loop.close(connection)
    loop.setTimer(connection, at: loop.now.uptimeNanoseconds + nanoseconds(limits.closingSeconds))
  }

  /// A stream's client sends no messages: its bytes are not looked at, but reading them is work that nobody is charged
  /// for.
  func ignore(_ count: Int, from session: borrowing Session) {
    if session.stream?.hears(count, atMost: limits.requestHeadBytes) == false { loop.abort(session.connection) }
  }

  /// The timer of an open stream: sends a comment, which shows the peer and proxies that it is alive.
  func streamTimerFired(_ session: inout Session, now: Moment) -> TimerOutcome {
    if session.open.rights.isExpired(now.timestamp) { return .close(.tokenExpired) }
    if !loop.isBlocked(session.connection) { loop.send(to: session.connection) { $0.append(":\n\n") } }
    arm(&session, now: now)
    return .nothing
  }
}
