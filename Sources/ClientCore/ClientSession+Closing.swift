// How a connection ends, and what follows.
public import HubMessages
public import HubWebSocket

extension ClientSession {
  /// Ends for good: a Close frame where one can be sent, and no attempt after it. What is queued is not waited for.
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

  /// A Close frame goes out; the other side has some time for its part. Nothing where the connection ends already.
  private func beginClosing(_ cause: DisconnectCause, _ now: Moment) {
    if case .closing = phase { return }
    let until = now.uptime + nanoseconds(limits.closingSeconds)
    phase = .closing(Closing(connection: phase.connection, cause: cause, until: until))
  }

  /// The connection is of no use: TCP is cut off.
  func giveUp(_ cause: DisconnectCause) {
    phase = .closing(Closing(connection: phase.connection, cause: cause, until: .max))
    step = .abort
  }

  /// The hub's Close frame. The server ends TCP (RFC 6455 §7.1.1).
  func receivedClose(_ code: CloseCode?, _ now: Moment) { beginClosing(.closed(code ?? .noStatus), now) }

  /// The hub broke the WebSocket protocol (RFC 6455 §7.1.7).
  func failed(_ error: FrameError, _ now: Moment) {
    beginClosing(.protocolError(error), now)
    step = .disconnect
  }

  /// The transport has ended, or did not come about: `failure` is its own word about it, nil where TCP just ended. Says
  /// why the connection ended, and what follows: the next attempt is under way already, by `deadline`.
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
