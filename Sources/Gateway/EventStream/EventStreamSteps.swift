// What an open stream of events does beside other sessions: it begins with a head, subscribes to one channel after the
// other, sends comments, and says why it ends.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

extension FanOut {
  /// Subscribes a stream to the next of its channels, once what there is to send has left. True where nothing is left
  /// to follow: the stream is over.
  mutating func advance(_ session: inout Session, asking inputs: inout HubInputs) -> Bool {
    guard session.phase == .open, let stream = session.stream, !loop.isBlocked(session.connection) else { return false }
    while let step = stream.takeStep() {
      switch step {
      case .subscribe(let input):
        session.open.subscriptions.ask()
        inputs.append(.subscribe(input))
        return false
      case .giveUp(let channel):
        // A short message, which always fits.
        let reply = Unsubscribed(replyTo: nil, channel: channel, reason: .grantEnded)
        _ = send(.unsubscribed(reply), to: session.recipient)
      }
    }
    return !stream.isAsking && session.open.subscriptions.count == 0
  }
}

extension HTTPService {
  /// Answers with the head of a stream, and with when its client is to come again should the stream break.
  func sendStreamHead(to request: HTTPRequest, _ exchange: Exchange, _ counters: inout LoopCounters) {
    counters.count(status: Status.ok.code)
    let seed = UInt64(bitPattern: loop.now.uptimeNanoseconds) ^ UInt64(exchange.connection.slot) &* Mix64.golden
    var head = EventStreamEndpoint.head
    head.fields += settings.corsFields(request.origin, for: head)
    loop.send(to: exchange.connection) {
      head.writeEndlessHead(into: &$0)
      $0.append("retry: ")
      $0.append(integer: EventStream.retryMilliseconds(seed: seed))
      $0.append("\n\n")
    }
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
