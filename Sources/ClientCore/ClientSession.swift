// One client of a hub as a state machine: bytes and time in, bytes and "connect", "disconnect" out. No socket, no
// clock.
//
// Its driver reports events (`transportConnected`, `received`, `transportEnded`, `timeReached`) and then calls `flush`,
// which writes the output and gives the transport's next step. Only `flush` writes, so that a callback may call any
// command. `ClientLoop` drives thousands of these on one thread.
//
// The files: +Handshake (until `connected`), +Messages (input), +Sending (output), +Closing, +Tokens.
import HubBytes
import HubHTTP
public import HubMessages
import HubWebSocket

/// A client over all its connections. Not thread-safe: only its driver uses it.
public final class ClientSession {
  /// The phase of a client, as its application sees it.
  public enum State: Sendable, Equatable {
    /// Not started.
    case idle
    /// Waits until this uptime (ns).
    case waiting(until: Int64)
    /// Waits for a token from the application, which passes it to `renew`.
    case awaitingToken
    /// Connecting TCP.
    case connecting
    /// The upgrade is requested.
    case handshaking
    /// The upgrade is granted; `connected` is awaited.
    case greeting
    case open
    /// The end of TCP is awaited.
    case closing
    case ended(ClientEnd)
  }

  /// The transport's next step, after the output of `flush` was sent.
  public enum Step: Sendable, Equatable {
    case none
    /// Connect to the host and port of `configuration.url`, then call `transportConnected` or `transportEnded`.
    case connect
    /// End TCP in order, then call `transportEnded`.
    case disconnect
    /// Abort TCP, then call `transportEnded`.
    case abort
  }

  public let configuration: ClientConfiguration
  var phase = Phase.idle
  /// The transport's next step, given by the next `flush`.
  var step = Step.none
  /// The `connected` message of the last connection.
  public internal(set) var connected: Connected?
  /// The newest timestamp up to which the hub has stored this driver's fixes.
  public internal(set) var storedThrough: Timestamp?
  /// The hub's last permanent refusal, until `takeRefused`.
  var lastRefused: SendQueue.Payload?
  /// The hub's newest sampling advice.
  public internal(set) var sampling: Connected.Sampling?
  public internal(set) var counters = ClientCounters()
  /// The form of messages that was negotiated on the last connection.
  public internal(set) var form: MessageForm

  /// The compressor that clients without contexts share on one thread; nil until one of them offers compression.
  let sharedCompression: MessageCompression?
  var limits: ClientLimits { configuration.limits }
  var token: String?
  let renewal: TokenRenewal?
  var random: ClientRandom
  var numbering: MessageNumbering
  /// The numbers, in the queue, of messages whose ids the application has chosen.
  var numbersByID: [MessageID: UInt64] = [:]
  var backOff = BackOff()
  /// Whether a change of network may shorten the present wait, since the hub did not request it.
  var mayHurry = false
  var queue = SendQueue()
  var subscriptions = SubscriptionList()
  /// The trip of the last fix, shared by its entries.
  var lastTrip: TripName?
  /// Selects the fixes to send, if configured.
  var gate = SamplingGate()

  /// `other`: the session that was created before on the same thread, whose compressor it shares.
  public init(_ configuration: ClientConfiguration, sharingWith other: ClientSession? = nil) {
    self.configuration = configuration
    sharedCompression = other?.sharedCompression ?? (configuration.compression == nil ? nil : .shared())
    token = configuration.token
    form = .json(configuration.url.time)
    renewal = configuration.tokens.map { TokenRenewal($0) }
    random = ClientRandom(seed: configuration.seed)
    numbering = MessageNumbering(random: &random)
  }

  // MARK: Starting

