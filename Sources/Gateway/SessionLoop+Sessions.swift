// A WebSocket session: opening (for drivers the hub answers first), frames, rate and end.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTransport
import HubWebSocket

extension SessionLoop {
  // MARK: From an upgrade to a session

  mutating func beginUpgrade(_ upgrade: Upgrade, of request: HTTPRequest, _ exchange: Exchange) throws(Refusal) {
    try admission.beginSession(exchange.slot, from: exchange.peer, request, upgrade.credential, now: now.uptime)
    guard upgrade.credential.role == .driver else { return open(upgrade, exchange) }
    // A driver has one session: the hub decides before the upgrade is answered.
    exchange.awaitAnswer(.admitting(request, upgrade), until: http.nextDeadline)
    inputs.append(.driverConnecting(reference(exchange.connection), upgrade.credential.id, client: upgrade.client))
  }

  /// The hub admits the driver, with advice how often to send.
  mutating func admit(_ slot: Int, _ sampling: Connected.Sampling) {
    guard let exchange = sessions[slot].exchange, let upgrade = exchange.upgrade else { return }
    open(upgrade, exchange, sampling)
    budget.readAgain(sessions[slot])
    reconcileInput(slot)
  }

  /// The hub refuses the driver: too many sessions of this driver, or too many drivers.
  mutating func refuseDriver(_ session: SessionRef, _ status: Status, _ message: String, _ retryAfter: Double) {
    guard let slot = sessions.slot(of: session), let exchange = sessions[slot].exchange,
      case .admitting(let request, let upgrade) = exchange.state
    else { return }
    admission.dismissSession(slot, from: exchange.peer, upgrade.credential, now: now.uptime)
    finish(.failure(.handshake(status, message, retryAfter: retryAfter)), to: request, exchange)
  }

  /// Answers with 101 and `connected`, in one write, and handles the bytes behind the request.
  private mutating func open(_ upgrade: Upgrade, _ exchange: Exchange, _ sampling: Connected.Sampling? = nil) {
    let (slot, credential, agreed) = (exchange.slot, upgrade.credential, upgrade.handshake.compression)
    loop.send(to: exchange.connection) {
      upgrade.handshake.write(into: &$0, subprotocols: UpgradeEndpoint.subprotocols)
    }
    counters.count(status: 101)
    let rights = SessionRights(credential, expires: credential.sessionEnd(by: access.value, now: now.timestamp))
    let rate = rights.rate(budget.usualRate)
    exchange.state = .over
    sessions[slot].beginSession(
      OpenSession(
        rights: rights, form: upgrade.form,
        encoding: rights.isShare ? .ofShares : fanOut.open(slot, upgrade.form, agreed),
        pacing: admission.pacing(of: credential, rate, now: now.uptime)),
      allowsCompression: agreed != nil)
    let id = reference(exchange.connection).name
    send(
      .connected(http.settings.connected(id, as: credential, rate: rate.units, sampling, now: now.timestamp)),
      to: slot)
    if let vehicle = credential.vehicleInput { inputs.append(vehicle) }
    begun(slot, .webSocket, isCompressed: agreed != nil)
    guard sessions[slot].phase == .open, !exchange.input.isEmpty else { return }
    unsafe exchange.input.withMutableBytes { unsafe receivedFrames(slot, $0) }
  }

  /// A session is open: counts and logs it, and starts its timer.
  mutating func begun(_ slot: Int, _ carrier: Carrier, isCompressed: Bool = false) {
    let (rights, form) = (sessions[slot].open.rights, sessions[slot].open.form)
    counters.sessionOpened(rights.role, carrier, form, isCompressed: isCompressed)
    log.opened(reference(sessions[slot].connection).name, rights.credential)
    control.arm(&sessions[slot], now: now)
    // The token may have been revoked while the hub was asked.
    if sessions[slot].isRevoked(by: access.value, now: now.timestamp) { close(slot, .tokenExpired, "token revoked") }
  }

  // MARK: From bytes to messages

