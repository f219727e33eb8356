// One connection as the gateway sees it: first HTTP, then perhaps a WebSocket session.
//
// All of it lies in one struct of the loop's table, so that an idle session costs its bytes and nothing on the heap;
// what only some connections need, or only for some of the time (a request that is still coming, a token), is an
// object.
//
// An enum with the open session in one of its cases would say the same, but Swift has no access in place to a case's
// data: each use would move the session out and back in. An optional has it.
import HubMessages
import HubTransport
import HubWebSocket

struct Session: ~Copyable {
  enum Phase: UInt8 {
    /// The slot is not in use.
    case free
    /// Speaks HTTP.
    case http
    /// A driver's upgrade waits for the hub's word.
    case admitting
    /// A WebSocket session.
    case open
    /// A close frame was sent; what comes is dropped until the peer's.
    case closing
  }

  /// What the connection is where it is no open session.
  private enum Other {
    case free
    case http(Exchange)
    case closing
  }

  // In this order they take the fewest bytes.
  private(set) var connection = ConnectionID.none
  /// When the last bytes came from the peer (uptime, ns).
  private(set) var lastHeard: Int64 = 0
  private var other = Other.free
  /// What cuts the bytes of an open or a closing session into frames.
  var frames = FrameReader(role: .server)
  /// A ping was sent since the peer was last heard.
  private(set) var wasPinged = false
  /// Its unfinished input is counted: see IncompleteInputs.
  var keepsInput = false
  private var socket: OpenSession?

  init() {}

  /// A connection that was accepted.
  init(_ connection: ConnectionID, _ exchange: Exchange, now: Int64) {
    self.connection = connection
    lastHeard = now
    other = .http(exchange)
  }

  @inline(__always)
  var phase: Phase {
    if socket != nil { return .open }
    return switch other {
    case .free: .free
    case .http(let exchange): exchange.upgrade == nil ? .http : .admitting
    case .closing: .closing
    }
  }

  /// The request that is not complete, or is being answered; nil behind an upgrade.
  var exchange: Exchange? {
    switch other {
    case .http(let exchange): exchange
    case .free, .closing: nil
    }
  }

  /// The WebSocket session, in place. From `beginSession` to `beginClosing`: nobody may ask for it in another phase.
  var open: OpenSession {
    @inline(__always) _read {
      switch socket {
      case .some(let session): yield session
      case nil: preconditionFailure("no session is open")
      }
    }
    @inline(__always) _modify { yield &socket! }
  }

  var isHolding: Bool { socket != nil && open.pacing.isHolding }

  /// Of a session that is open or being admitted.
  var credential: Credential? { socket != nil ? open.rights.credential : exchange?.upgrade?.credential }

  /// Of an open session.
  @inline(__always)
  var recipient: Recipient { Recipient(connection: connection, encoding: open.encoding) }

  // MARK: From one phase to the next

  mutating func beginSession(_ session: consuming OpenSession, allowsCompression: Bool) {
    other = .free
    frames = FrameReader(role: .server, allowsCompression: allowsCompression)
    socket = consume session
  }

  /// The session, or HTTP, is over; the peer has some time to say so too.
  mutating func beginClosing() {
    socket = nil
    other = .closing
  }

  // MARK: Heartbeat

  /// Something came from the peer.
  @inline(__always)
  mutating func hear(now: Int64) {
    lastHeard = now
    wasPinged = false
  }

  // MARK: Input that is kept

  /// Bytes of what has begun to come, and of what waits.
  @inline(__always)
  var keptBytes: Int {
    var bytes = frames.bufferedBytes
    switch other {
    case .http(let exchange): bytes += exchange.keptBytes
    case .free, .closing: break
    }
    if socket != nil { bytes += open.pacing.heldBytes }
    return bytes
  }
}

extension Session {
  /// What is to be done when the session's timer fires.
  enum TimerOutcome {
    case nothing
    case ping
    /// It is within its rate again: what waits goes on.
    case resume
    /// A message of it has been under way for too long.
    case overdue
    case warn
    case close(CloseReason)
  }

  /// The timer of an open session: its token's end, its rate, its heartbeat.
  ///
  /// One silent interval (ns): a WebSocket ping. One and a half without an answer: the session is over. Where the hub
  /// itself stalled (a machine that is suspended, or moved to another host) all its sessions have been silent; none of
  /// them is closed that was not asked.
  mutating func timerFired(
    heartbeat interval: Int64, isOverdue: Bool, _ limits: borrowing Limits, now: Moment
  ) -> TimerOutcome {
    if open.rights.isExpired(now.timestamp) { return .close(.tokenExpired) }
    if isOverdue { return .overdue }
    if open.pacing.isPaused {
      let rate = open.rights.rate(Pacing.Rate(limits))
      switch open.pacing.check(rate, limits, now: now.uptime) {
      case .pause: return .nothing
      case .warn: return .warn
      case .close(let reason): return .close(reason)
      case .proceed:
        lastHeard = now.uptime  // it could not be heard meanwhile
        return .resume
      }
    }
    let silence = now.uptime - lastHeard
    if wasPinged { return silence >= interval * 5 / 2 ? .close(.silentTooLong) : .nothing }
    guard silence >= interval else { return .nothing }
    wasPinged = true
    lastHeard = now.uptime - interval  // however late the ping is, its answer has its time
    return .ping
  }

  /// When the timer of an open session is to fire next (uptime, ns).
  mutating func nextTimer(heartbeat interval: Int64, _ limits: borrowing Limits, now: Moment) -> Int64 {
    let rate = open.rights.rate(Pacing.Rate(limits))
    let next =
      if open.pacing.isPaused {
        open.pacing.nextCheck(rate, limits, now: now.uptime)
      } else {
        lastHeard + (wasPinged ? interval * 5 / 2 : interval)
      }
    return max(min(next, open.rights.expiry(now)), now.uptime + 10_000_000)
  }
}

/// A WebSocket session.
struct OpenSession: ~Copyable {
  var rights: SessionRights
  /// The form of its messages, both ways.
  let form: MessageForm
  /// How its messages leave: in that form, compressed or not.
  let encoding: Encoding
  var subscriptions = SessionSubscriptions()
  var pacing: Pacing
}
