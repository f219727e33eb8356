// Pings, pongs and Close frames of a loop's sessions (RFC 6455 §5.5), and the one timer of each, for expiry of its
// token, rate, heartbeat and the closing handshake.
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

struct ControlFrames {
  /// What to do when the timer of an open session fires.
  enum TimerOutcome {
    case nothing
    /// It is within its rate again: waiting input continues.
    case resume
    /// Warns that it has been over its rate for long; the timer is set again.
    case warn(Pacing.Rate)
    /// `at`: the limit that was reached.
    case close(CloseReason, at: LimitHit? = nil)
  }

  let loop: EventLoop
  let limits: Limits
  private let usualRate: Pacing.Rate
  /// The heartbeat interval, in nanoseconds.
  private let interval: Int64

  init(_ loop: EventLoop, _ configuration: ServerConfiguration) {
    self.loop = loop
    limits = configuration.limits
    usualRate = Pacing.Rate(limits)
    interval = nanoseconds(configuration.heartbeatInterval)
  }

  // MARK: Frames

  func pong(_ connection: ConnectionID, _ payload: UnsafeRawBufferPointer) {
    loop.send(to: connection) { unsafe FrameWriter.write(.pong, payload, into: &$0) }
  }

  /// RFC 6455 §5.5.1: a Close frame is answered with one.
  func answerClose(_ connection: ConnectionID, _ code: CloseCode?) {
    loop.send(to: connection) { FrameWriter.writeClose(code, into: &$0) }
  }

  /// Sends a Close frame; the peer has a few seconds to answer.
  func close(_ connection: ConnectionID, _ code: CloseCode, _ reason: String) {
    if code.rawValue == CloseReason.slowConsumer.rawValue { loop.dropPending(connection) }
    loop.resumeReading(connection)
    loop.send(to: connection) { FrameWriter.writeClose(code, reason: reason, into: &$0) }
    loop.setTimer(connection, at: loop.now.uptimeNanoseconds + nanoseconds(limits.closingSeconds))
  }

  // MARK: The timer

  /// Handles the timer of an open session. `isOverdue`: one of its messages has been incomplete for too long.
  ///
  /// After one silent interval: a WebSocket ping. After one and a half without an answer: the session ends. After a
  /// stall of the hub itself (a suspended or migrated machine) all its sessions seem silent; each gets a ping before it
  /// is closed.
  func timerFired(_ session: inout Session, isOverdue: Bool, now: Moment) -> TimerOutcome {
    if session.stream != nil { return streamTimerFired(&session, now: now) }
    if session.open.rights.isExpired(now.timestamp) { return .close(.tokenExpired) }
    if isOverdue { return .close(.silentTooLong, at: .messageTime) }
    var outcome = TimerOutcome.nothing
    if session.open.pacing.isPaused {
      let rate = session.open.rights.rate(usualRate)
      switch session.open.pacing.check(rate, limits, now: now.uptime) {
      case .pause: break
      case .warn: return .warn(rate)
      case .close(let reason): return .close(reason)
      case .proceed:
        session.lastHeard = now.uptime  // the hub did not read from it while it was paused
        outcome = .resume
      }
    } else if session.isHolding, session.open.subscriptions.unanswered > 0 {
      session.hear(now: now.uptime)  // the hub does not read from it until these are answered
    } else if session.wasPinged {
      if now.uptime - session.lastHeard >= interval * 5 / 2 { return .close(.silentTooLong) }
    } else if now.uptime - session.lastHeard >= interval {
      session.wasPinged = true
      session.lastHeard = now.uptime - interval  // the peer has its full time to answer a late ping
      loop.send(to: session.connection) {
        unsafe FrameWriter.write(.ping, UnsafeRawBufferPointer(start: nil, count: 0), into: &$0)
      }
    }
    arm(&session, now: now)
    return outcome
  }

  /// Sets the timer of an open session.
  func arm(_ session: inout Session, now: Moment) {
    let rate = session.open.rights.rate(usualRate)
    let next =
      if session.stream != nil {
        now.uptime + nanoseconds(Limits.streamCommentSeconds)
      } else if session.open.pacing.isPaused {
        session.open.pacing.nextCheck(rate, limits, now: now.uptime)
      } else {
        session.lastHeard + (session.wasPinged ? interval * 5 / 2 : interval)
      }
    loop.setTimer(session.connection, at: max(min(next, session.open.rights.expiry(now)), now.uptime + 10_000_000))
  }
}
