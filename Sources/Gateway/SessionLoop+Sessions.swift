// A WebSocket session: its bytes become messages, it keeps its pace, and it ends.
import HubBytes
import HubCore
import HubMessages
import HubTransport
import HubWebSocket

extension SessionLoop {
  // MARK: From bytes to messages

  /// Takes every frame out of what was read. The bytes are the loop's own buffer, or the end of those of `waiting`:
  /// payloads are ranges of them.
  mutating func receivedFrames(_ slot: Int, _ bytes: UnsafeMutableRawBufferPointer, of waiting: HeldInput? = nil) {
    var offset = 0
    if sessions[slot].isHolding {
      return sessions[slot].open.pacing.append(UnsafeRawBufferPointer(bytes))
    }
    if mustWait(slot, bytes, from: 0, of: waiting) { return }
    do throws(FrameError) {
      while let event = try sessions[slot].frames.next(in: bytes, at: &offset, limits: frameLimits) {
        switch event {
        case .message(let kind, let payload, let isCompressed):
          guard sessions[slot].phase == .open else { continue }
          if sessions[slot].keepsInput { incomplete.completed(slot, now: now.uptime) }
          received(slot, kind, isCompressed ? try fanOut.inflate(slot, payload, kind) : payload)
        case .ping(let payload):
          if sessions[slot].phase == .open { answerPing(slot, payload) }
        case .pong: charge(slot, 1)
        case .close(let code, reason: _): return receivedClose(slot, code)
        }
        guard sessions[slot].phase == .open else { continue }
        // Nearly always that was all, and nothing is kept: there is nothing to ask for.
        if offset == bytes.count {
          if sessions[slot].frames.isIdle { return }
          continue  // it lets go of what it has buffered
        }
        if mustWait(slot, bytes, from: offset, of: waiting) { return }
      }
    } catch {
      fail(slot, error)
    }
  }

  private mutating func answerPing(_ slot: Int, _ payload: UnsafeRawBufferPointer) {
    charge(slot, 1)
    sendControl(slot) { FrameWriter.write(.pong, payload, into: &$0) }
  }

  private func sendControl(_ slot: Int, _ write: (inout ByteBuffer) -> Void) {
    let start = loop.arena.count
    write(&loop.arena)
    loop.send(start..<loop.arena.count, to: sessions[slot].connection)
  }

  // MARK: The end of a session

  /// RFC 6455 §5.5.1: a Close frame is answered with one, and then the server closes TCP (§7.1.1).
  private mutating func receivedClose(_ slot: Int, _ code: CloseCode?) {
    if sessions[slot].phase == .open {
      endSession(slot)
      sendControl(slot) { FrameWriter.writeClose(code, into: &$0) }
    }
    counters.closesReceived += 1
    loop.close(sessions[slot].connection)
  }

  /// RFC 6455 §7.1.7: the peer broke the protocol; it is told how, and nothing more is read.
  private mutating func fail(_ slot: Int, _ error: FrameError) {
    if sessions[slot].phase == .open {
      counters.protocolErrors += 1
      if let limit = LimitHit(error) { counters.count(limit) }
      close(slot, error.closeCode, error.closeReason)
    }
    // An answer could not be told from the rest of what is wrong: the connection ends behind the Close frame, so that
    // the peer does not wait for it. What it still sends is read and thrown away, or the frame could be lost (RFC 9112
    // §9.6).
    loop.close(sessions[slot].connection)
  }

  mutating func close(_ slot: Int, _ reason: CloseReason) { close(slot, CloseCode(reason.rawValue), "\(reason.text)") }

  /// Ends the session and sends a Close frame; the peer has a few seconds to answer it.
  mutating func close(_ slot: Int, _ code: CloseCode, _ text: String) {
    guard sessions[slot].phase == .open else { return }
    endSession(slot)
    counters.count(close: code.rawValue)
    let connection = sessions[slot].connection
    if shared.log.level == .debug {
      shared.log(
        .debug, "session_closed",
        ["session": "\(reference(connection).name)", "code": "\(code.rawValue)", "reason": text])
    }
    if code.rawValue == CloseReason.slowConsumer.rawValue { loop.dropPending(connection) }
    loop.resumeReading(connection)
    sendControl(slot) { FrameWriter.writeClose(code, reason: text, into: &$0) }
    loop.setTimer(connection, at: now.uptime + nanoseconds(limits.closingSeconds))
  }

