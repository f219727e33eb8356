// The end of a connection, and what follows.
public import HubMessages
public import HubWebSocket

extension ClientSession {
  /// Ends the client: sends a Close frame if possible, without another attempt. Does not wait for the queue.
  public func close(_ now: Moment, code: CloseCode = .normal) {
    switch phase {
    case .ended: break
    case .idle, .waiting, .awaitingToken: phase = .ended(.closedByUs)
    case .connecting where step == .connect:
      step = .none
      phase = .ended(.closedByUs)
    case .connecting, .handshaking: giveUp(.closedByUs)
    case .greeting(let connection, _), .open(let connection):
      if connection.socket.close(code) { beginClosing(.closedByUs, now) }
    case .closing(var closing):
      closing.cause = .closedByUs
      phase = .closing(closing)
    }
  }

  /// Sends a Close frame; the peer has some time to answer. Does nothing on a closing connection.
  private func beginClosing(_ cause: DisconnectCause, _ now: Moment) {
    if case .closing = phase { return }
    let until = now.uptime + nanoseconds(limits.closingSeconds)
    phase = .closing(Closing(connection: phase.connection, cause: cause, until: until))
  }

  /// Aborts an unusable connection.
  func giveUp(_ cause: DisconnectCause) {
    phase = .closing(Closing(connection: phase.connection, cause: cause, until: .max))
    step = .abort
  }

  /// The hub's Close frame. The server ends TCP (RFC 6455 §7.1.1).
  func receivedClose(_ code: CloseCode?, _ now: Moment) { beginClosing(.closed(code ?? .noStatus), now) }

  /// The hub violated the WebSocket protocol (RFC 6455 §7.1.7).
  func failed(_ error: FrameError, _ now: Moment) {
    beginClosing(.protocolError(error), now)
    step = .disconnect
  }

  /// The transport has ended, or was not connected: `failure` is its error, nil for a plain end. Gives why the
  /// connection ended, and what follows: the next attempt is scheduled already, in `deadline`.
  public func transportEnded(_ now: Moment, failure: TransportFailure? = nil) -> Disconnection {
    let known: DisconnectCause? = if case .closing(let closing) = phase { closing.cause } else { nil }
    let cause = known ?? failure.map(DisconnectCause.init) ?? .lost
    let openedAt = phase.connection?.openedAt
    if let openedAt { backOff.connectionStood(seconds: Double(now.uptime - openedAt) / 1e9, limits: limits) }
    step = .none
    var rule = ReconnectRule(cause, limits: limits)
    if rule == .never(.needsToken), replaceRefusedToken() { rule = .backOff }
    let next: Disconnection.Next
    if case .never(let end) = rule {
      phase = .ended(end)
      next = .ended(end)
    } else {
      backOff.failed(rule, limits: limits, unit: random.unit())
      mayHurry = cause.isOfTheNetwork
      phase = .waiting(until: now.uptime + nanoseconds(backOff.delay))
      next = .retry(after: backOff.delay)
    }
    return Disconnection(cause: cause, next: next, wasOpen: openedAt != nil)
  }
}
