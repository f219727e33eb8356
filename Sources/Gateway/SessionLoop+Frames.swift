// From bytes to messages, and how a WebSocket session ends.
import HubBytes
import HubCore
import HubMessages
import HubRuntime
import HubSystem
import HubTransport
import HubWebSocket

extension SessionLoop {
  /// Takes every frame out of what was read. The bytes are the loop's own buffer, or the end of those of `waiting`:
  /// payloads are ranges of them.
  mutating func receivedFrames(_ slot: Int, _ bytes: UnsafeMutableRawBufferPointer, of waiting: HeldInput? = nil) {
    var offset = 0
    if let held = sessions[slot].held { return held.bytes.append(UnsafeRawBufferPointer(bytes)) }
    if sessions[slot].isInDebt, isOverRate(slot) {
      return pause(slot, UnsafeRawBufferPointer(bytes), taken: 0, waiting)
    }
    if mustWaitForTurn(slot) { return waitForTurn(slot, UnsafeRawBufferPointer(bytes), taken: 0, of: waiting) }
    do throws(FrameError) {
      while let event = try sessions[slot].frames.next(in: bytes, at: &offset, limits: frameLimits) {
        switch event {
        case .message(let kind, let payload, let isCompressed):
          guard sessions[slot].phase == .open else { continue }
          messageCompleted(slot)
          received(slot, kind, isCompressed ? try inflated(slot, payload, kind) : payload)
        case .ping(let payload):
          if sessions[slot].phase == .open { answerPing(slot, payload) }
        case .pong: if sessions[slot].phase == .open { charge(slot, 1) }
        case .close(let code, reason: _):
          return receivedClose(slot, code)
        }
        guard sessions[slot].phase == .open else { continue }
        // Nearly always that was all, and nothing is kept: there is nothing to ask for.
        if offset == bytes.count {
          if sessions[slot].frames.isIdle { return }
          continue  // it lets go of what it has buffered
        }
        if sessions[slot].isInDebt, isOverRate(slot) {
          return pause(slot, UnsafeRawBufferPointer(rebasing: bytes[offset...]), taken: offset, waiting)
        }
        if mustWaitForTurn(slot) {
          return waitForTurn(slot, UnsafeRawBufferPointer(rebasing: bytes[offset...]), taken: offset, of: waiting)
        }
        if sessions[slot].subscriptions.unanswered >= limits.unansweredSubscriptions {
          return stall(slot, UnsafeRawBufferPointer(rebasing: bytes[offset...]), taken: offset, of: waiting)
        }
      }
    } catch {
      fail(slot, error)
    }
  }

  /// The message of a compressed payload, valid until the next one.
  private mutating func inflated(
    _ slot: Int, _ payload: UnsafeRawBufferPointer, _ kind: MessageKind
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    do throws(FrameError) {
      let message = try fanOut.inflate(slot, payload, kind)
      loop.spend(bytes: message.count)
      return message
    } catch {
      loop.spend(bytes: limits.messageBytes)  // a bomb is inflated up to its limit before it is refused
      throw error
    }
  }

  private mutating func answerPing(_ slot: Int, _ payload: UnsafeRawBufferPointer) {
    charge(slot, 1)
    let start = loop.arena.count
    FrameWriter.write(.pong, payload, into: &loop.arena)
    loop.send(start..<loop.arena.count, to: sessions[slot].connection)
  }

  /// RFC 6455 §5.5.1: a Close frame is answered with one, and then the server closes TCP (§7.1.1).
  private mutating func receivedClose(_ slot: Int, _ code: CloseCode?) {
    let connection = sessions[slot].connection
    if sessions[slot].phase == .open {
      endSession(slot)
      sessions[slot].phase = .closing
      sendClose(slot, code, "")
    }
    counters.closesReceived += 1
    loop.close(connection)
  }

