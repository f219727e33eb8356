// Pings, pongs and Close frames of a loop's sessions (RFC 6455 §5.5), and the one timer of each: its token's end, its
// rate, its heartbeat, the time that it has for its part of a close.
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

struct ControlFrames {
  /// What is to be done when the timer of an open session fires.
  enum TimerOutcome {
    case nothing
    /// It is within its rate again: what waits goes on.
    case resume
    /// It is to be told that it is over its rate for long, and its timer to be looked at again.
    case warn(Pacing.Rate)
    /// `at`: the limit that it reached.
    case close(CloseReason, at: LimitHit? = nil)
  }

  let loop: EventLoop
  let limits: Limits
  private let usualRate: Pacing.Rate
  /// Nanoseconds.
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

  /// Sends a Close frame; the peer has a few seconds to answer it.
  func close(_ connection: ConnectionID, _ code: CloseCode, _ reason: String) {
    if code.rawValue == CloseReason.slowConsumer.rawValue { loop.dropPending(connection) }
    loop.resumeReading(connection)
    loop.send(to: connection) { FrameWriter.writeClose(code, reason: reason, into: &$0) }
    loop.setTimer(connection, at: loop.now.uptimeNanoseconds + nanoseconds(limits.closingSeconds))
  }

  // MARK: The timer

  /// The timer of an open session has fired. `isOverdue`: a message of it has been under way for too long.
  ///
  /// One silent interval: a WebSocket ping. One and a half without an answer: the session is over. Where the hub itself
  /// stalled (a machine that is suspended, or moved to another host) all its sessions have been silent; none of them is
  /// closed that was not asked.
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
        session.lastHeard = now.uptime  // it could not be heard meanwhile
        outcome = .resume
      }
    } else if session.wasPinged {
      if now.uptime - session.lastHeard >= interval * 5 / 2 { return .close(.silentTooLong) }
    } else if now.uptime - session.lastHeard >= interval {
      session.wasPinged = true
      session.lastHeard = now.uptime - interval  // however late the ping is, its answer has its time
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
