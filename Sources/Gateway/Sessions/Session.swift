// One connection of the gateway: first HTTP, then perhaps a WebSocket session.
//
// All of it is one struct of the loop's table, so that an idle session has nothing on the heap; what only some
// connections need, or some of the time (a request in progress, a token), is an object.
//
// An enum with the open session in a case would be clearer, but Swift cannot access a case's data in place: each use
// would move the session out and in. An optional can.
import HubCore
import HubMessages
import HubTransport
import HubWebSocket

struct Session: ~Copyable {
  enum Phase: UInt8 {
    /// The slot is not in use.
    case free
    /// Speaks HTTP.
    case http
    /// A driver's upgrade waits for the hub's answer.
    case admitting
    /// A session over a WebSocket or a stream of events.
    case open
    /// A close frame was sent; input is dropped until the peer's.
    case closing
  }

  /// The state of a connection without an open session.
  private enum Other {
    case free
    case http(Exchange)
    /// An open session that is a stream of events.
    case stream(EventStream)
    case closing
  }

  // Ordered to take the fewest bytes.
  private(set) var connection = ConnectionID.none
  /// When the last bytes came from the peer (uptime, ns).
  var lastHeard: Int64 = 0
  private var other = Other.free
  /// Splits the bytes of an open or closing session into frames.
  var frames = FrameReader(role: .server)
  /// A ping was sent since the last input.
  var wasPinged = false
  /// Its incomplete input is counted: see IncompleteInputs.
  var keepsInput = false
  private var socket: OpenSession?

  init() {}

  /// An accepted connection.
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
    case .stream: preconditionFailure("a stream is open")
    }
  }

  /// The request in progress; nil after an upgrade.
  var exchange: Exchange? {
    switch other {
    case .http(let exchange): exchange
    case .free, .stream, .closing: nil
    }
  }

  /// The stream of events that the open session is; nil for a WebSocket, and where no session is open.
  var stream: EventStream? {
    @inline(__always) get { if case .stream(let stream) = other { stream } else { nil } }
  }

  /// The session, in place. Precondition: between `beginSession` and `beginClosing`.
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

  /// Whether its input, or the next piece of a long answer, waits for a later turn.
  var isWaiting: Bool { isHolding || exchange?.continuesLater == true }

  /// The credential of the session that is open or being admitted; nil where there is none.
  var credential: Credential? { socket != nil ? open.rights.credential : exchange?.upgrade?.credential }

  /// Who asked, and the form of the answer: the session for a message, else the waiting request. Nil where neither
  /// waits any more.
  func asker(_ session: SessionRef, replyTo: MessageID?) -> (asker: Asker, form: MessageForm, isCompressed: Bool)? {
    if let replyTo {
      guard phase == .open else { return nil }
      let asker = Asker(session: session, credential: open.rights.credential, replyTo: replyTo)
      return (asker, open.form, open.encoding.isCompressed)
    }
    guard let request = exchange?.waiting, request.caller != nil else { return nil }
    return (request.asker(session), .json(request.time), false)
  }

  /// Whether a request for a vehicle feed waits, which takes a list of drivers as it is, not in JSON.
  var awaitsVehicles: Bool {
    if case .waiting(_, for: .vehicles) = exchange?.state { true } else { false }
  }

  /// The open session as the fan-out knows it.
  @inline(__always)
  var recipient: Recipient { Recipient(connection: connection, encoding: open.encoding) }

  // MARK: From one phase to the next

  mutating func beginSession(_ session: consuming OpenSession, allowsCompression: Bool) {
    other = .free
    frames = FrameReader(role: .server, allowsCompression: allowsCompression)
    socket = consume session
  }

  mutating func beginStream(_ session: consuming OpenSession, _ stream: EventStream) {
    other = .stream(stream)
    socket = consume session
  }

  /// The session, or HTTP, is over; the peer has some time to close, too.
  mutating func beginClosing() {
    socket = nil
    other = .closing
  }

  /// Begins closing where the answer that was just written was the connection's last.
  mutating func answered() { if case .over = exchange?.state { beginClosing() } }

  // MARK: Heartbeat

  /// Notes input from the peer.
  @inline(__always)
  mutating func hear(now: Int64) {
    lastHeard = now
    wasPinged = false
  }

  // MARK: Input that is kept

  /// Bytes of incomplete and of held input.
  @inline(__always)
  var keptBytes: Int {
    var bytes = frames.bufferedBytes
    switch other {
    case .http(let exchange): bytes += exchange.keptBytes
    case .free, .stream, .closing: break
    }
    if socket != nil { bytes += open.pacing.heldBytes }
    return bytes
  }
}

/// A session over a WebSocket or a stream of events.
struct OpenSession: ~Copyable {
  var rights: SessionRights
  /// The form of its messages, in both directions.
  let form: MessageForm
  /// The form of outgoing messages, compressed or not.
  let encoding: Encoding
  var subscriptions = SessionSubscriptions()
  var pacing: Pacing
}
