// One client of a hub as a state machine: bytes and time in, bytes and "connect", "disconnect" out. No socket, no
// clock.
//
// Whoever drives it tells it what happened (`transportConnected`, `received`, `transportEnded`, `timeReached`), and
// then calls `flush`, which writes what is to be sent and says what is to be done with the transport. Nothing but
// `flush` writes, so that a callback may call any command. `ClientLoop` drives thousands of these on one thread.
//
// The files: +Handshake (until `connected`), +Messages (what the hub says), +Sending (what goes out), +Closing,
// +Tokens.
import HubBytes
import HubHTTP
public import HubMessages
public import HubWebSocket

/// A client's connection over all its breaks. Not thread-safe: it belongs to who drives it.
public final class ClientSession {
  public enum State: Sendable, Equatable {
    /// Not started.
    case idle
    /// Backs off until this uptime (ns).
    case waiting(until: Int64)
    /// The application was asked for a token; `renew` goes on.
    case awaitingToken
    /// TCP is to come.
    case connecting
    /// The upgrade is asked for.
    case handshaking
    /// The upgrade is granted; `connected` is to come.
    case greeting
    case open
    /// The end of TCP is awaited.
    case closing
    case ended(ClientEnd)
  }

  /// What the driver is to do with the transport, after it has sent what `flush` wrote.
  public enum Step: Sendable, Equatable {
    case none
    /// Connect to the host and port of `configuration.url`, then call `transportConnected` or `transportEnded`.
    case connect
    /// End TCP in order, then call `transportEnded`.
    case disconnect
    /// Cut TCP off, then call `transportEnded`.
    case abort
  }

  public let configuration: ClientConfiguration
  var phase = Phase.idle
  /// What is to be done with the transport, said by the next `flush`.
  var step = Step.none
  /// What the hub said when it let this client in; of the last connection.
  public internal(set) var connected: Connected?
  /// Up to which timestamp the hub has this driver's fixes, as far as it said.
  public internal(set) var storedThrough: Timestamp?
  /// What the hub refused last, for good; until `takeRefused`.
  var lastRefused: SendQueue.Payload?
  /// How often the hub wants this driver's fixes, as it said last.
  public internal(set) var sampling: Connected.Sampling?
  public internal(set) var counters = ClientCounters()
  /// How messages are written, as the hub agreed to; of the last connection.
  public internal(set) var form: MessageForm

  /// What compresses for all clients of a loop that keep no contexts.
  let sharedCompression: MessageCompression?
  var limits: ClientLimits { configuration.limits }
  var token: String?
  let renewal: TokenRenewal?
  var random: ClientRandom
  var numbering: MessageNumbering
  /// The numbers of messages that are sent under ids which the application keeps.
  var keptIDs: [MessageID: UInt64] = [:]
  var backOff = BackOff()
  /// Another network may end the present wait: the hub did not ask for it.
  var mayHurry = false
  var queue = SendQueue()
  var subscriptions = SubscriptionList()
  /// The trip of the last fix, shared by its entries.
  var lastTrip: TripName?
  /// Where the configuration says so: which fixes go out.
  var gate = SamplingGate()

  /// `sharing`: what compresses where no contexts are kept, for many clients of one thread; without it each has its
  /// own.
  public init(_ configuration: ClientConfiguration, sharing sharedCompression: MessageCompression? = nil) {
    self.configuration = configuration
    self.sharedCompression = sharedCompression
    token = configuration.token
    form = .json(configuration.url.time)
    renewal = configuration.tokens.map { TokenRenewal($0) }
    random = ClientRandom(seed: configuration.seed)
    numbering = MessageNumbering(random: &random)
  }

  // MARK: Starting

  /// Begins to connect, at `uptime` (ns) or at once; with a new token after it was needed. Nothing while it runs.
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

  /// When `timeReached` should be called next (uptime, ns); nil for never. Ask after `flush`.
  public var deadline: Int64? {
    switch phase {
    case .idle, .awaitingToken, .ended: return nil
    case .waiting(let until), .connecting(let until), .handshaking(_, let until), .greeting(_, let until): return until
    case .closing(let closing): return closing.until
    case .open(let connection):
      return min(heartbeatDeadline(connection), sendingDeadline(connection) ?? .max, renewalDeadline)
    }
  }

  /// Time has passed.
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

  /// The device has another network, or one again. A wait that the hub did not ask for ends soon, and a connection
  /// that stands has to answer soon: it may be one of a network that is gone.
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

  /// Whether `flush` has something to do, as far as it is known without the time.
  public var needsFlush: Bool {
    if step != .none || renewal?.isDueNew == true { return true }
    guard let connection = phase.connection else { return false }
    return connection.socket.hasControlFrames || phase.isOpen && hasSomethingToSend(connection)
  }
}

/// What a client counts.
public struct ClientCounters: Sendable, Equatable {
  public var attempts: UInt64 = 0
  /// Connections on which `connected` came.
  public var opened: UInt64 = 0
  public var messagesIn: UInt64 = 0
  public var messagesOut: UInt64 = 0
  public var fixesOut: UInt64 = 0
  /// Fixes sent again in a batch after a break.
  public var fixesResent: UInt64 = 0
  /// Fixes that gave way at a limit, or could not be kept.
  public var fixesDropped: UInt64 = 0
  /// Fixes that the hub's advice on sampling made unnecessary.
  public var fixesLeftOut: UInt64 = 0
  /// Events that came twice, or too early and come again.
  public var eventsDropped: UInt64 = 0
  /// Tokens that the hub took in place of others, and that it did not.
  public var refreshes: UInt64 = 0
  public var refreshesRefused: UInt64 = 0
  /// Messages of the hub that could not be read.
  public var unreadable: UInt64 = 0

  public init() {}
}

/// Seconds as nanoseconds, at most 31 years: some of these times are the hub's word, and a number that does not fit
/// would end the process.
@inline(__always) package func nanoseconds(_ seconds: Double) -> Int64 { Int64(max(-1e9, min(1e9, seconds)) * 1e9) }