  /// RFC 6455 §7.1.7: the peer broke the protocol; it is told how, and nothing more is read.
  private mutating func fail(_ slot: Int, _ error: FrameError) {
    guard sessions[slot].phase == .open else { return loop.close(sessions[slot].connection) }
    counters.protocolErrors += 1
    if let limit = LimitHit(error) { counters.count(limit) }
    let connection = sessions[slot].connection
    close(slot, error.closeCode, error.closeReason)
    // Its answer could not be told from the rest of what is wrong: the connection ends behind the Close frame, so that
    // the peer does not wait for it. What it still sends is read and thrown away, or the frame could be lost (RFC 9112
    // §9.6).
    loop.close(connection)
  }

  // MARK: Closing

  mutating func close(_ slot: Int, _ reason: CloseReason) {
    close(slot, CloseCode(reason.rawValue), "\(reason.text)")
  }

  /// Ends the session and sends a Close frame; the peer has a few seconds to answer it.
  mutating func close(_ slot: Int, _ code: CloseCode, _ text: String) {
    guard sessions[slot].phase == .open else { return }
    endSession(slot)
    sessions[slot].phase = .closing
    counters.count(close: code.rawValue)
    if shared.log.level == .debug {
      shared.log(
        .debug, "session_closed",
        ["session": "\(sessionID(sessions[slot].connection))", "code": "\(code.rawValue)", "reason": text])
    }
    let connection = sessions[slot].connection
    if code.rawValue == CloseReason.slowConsumer.rawValue { loop.dropPending(connection) }
    sessions[slot].isPaused = false
    sessions[slot].held = nil
    loop.resumeReading(connection)
    sendClose(slot, code, text)
    loop.setTimer(connection, at: now.uptime + nanoseconds(limits.closingSeconds))
  }

  private mutating func sendClose(_ slot: Int, _ code: CloseCode?, _ text: String) {
    let start = loop.arena.count
    FrameWriter.writeClose(code, reason: text, into: &loop.arena)
    loop.send(start..<loop.arena.count, to: sessions[slot].connection)
  }

  // MARK: The session's one timer: closing, the token's end, rate, heartbeat

  mutating func timerFired(_ id: ConnectionID) {
    guard isCurrent(id) else { return }
    let slot = Int(id.slot)
    switch sessions[slot].phase {
    case .free: break
    case .closing: loop.abort(id)
    case .http, .admitting: checkRequestDeadline(slot)
    case .open:
      if isExpired(slot) { return close(slot, .tokenExpired) }
      if isOverdue(slot) {
        counters.count(.messageTime)
        return close(slot, .silentTooLong)
      }
      if sessions[slot].isPaused { checkRate(slot) } else { checkHeartbeat(slot) }
      if sessions[slot].phase == .open { armSessionTimer(slot) }
    }
  }

  mutating func armSessionTimer(_ slot: Int) {
    let connection = sessions[slot].connection
    if sessions[slot].isPaused {
      let wait = sessions[slot].bucket.wait(rate: rate(of: slot), burst: burst(of: slot), now: now.uptime)
      // Far over the rate the bucket is level again only after the session should have been told, or closed.
      let excess = excess(of: slot)
      let patience = excess.wasWarnedOfRate ? limits.rateCloseSeconds : limits.rateWarningSeconds
      let next = min(now.uptime + wait, excess.overRateSince + nanoseconds(patience))
      loop.setTimer(connection, at: max(min(next, expiry(slot)), now.uptime + 10_000_000))
    } else {
      let interval = configuration.heartbeatInterval * (sessions[slot].wasPinged ? 2.5 : 1)
      let next = min(sessions[slot].lastHeard + nanoseconds(interval), expiry(slot))
      loop.setTimer(connection, at: max(next, now.uptime + 10_000_000))
    }
  }

  /// One silent interval: a WebSocket ping. One and a half without an answer: the session is over. Where the hub itself
  /// stalled (a machine that is suspended, or moved to another host) all its sessions have been silent; none of
  /// them is closed that was not asked.
  private mutating func checkHeartbeat(_ slot: Int) {
    let interval = nanoseconds(configuration.heartbeatInterval)
    let silent = now.uptime - sessions[slot].lastHeard
    if sessions[slot].wasPinged {
      if silent >= interval * 5 / 2 { close(slot, .silentTooLong) }
      return
    }
    guard silent >= interval else { return }
    sessions[slot].wasPinged = true
    sessions[slot].lastHeard = now.uptime - interval  // however late the ping is, its answer has its time
    let start = loop.arena.count
    FrameWriter.write(.ping, UnsafeRawBufferPointer(start: nil, count: 0), into: &loop.arena)
    loop.send(start..<loop.arena.count, to: sessions[slot].connection)
  }