  /// The session is over for the hub and for fan-out, whatever still happens on the socket.
  mutating func endSession(_ slot: Int) {
    guard let credential = sessions[slot].credential else { return }
    if credential.role == .driver { inputs.append(.driverDisconnected(reference(sessions[slot].connection))) }
    admission.endSession(of: credential, cells: fanOut.cellCount(slot))
    if sessions[slot].phase == .open {
      counters.sessions[Int(credential.role.rawValue)] -= 1
      if sessions[slot].open.form == .binary {
        counters.binarySessions -= 1
        namedTrips.forget(slot)
      }
      fanOut.close(slot, &sessions[slot].open.subscriptions, telling: &inputs)
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
    let isOverdue = sessions[slot].keepsInput && stallTime == 0 && incomplete.isOverdue(slot, now: now.uptime)
    switch sessions[slot].timerFired(heartbeat: heartbeat, isOverdue: isOverdue, limits, now: now) {
    case .nothing: break
    case .ping: sendControl(slot) { FrameWriter.write(.ping, UnsafeRawBufferPointer(start: nil, count: 0), into: &$0) }
    case .resume: resume(slot)
    case .overdue:
      counters.count(.messageTime)
      return close(slot, .silentTooLong)
    case .warn:
      refuse(
        slot, nil, .rateLimited, "more than \(sessions[slot].open.rights.rate(usualRate).units) units of work a second",
        retryAfter: 1)
      return sessionTimerFired(slot)
    case .close(let reason): return close(slot, reason)
    }
    armSessionTimer(slot)
  }

  mutating func armSessionTimer(_ slot: Int) {
    let next = sessions[slot].nextTimer(heartbeat: heartbeat, limits, now: now)
    loop.setTimer(sessions[slot].connection, at: next)
  }

  private var heartbeat: Int64 { nanoseconds(configuration.heartbeatInterval) }

  // MARK: Input that waits

  /// Whether what was read from `offset` on has to wait. It is kept then, and the socket not read further: 64 KiB may
  /// hold 7,000 pings, which others would wait for.
  @inline(__always)
  private mutating func mustWait(
    _ slot: Int, _ bytes: UnsafeMutableRawBufferPointer, from offset: Int, of waiting: HeldInput?
  ) -> Bool {
    let wait = sessions[slot].mustWait(
      isBehindMessage: offset > 0, hasUnits: budget.hasUnits, usualRate,
      maximumUnanswered: limits.unansweredSubscriptions, now: now.uptime)
    guard let wait else { return false }
    let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
    if !rest.isEmpty { hold(slot, rest, taken: offset, of: waiting, for: wait) }
    return true
  }

  private mutating func hold(
    _ slot: Int, _ rest: UnsafeRawBufferPointer, taken: Int, of waiting: HeldInput?, for wait: Session.Wait
  ) {
    sessions[slot].hold(rest, taken: taken, of: waiting, for: wait, now: now.uptime)
    loop.pauseReading(sessions[slot].connection)
    switch wait {
    case .rate:
      counters.ratePauses += 1
      armSessionTimer(slot)
    case .turn:
      counters.turnWaits += 1
      budget.wait(sessions[slot].connection)
    case .answers: break
    }
  }

  /// A subscription was answered: the session goes on once all of them are and its reader has kept up.
  mutating func subscriptionAnswered(_ slot: Int) {
    sessions[slot].open.subscriptions.answered()
    if sessions[slot].open.pacing.isHolding, sessions[slot].open.subscriptions.unanswered == 0 {
      budget.wait(sessions[slot].connection)
    }
  }

  /// The peer has read everything: what waited for that goes on with the next turn.
  mutating func drained(_ id: ConnectionID) {
    guard sessions.isCurrent(id) else { return }
    let slot = Int(id.slot)
    if sessions[slot].phase == .open,
      fanOut.catchUp(id, sessions[slot].open.subscriptions, asking: &inputs)
    {
      armLoopTimer()
    }
    guard sessions[slot].exchange?.isStalled == true || sessions[slot].isHolding else { return }
    budget.wait(id)
    armLoopTimer()
  }

  /// A turn later: goes on with what waited, but for peers that have not read the answers so far. Those go on when they
  /// have (`drained`), or end with the time that a silent connection has.
  mutating func resumeWaiting() {
    // Who is ready comes first: their turns follow each other without a look at the sockets of all others.
    guard budget.isAnyoneWaiting, !loop.hasUnhandledReports else { return }
    let connections = budget.takeWaiting()
    budget.renew()
    var resumed = 0
    for (place, id) in connections.enumerated() where sessions.isCurrent(id) && !loop.isBlocked(id) {
      guard budget.mayResume(after: resumed) else { return budget.putBack(connections[place...]) }
      let slot = Int(id.slot)
      resumed += 1
      if let exchange = sessions[slot].exchange, exchange.isStalled {
        resume(exchange)
      } else if let held = sessions[slot].takeHeld() {
        held.bytes.withMutableBytes {
          receivedFrames(slot, UnsafeMutableRawBufferPointer(rebasing: $0[held.done...]), of: held)
        }
        readAgain(slot)
      }
      reconcileInput(slot)
      fanOut.flushIfLarge()
    }
  }

  /// The session is level with its rate again: what waits goes on with the next turn, else its socket is read.
  private mutating func resume(_ slot: Int) {
    guard sessions[slot].isHolding else { return readAgain(slot) }
    budget.wait(sessions[slot].connection)
    armLoopTimer()
  }

  /// Reads from a session's socket again, unless something else keeps it from that: most of those who flood have more.
  private func readAgain(_ slot: Int) {
    if sessions[slot].mayRead { loop.resumeReading(sessions[slot].connection) }
  }

  // MARK: Input that is not complete

  /// Brings the count of a connection's bytes up to date, and ends it if there is no room for them. Called when
  /// something was read; the common case is three comparisons.
  @inline(__always)
  mutating func reconcileInput(_ slot: Int) {
    let bytes = sessions[slot].keptBytes
    if incomplete.concerns(bytes, sessions[slot].keepsInput) { recount(slot, bytes) }
  }

  private mutating func recount(_ slot: Int, _ bytes: Int) {
    if incomplete.reconcile(slot, bytes: bytes, &sessions[slot].keepsInput, now: now.uptime) { return }
    counters.count(.incompleteBytes)
    switch sessions[slot].phase {
    case .free: break
    case .open, .closing:
      close(slot, .tryAgainLater)
      // Mid-message there is nothing to be understood any more: the transport throws away what comes.
      sessions[slot].frames = FrameReader(role: .server)
      loop.close(sessions[slot].connection)
    case .http, .admitting: if let exchange = sessions[slot].exchange { refuseInput(exchange) }
    }
    incomplete.forget(slot, &sessions[slot].keepsInput)
  }
}