  /// Handles every frame in `bytes`, which are in the loop's read buffer or, where held input resumes, at the end of
  /// `waiting`. Payloads are ranges of them.
  mutating func receivedFrames(_ slot: Int, _ bytes: UnsafeMutableRawBufferPointer, of waiting: HeldInput? = nil) {
    var offset = 0
    if sessions[slot].isHolding {
      return unsafe sessions[slot].open.pacing.append(UnsafeRawBufferPointer(bytes))
    }
    if unsafe holdIfBlocked(slot, bytes, from: 0, of: waiting) { return }
    do throws(FrameError) {
      while let event = try unsafe sessions[slot].frames.next(in: bytes, at: &offset, limits: frameLimits) {
        switch event {
        case .message(let kind, let payload, let isCompressed):
          guard sessions[slot].phase == .open else { continue }
          if sessions[slot].keepsInput { incomplete.completed(slot, now: now.uptime) }
          let (message, work) = unsafe isCompressed ? try fanOut.inflate(slot, payload, kind) : (payload, payload.count)
          unsafe received(slot, kind, message, charged: work)
        case .ping(let payload):
          guard sessions[slot].phase == .open else { continue }
          budget.charge(&sessions[slot], 1)
          unsafe control.pong(sessions[slot].connection, payload)
        case .pong: budget.charge(&sessions[slot], 1)
        case .close(let code, reason: _): return receivedClose(slot, code)
        }
        guard sessions[slot].phase == .open else { continue }
        // Nearly always this was the last frame, and the reader has nothing buffered.
        if offset == bytes.count {
          if sessions[slot].frames.isIdle { return }
          continue  // the next call frees what the reader has buffered
        }
        if unsafe holdIfBlocked(slot, bytes, from: offset, of: waiting) { return }
      }
    } catch {
      fail(slot, error)
    }
  }

  // MARK: The end of a session

  /// Answers the peer's Close frame; then the server closes TCP (RFC 6455 §7.1.1).
  private mutating func receivedClose(_ slot: Int, _ code: CloseCode?) {
    if sessions[slot].phase == .open {
      endSession(slot)
      control.answerClose(sessions[slot].connection, code)
    }
    loop.close(sessions[slot].connection)
  }

  /// RFC 6455 §7.1.7: the peer violated the protocol; it gets a Close frame, and nothing more is read.
  private mutating func fail(_ slot: Int, _ error: FrameError) {
    if sessions[slot].phase == .open {
      counters.protocolErrors += 1
      if let limit = LimitHit(error) { counters.count(limit) }
      close(slot, error.closeCode, error.closeReason)
    }
    // An answer could not be distinguished from the other bytes: the connection ends after the Close frame, so that the
    // peer does not wait for it. Further input is read and discarded, else the frame could be lost (RFC 9112 §9.6).
    loop.close(sessions[slot].connection)
  }

  mutating func close(_ slot: Int, _ reason: CloseReason, _ text: String? = nil) {
    close(slot, CloseCode(reason.rawValue), text ?? "\(reason.text)")
  }

  mutating func close(_ slot: Int, _ code: CloseCode, _ text: String) {
    guard sessions[slot].phase == .open else { return }
    let (connection, isStream) = (sessions[slot].connection, sessions[slot].stream != nil)
    if isStream, let words = CloseReason(rawValue: code.rawValue)?.lastWords { send(.error(words), to: slot) }
    endSession(slot)
    counters.count(close: code.rawValue)
    log.closed(reference(connection).name, code, text)
    if isStream { control.end(stream: connection, code) } else { control.close(connection, code, text) }
  }

  /// Ends the session for the hub and the fan-out; its socket may stay open a little longer.
  mutating func endSession(_ slot: Int) {
    guard let credential = sessions[slot].credential else { return }
    let isStream = sessions[slot].stream != nil
    if credential.role == .driver, !isStream {
      inputs.append(.driverDisconnected(reference(sessions[slot].connection)))
    }
    admission.end(&sessions[slot], of: credential, cells: fanOut.cellCount(slot), budget.usualRate, now: now.uptime)
    if sessions[slot].phase == .open {
      counters.sessionEnded(credential.role, isStream ? .eventStream : .webSocket, sessions[slot].open.form)
      namedTrips.forget(slot)
      fanOut.close(slot, &sessions[slot].open.subscriptions, queuing: &inputs)
    }
    sessions[slot].beginClosing()
  }