  // MARK: Rate

  /// What the session is blamed for, made when it is first needed.
  mutating func excess(of slot: Int) -> Excess {
    if let excess = sessions[slot].excess { return excess }
    let excess = Excess()
    sessions[slot].excess = excess
    return excess
  }

  /// Charges a session for work. What has been read is done, so the session may owe some of it then: that alone is
  /// within its rate. What comes before it is level again is not.
  @inline(__always)
  mutating func charge(_ slot: Int, _ cost: Double) {
    guard rate(of: slot) > 0 else { return }
    let isLevel = sessions[slot].bucket.charge(
      cost, rate: rate(of: slot), burst: burst(of: slot), now: now.uptime)
    if !isLevel { sessions[slot].isInDebt = true }
  }

  /// Whether a session that was in debt still is.
  private mutating func isOverRate(_ slot: Int) -> Bool {
    guard sessions[slot].phase == .open else { return false }
    sessions[slot].isInDebt =
      sessions[slot].bucket.wait(rate: rate(of: slot), burst: burst(of: slot), now: now.uptime) > 0
    return sessions[slot].isInDebt
  }

  /// Something came from a session in debt: it waits, and nothing more is read, until the session is level. `taken`
  /// bytes before it are done with, of what has waited before.
  private mutating func pause(
    _ slot: Int, _ rest: UnsafeRawBufferPointer, taken: Int, _ waiting: HeldInput?
  ) {
    guard !rest.isEmpty else { return }
    counters.ratePauses += 1
    // A pause soon after the last one belongs to the same excess.
    let excess = excess(of: slot)
    if now.uptime - excess.resumedAt > nanoseconds(1) {
      excess.overRateSince = now.uptime
      excess.wasWarnedOfRate = false
    }
    sessions[slot].isPaused = true
    stall(slot, rest, taken: taken, of: waiting)
    armSessionTimer(slot)
  }

  private mutating func checkRate(_ slot: Int) {
    let excess = excess(of: slot)
    let over = now.uptime - excess.overRateSince
    if excess.wasWarnedOfRate, over >= nanoseconds(limits.rateCloseSeconds) { return close(slot, .overRate) }
    if over >= nanoseconds(limits.rateWarningSeconds), !excess.wasWarnedOfRate {
      excess.wasWarnedOfRate = true
      excess.overRateSince = now.uptime - nanoseconds(limits.rateWarningSeconds)  // however late it is told
      refuse(slot, nil, .rateLimited, "more than \(rate(of: slot)) units of work a second", retryAfter: 1)
    }
    let wait = sessions[slot].bucket.wait(rate: rate(of: slot), burst: burst(of: slot), now: now.uptime)
    guard wait == 0 else { return }
    sessions[slot].isPaused = false
    sessions[slot].isInDebt = false
    excess.resumedAt = now.uptime
    sessions[slot].lastHeard = now.uptime  // it could not be heard meanwhile
    goOn(slot)
  }
}

extension LimitHit {
  /// The limit that a frame or message passed; nil where it broke a rule.
  fileprivate init?(_ error: FrameError) {
    switch error {
    case .messageTooLarge: self = .messageBytes
    case .tooManyFragments: self = .fragments
    case .inflatesTooMuch: self = .inflateRatio
    case .reservedBits, .reservedOpcode, .fragmentedControlFrame, .controlFrameTooLong, .unmaskedFrame, .maskedFrame,
      .lengthNotMinimal, .lengthOutOfRange, .unexpectedContinuation, .expectedContinuation, .closeFrameOfOneByte,
      .invalidCloseCode, .invalidUTF8, .invalidDeflate:
      return nil
    }
  }
}
