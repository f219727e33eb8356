// Thousands of clients on one thread: each a `ClientSession`, all on one event loop.
//
// The session decides, the loop has the sockets and the time. A command of the application marks its client; at the end
// of the turn each marked client is flushed once, into the loop's arena, and written with one call.
import HubBytes
@_exported public import HubClientCore
public import HubMessages
public import HubSystem
public import HubTransport

/// Identifies a client of one loop; never reused.
public struct ClientID: Hashable, Sendable {
  /// Numbers the loop's clients from 0, in the order in which they were added.
  public let index: Int

  public init(index: Int) { self.index = index }
}

/// The application's callbacks. All calls are on the loop's thread; each may call any method of the loop.
public protocol ClientLoopDelegate: AnyObject {
  /// The hub has accepted the client. Queued messages are sent by themselves.
  func opened(_ client: ClientID, _ connected: Connected)
  /// A message; `connected` comes through `opened`, and repeated events are dropped.
  func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope)
  /// The bytes of a message, in the session's `form`, before they are parsed; true skips parsing. For load generators.
  func receivedRaw(_ client: ClientID, _ message: UnsafeRawBufferPointer) -> Bool
  /// A connection or an attempt has ended, and what follows.
  func closed(_ client: ClientID, _ disconnection: Disconnection)
  /// A deadline of the session was handled: it may have begun an attempt, or want a new token.
  func timeReached(_ client: ClientID)
  /// The time given to `schedule` has come.
  func due(_ client: ClientID)
  /// The time given to `scheduleTick` has come.
  func tick()
  /// The loop's waker was called.
  func woken()
}

extension ClientLoopDelegate {
  /// False: each message is parsed.
  public func receivedRaw(_ client: ClientID, _ message: UnsafeRawBufferPointer) -> Bool { false }
  /// Does nothing.
  public func timeReached(_ client: ClientID) {}
  /// Does nothing, for an application that does not call `schedule`.
  public func due(_ client: ClientID) {}
  /// Does nothing, for an application that does not call `scheduleTick`.
  public func tick() {}
  /// Does nothing, for an application whose other threads do not wake the loop.
  public func woken() {}
}

/// An event loop with clients. Only the thread that runs it uses it.
public final class ClientLoop {
  struct Client {
    let session: ClientSession
    let local: SocketAddress?
    /// For `wss`: the hub, and the TLS session to resume there.
    let tls: TLSPeer?
    var connection = ConnectionID.none
    /// The hub's addresses by the last look-up, the next one to try first; and how many of them this attempt may still
    /// try.
    var addresses: [SocketAddress] = []
    var untried = 0
    /// The number of the newest look-up, and of the one that the present attempt waits for.
    var lookups: UInt64 = 0
    var awaitedLookup: UInt64?
    var isMarked = false
    /// The session's deadline in the heap (uptime, ns), while there is no connection, whose timer serves otherwise.
    var deadline: Int64?
    /// The time given to `schedule` (uptime, ns).
    var due: Int64?
  }

  enum Kind: UInt8 {
    case session, application
  }

  public weak var delegate: (any ClientLoopDelegate)?
  /// The certificates that clients with `wss` trust, for those that are added after it is set.
  public var trust = TLSClient.system
  public let loop: EventLoop
  var clients: [Client] = []
  /// The client of each connection slot.
  var owners: [Int32] = []
  /// Clients to flush at the end of this turn, and those with more for the next one.
  var marked: [Int32] = []
  var unfinished: [Int32] = []
  var deadlines = DeadlineHeap()
  var tickAt: Int64?
  let reader = MessageReader()
  /// Running look-ups of host names.
  var lookupsUnderWay = 0
  lazy var names = NameResolver(capacity: ClientLoop.maximumLookups, waking: loop.waker)

  /// Throws where the kernel has no descriptor for the loop.
  public init(
    limits: EventLoopLimits = EventLoopLimits(), clock: @escaping () -> ClockReading = ClockReading.read
  ) throws(SystemError) {
    loop = try EventLoop(limits: limits, clock: clock)
    loop.delegate = self
  }

  // MARK: Running

  /// Runs until `stop`.
  public func run() {
    if !marked.isEmpty { loop.waker.wake() }
    armLoopTimer()
    loop.run()
  }

  /// One turn of at most so many milliseconds.
  public func runTurn(timeoutMilliseconds: Int32) {
    if !marked.isEmpty { loop.waker.wake() }
    armLoopTimer()
    loop.runTurn(timeoutMilliseconds: timeoutMilliseconds)
  }

  /// Ends `run` after this turn. Connections stay open; `closeAll` first closes them.
  public func stop() { loop.stop() }

  /// The time of this turn.
  public var now: Moment {
    Moment(
      uptime: loop.now.uptimeNanoseconds, timestamp: Timestamp(milliseconds: loop.now.unixMilliseconds))
  }