  /// Begins to connect, at `uptime` (ns) or at once; with a new token if one was needed. No effect while running.
  public func start(token: String? = nil, at uptime: Int64 = .min, now: Moment) {
    switch phase {
    case .idle, .ended: break
    case .waiting, .awaitingToken, .connecting, .handshaking, .greeting, .open, .closing: return
    }
    if let token {
      self.token = token
      renewal?.awaited = nil
    } else {
      askForAwaitedTokenAgain()
    }
    backOff = BackOff()
    if uptime > now.uptime { phase = .waiting(until: uptime) } else { beginConnecting(now) }
  }

  func beginConnecting(_ now: Moment) {
    guard !mustAwaitToken() else {
      phase = .awaitingToken
      return
    }
    phase = .connecting(until: now.uptime + nanoseconds(limits.handshakeSeconds))
    step = .connect
    counters.attempts += 1
  }

  // MARK: Time

  /// When to call `timeReached` next (uptime, ns); nil for never. Read it after `flush`.
  public var deadline: Int64? {
    switch phase {
    case .idle, .awaitingToken, .ended: return nil
    case .waiting(let until), .connecting(let until), .handshaking(_, let until), .greeting(_, let until): return until
    case .closing(let closing): return closing.until
    case .open(let connection):
      // While the transport is full nothing is sent at a deadline: a `flush` follows when it has room.
      guard !connection.isBlocked else { return min(silenceEnds(connection), renewalDeadline) }
      return min(heartbeatDeadline(connection), sendingDeadline(connection) ?? .max, renewalDeadline)
    }
  }

  /// Handles deadlines.
  public func timeReached(_ now: Moment) {
    switch phase {
    case .idle, .awaitingToken, .ended: break
    case .waiting(let until): if now.uptime >= until { beginConnecting(now) }
    case .connecting(let until), .handshaking(_, let until), .greeting(_, let until):
      if now.uptime >= until { giveUp(.timedOut) }
    case .closing(let closing): if now.uptime >= closing.until { step = .abort }
    case .open(let connection):
      if now.uptime >= silenceEnds(connection) { return giveUp(.silent) }
      if now.uptime >= connection.nextPing { connection.wantsPing = true }
      checkRenewal(now)
    }
  }

  /// Call when the device has changed networks or is online again. A wait that the hub did not request ends soon, and
  /// an existing connection has to answer soon, since its network may be gone.
  public func networkChanged(_ now: Moment) {
    switch phase {
    case .waiting(let until) where mayHurry:
      phase = .waiting(until: min(until, now.uptime + nanoseconds(limits.hurrySeconds * random.unit())))
    case .open(let connection) where connection.answersBy == .max:
      connection.answersBy = now.uptime + nanoseconds(limits.answerSeconds)
      connection.wantsPing = true
    case .idle, .waiting, .awaitingToken, .connecting, .handshaking, .greeting, .open, .closing, .ended: break
    }
  }

  /// Whether `flush` may have something to do; messages that wait for their time count, too.
  public var needsFlush: Bool {
    if step != .none || renewal?.isDueNew == true { return true }
    guard let connection = phase.connection else { return false }
    return connection.socket.hasControlFrames || phase.isOpen && hasSomethingToSend(connection)
  }
}

/// A client's counters.
public struct ClientCounters: Sendable, Equatable {
  public var attempts: UInt64 = 0
  /// Connections that were opened by `connected`.
  public var opened: UInt64 = 0
  public var messagesIn: UInt64 = 0
  public var fixesOut: UInt64 = 0
  /// Fixes sent again in a batch after a break.
  public var fixesResent: UInt64 = 0
  /// Fixes dropped at a limit, or that could not be kept.
  public var fixesDropped: UInt64 = 0
  /// Fixes skipped by the hub's sampling advice.
  public var fixesLeftOut: UInt64 = 0
  /// Events dropped because they came before, or because they came behind a gap and come again in order.
  public var eventsDropped: UInt64 = 0
  /// New tokens that the hub accepted, and that it refused.
  public var refreshes: UInt64 = 0
  public var refreshesRefused: UInt64 = 0
  /// Unreadable messages of the hub.
  public var unreadable: UInt64 = 0

  public init() {}
}
