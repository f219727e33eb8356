// How a connection ends, and what follows.
import HubMessages
import HubTransport
import HubWebSocket

extension ClientSession {
  /// Ends for good: a Close frame where one can be sent, and no attempt after it. What is queued is not waited for.
  public func close(_ now: Moment, code: CloseCode = .normal) {
    switch state {
    case .ended: break
    case .idle, .waiting, .awaitingToken: state = .ended(.closedByUs)
    case .connecting:
      cause = .closedByUs
      if step == .connect {
        step = .none
        state = .ended(.closedByUs)
      } else {
        giveUp(.closedByUs)
      }
    case .handshaking: giveUp(.closedByUs)
    case .greeting, .open:
      cause = .closedByUs
      if socket?.close(code) == true { beginClosing(now) }
    case .closing: cause = .closedByUs
    }
  }

  /// A Close frame goes out; the other side has some time for its part.
  private func beginClosing(_ now: Moment) {
    state = .closing
    patienceEnds = now.uptime + nanoseconds(limits.closingSeconds)
  }

  /// The connection is of no use: TCP is cut off.
  func giveUp(_ cause: DisconnectCause) {
    self.cause = cause
    state = .closing
    step = .abort
    patienceEnds = .max
  }

  /// The hub's Close frame. The server ends TCP (RFC 6455 §7.1.1).
  func receivedClose(_ code: CloseCode?, _ now: Moment) {
    if cause == nil { cause = .closed(code ?? .noStatus) }
    if state != .closing { beginClosing(now) }
  }

  /// The hub broke the WebSocket protocol (RFC 6455 §7.1.7).
  func failed(_ error: FrameError, _ now: Moment) {
    if cause == nil { cause = .protocolError(error) }
    if state != .closing { beginClosing(now) }
    step = .disconnect
  }

  /// The transport has ended, or did not come about (then with its errno), or its TLS failed. Says why, and what
  /// follows: the next attempt is under way already, by `deadline`.
  public func transportEnded(_ now: Moment, connectErrno: Int32? = nil, tls: TLSFailure? = nil) -> Disconnection {
    let cause = self.cause ?? connectErrno.map { .connectFailed(errno: $0) } ?? tls.map { .tlsFailed($0) } ?? .lost
    let wasOpen = openedAt != nil
    if let openedAt {
      backOff.connectionStood(seconds: Double(now.uptime - openedAt) / 1e9, limits: limits)
    }
    self.cause = nil
    socket = nil
    step = .none
    openedAt = nil
    var rule = ReconnectRule(cause, limits: limits)
    if rule == .never(.needsToken), replaceRefusedToken() { rule = .backOff }
    if case .never(let end) = rule {
      state = .ended(end)
      return Disconnection(cause: cause, next: .ended(end), wasOpen: wasOpen)
    }
    let delay = backOff.delay(rule, limits: limits, unit: random.unit()) ?? limits.longestDelay
    state = .waiting(until: now.uptime + nanoseconds(delay))
    return Disconnection(cause: cause, next: .retry(after: delay), wasOpen: wasOpen)
  }
}