  // MARK: Clients

  /// The number of clients that were added, those that ended included.
  public var count: Int { clients.count }

  /// Adds a client and lets it connect, after so many seconds; with nil only when `restart` is called. `local` is the
  /// source address; one serves some 28,000 connections to one hub (ip_local_port_range).
  @discardableResult
  public func add(
    _ configuration: ClientConfiguration, from local: SocketAddress? = nil, after seconds: Double? = 0
  ) -> ClientID {
    let session = ClientSession(configuration, sharingWith: clients.last?.session)
    let id = ClientID(index: clients.count)
    let url = configuration.url
    let tls = url.isSecure ? TLSPeer(trust, name: url.host) : nil
    clients.append(Client(session: session, local: local, tls: tls))
    if let seconds { session.start(at: seconds > 0 ? now.uptime + nanoseconds(seconds) : .min, now: now) }
    mark(id.index)
    return id
  }

  /// The client's state machine, for its counters and state. Commands go through the loop.
  public func session(_ client: ClientID) -> ClientSession { clients[client.index].session }

  /// Marks a client whose state machine was called directly: its output is sent at the end of this turn.
  public func touch(_ client: ClientID) { mark(client.index) }

  /// The client's state machine for a command; its output is sent at the end of this turn.
  private func marked(_ client: ClientID) -> ClientSession {
    mark(client.index)
    return session(client)
  }

  // Each calls the method of the same name of `ClientSession`.

  /// Queues a live fix, as `ClientSession.send` does; false when it is not kept.
  @discardableResult
  public func send(_ fix: Fix, trip: Identifier? = nil, from client: ClientID) -> Bool {
    marked(client).send(fix, trip: trip)
  }

  /// Queues a trip's move, as `ClientSession.send` does, and gives its id; nil when there is no room.
  @discardableResult
  public func send(_ report: TripStatusReport, from client: ClientID) -> MessageID? { marked(client).send(report) }

  /// Queues the refusal of an offered trip, as `ClientSession.send` does, and gives its id; nil when there is no room.
  @discardableResult
  public func send(_ decline: OfferDecline, from client: ClientID) -> MessageID? { marked(client).send(decline) }

  /// Queues a driver's status, as `ClientSession.send` does, and gives its id; nil when there is no room.
  @discardableResult
  public func send(_ report: DriverStatusReport, from client: ClientID) -> MessageID? { marked(client).send(report) }

  /// Queues a batch of fixes, as `ClientSession.send` does, and gives its id; nil when there is no room.
  @discardableResult
  public func send(_ batch: LocationBatch, from client: ClientID) -> MessageID? { marked(client).send(batch) }

  /// Subscribes, as `ClientSession.subscribe` does; false at the limit of subscriptions.
  @discardableResult
  public func subscribe(
    _ client: ClientID, to channel: Channel, resume: ResumePoint? = nil, isEventsOnly: Bool = false
  ) -> Bool {
    marked(client).subscribe(channel, resume: resume, isEventsOnly: isEventsOnly)
  }

  /// Ends a subscription; false where there is none.
  @discardableResult
  public func unsubscribe(_ client: ClientID, from channel: Channel) -> Bool { marked(client).unsubscribe(channel) }

  /// Requests a pong now. Does nothing while the client is not open or a ping is pending.
  public func ping(_ client: ClientID) { marked(client).ping() }

  /// Ends a client permanently. `closed` comes if it had a connection.
  public func close(_ client: ClientID) { marked(client).close(now) }

  /// Ends all clients permanently. O(clients).
  public func closeAll() {
    for index in clients.indices { close(ClientID(index: index)) }
  }

  /// The number of connections and attempts.
  public var connections: Int { loop.counters.connections }

  /// Restarts a client that ended, with a new token if one was needed.
  public func restart(_ client: ClientID, token: String? = nil) { marked(client).start(token: token, now: now) }

  // MARK: Time

  /// Calls `due` at an uptime (ns), or up to a millisecond later; replaces the time given before.
  public func schedule(_ client: ClientID, at uptime: Int64) {
    clients[client.index].due = uptime
    deadlines.insert(.init(time: uptime, client: UInt32(client.index), kind: Kind.application.rawValue))
    armLoopTimer()
  }

  /// Calls `tick` once at an uptime (ns), which replaces the time given before; nil cancels that.
  public func scheduleTick(at uptime: Int64?) {
    tickAt = uptime
    armLoopTimer()
  }

  func armLoopTimer() {
    var time = deadlines.first ?? .max
    if let tickAt { time = min(time, tickAt) }
    loop.setLoopTimer(at: time == .max ? nil : time)
  }

  func mark(_ index: Int) {
    guard !clients[index].isMarked else { return }
    clients[index].isMarked = true
    marked.append(Int32(index))
  }
}