  // MARK: The session's one timer

  mutating func timerFired(_ id: ConnectionID) {
    guard sessions.isCurrent(id) else { return }
    let slot = Int(id.slot)
    switch sessions[slot].phase {
    case .free: break
    case .closing: loop.abort(id)
    case .http, .admitting: checkRequestDeadline(slot)
    case .open: sessionTimerFired(slot)
    }
  }

  private mutating func sessionTimerFired(_ slot: Int) {
    let isOverdue = stallTime == 0 && incomplete.isOverdue(sessions[slot], now: now.uptime)
    switch control.timerFired(&sessions[slot], isOverdue: isOverdue, now: now) {
    case .nothing: advanceStream(slot)
    case .resume: budget.resume(&sessions[slot])
    case .warn(let rate):
      refuse(slot, .overRate(rate.units))
      sessionTimerFired(slot)
    case .close(let reason, let limit):
      if let limit { counters.count(limit) }
      close(slot, reason)
    }
  }

  // MARK: Input that waits

  /// Holds input from `offset` on where something blocks it; true where something does.
  @inline(__always)
  private mutating func holdIfBlocked(
    _ slot: Int, _ bytes: UnsafeMutableRawBufferPointer, from offset: Int, of waiting: HeldInput?
  ) -> Bool {
    let reason = unsafe budget.holdIfBlocked(&sessions[slot], bytes, from: offset, of: waiting, &counters)
    if reason == .rate { control.arm(&sessions[slot], now: now) }
    return reason != nil
  }

  /// The peer has read everything: what waited for that continues in the next turn.
  mutating func drained(_ id: ConnectionID) {
    guard sessions.isCurrent(id) else { return }
    let slot = Int(id.slot)
    if sessions[slot].phase == .open {
      fanOut.catchUp(id, sessions[slot].open.subscriptions, asking: &inputs)
      advanceStream(slot)
    }
    if sessions[slot].isWaiting { budget.resumeNextTurn(id) }
  }

  /// Continues waiting input in a later turn, except for peers with unread answers. Those continue when they have read
  /// them (`drained`), or end by the timeout of a silent connection.
  mutating func resumeWaiting() {
    // Ready ones first: their turns follow each other without polling all sockets.
    guard budget.isAnyoneWaiting, !loop.hasUnhandledReports else { return }
    budget.renew()
    var resumed = 0
    for _ in 0..<budget.waitingCount {  // one that has to wait again is queued behind these
      if !budget.mayResume(after: resumed) { break }
      guard let id = budget.takeWaiting(), sessions.isCurrent(id), !loop.isBlocked(id) else { continue }
      let slot = Int(id.slot)
      resumed += 1
      if let exchange = sessions[slot].exchange, exchange.continuesLater {
        resume(exchange)
      } else if let held = sessions[slot].takeHeld() {
        unsafe held.bytes.withMutableBytes {
          unsafe receivedFrames(slot, UnsafeMutableRawBufferPointer(rebasing: $0[held.done...]), of: held)
        }
      }
      budget.readAgain(sessions[slot])
      reconcileInput(slot)
      fanOut.flushIfLarge()
    }
  }

  /// After a read: ends the connection if its incomplete input has no room.
  @inline(__always)
  mutating func reconcileInput(_ slot: Int) {
    guard incomplete.counts(sessions[slot]) else { return }
    let address = admission.address(slot, reading: sessions[slot].exchange?.reading)
    if !incomplete.recount(&sessions[slot], address: address, now: now.uptime) { refuseInput(slot) }
  }

  private mutating func refuseInput(_ slot: Int) {
    counters.count(.incompleteBytes)
    if let exchange = sessions[slot].exchange {
      if http.dropInput(exchange) { refuse(.tooManyIncomplete(limits), to: nil, exchange) }
    } else {
      close(slot, .tryAgainLater)
      // In mid-message nothing more can be parsed: the transport discards further input.
      sessions[slot].frames = FrameReader(role: .server)
      loop.close(sessions[slot].connection)
    }
    incomplete.forget(&sessions[slot], now: now.uptime)
  }
}
