// One event loop's sessions: takes bytes from the transport, makes messages of them, hands those to the hub, and brings
// what comes out of it to the sockets. Everything here runs on the loop's thread; nothing is shared but the hub's
// mailboxes and the metrics board.
//
// The order of a turn: read (SessionLoop+Sessions, +HTTP) → hub → deliver (SessionLoop+Delivery) → flush (Transport).
//
// A struct behind one object (SessionLoopDelegate): within its methods the compiler checks exclusive access itself,
// where a class would check each property at run time: that was a sixth of all instructions of a message.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubSystem
import HubTransport
import HubWebSocket

struct SessionLoop: ~Copyable {
  let loop: EventLoop
  let index: UInt32
  let shared: SharedState
  let configuration: ServerConfiguration
  let limits: Limits
  let frameLimits: FrameLimits
  /// Of `limits`, which would be copied whole for each message.
  let usualRate: Pacing.Rate
  let http: HTTPSettings
  let responder: Responder
  var sessions = SessionTable()
  let reader: MessageReader
  var namedTrips = NamedTrips()
  var hub: HubPort
  var inputs = HubInputs()
  var outputs = HubOutputs()
  var fanOut: FanOut
  var budget: TurnBudget
  var incomplete: IncompleteInputs
  var pending: PendingReplies
  var counters = LoopCounters()
  /// The newest question for this loop's counters that was answered.
  private var answeredQuestion: UInt64 = 0
  /// The keys that tokens are checked with; nil where none are taken.
  var access: TokenAccess?
  var accessGeneration: UInt64
  /// The listener of the admin port, as `EventLoop.acceptedOn` tells it; nil where this loop has none.
  let adminListener: Int?
  var admission: Admission
  private var clock: LoopClock
  private var drain: Drain
  private var shortages: ShortageLog

  init(
    index: Int, loop: EventLoop, hub: consuming HubPort, shared: SharedState, configuration: ServerConfiguration,
    adminListener: Int? = nil
  ) {
    self.index = UInt32(index)
    self.loop = loop
    self.hub = hub
    self.shared = shared
    self.configuration = configuration
    self.adminListener = adminListener
    accessGeneration = shared.access.generation  // before the value: at worst it is picked up twice
    access = shared.access.current
    let limits = configuration.limits
    reader = MessageReader()
    http = HTTPSettings(
      configuration, shared, reader, connectionsPerLoop: loop.limits.maximumConnections)
    responder = Responder(loop, http)
    pending = PendingReplies(limits, waking: loop.waker)
    frameLimits = FrameLimits(messageBytes: limits.messageBytes, fragments: limits.fragments)
    self.limits = limits
    usualRate = Pacing.Rate(limits)
    fanOut = FanOut(
      loop, number: self.index, limits, flushIntervalMilliseconds: configuration.flushIntervalMilliseconds)
    admission = Admission(configuration, shared.admissions)
    budget = TurnBudget(limits)
    incomplete = IncompleteInputs(limits, shared.admissions)
    clock = LoopClock(loop.now)
    drain = Drain(seconds: configuration.drainSeconds)
    shortages = ShortageLog(shared.log, loop: self.index)
    loop.setLoopTimer(at: clock.nextTick)
  }

  var now: Moment {
    let reading = loop.now
    return Moment(
      uptime: reading.uptimeNanoseconds, timestamp: Timestamp(milliseconds: reading.unixMilliseconds))
  }

  // MARK: Connections

  /// The slot of the connection that the hub's answer is for, unless it has gone.
  func slot(of session: SessionRef) -> Int? {
    sessions.isCurrent(ConnectionID(slot: session.slot, generation: session.generation)) ? Int(session.slot) : nil
  }

  /// Likewise, unless its session is over: one that is closing gave its subscriptions back already.
  func openSlot(of session: SessionRef) -> Int? {
    slot(of: session).flatMap { sessions[$0].phase == .open ? $0 : nil }
  }

  func reference(_ id: ConnectionID) -> SessionRef {
    SessionRef(outlet: index, slot: id.slot, generation: id.generation)
  }

  mutating func accepted(_ id: ConnectionID, from peer: SocketAddress) {
    let slot = Int(id.slot)
    sessions.makeRoom(for: slot)
    let deadline = now.uptime + nanoseconds(limits.handshakeSeconds)
    let peer = HTTPPeer(
      address: peer, isAdmin: loop.acceptedOn == adminListener, isProxy: admission.isTrustedProxy(peer))
    let exchange = Exchange(id, from: peer, deadline: deadline)
    sessions[slot] = Session(id, exchange, now: now.uptime)
    loop.setTimer(id, at: deadline)
    counters.connections += 1
    switch admission.enter(slot, from: peer, now: now.uptime) {
    case .admitted: return
    case .isOverLimit: exchange.isOverAddressLimit = true
    case .cutOff: loop.abort(id, reset: true)
    }
    counters.count(.connectionsPerAddress)
  }

  mutating func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard sessions.isCurrent(id) else { return }
    let slot = Int(id.slot)
    sessions[slot].hear(now: now.uptime)
    switch sessions[slot].phase {
    case .open, .closing: receivedFrames(slot, bytes)
    case .http, .admitting: receivedHTTP(slot, UnsafeRawBufferPointer(bytes))
    case .free: break
    }
    reconcileInput(slot)
    fanOut.flushIfLarge()
  }

  mutating func overflowed(_ id: ConnectionID) {
    guard sessions.isCurrent(id), sessions[Int(id.slot)].phase == .open else { return loop.abort(id) }
    close(Int(id.slot), .slowConsumer)
  }

  mutating func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard sessions.isCurrent(id) else { return }
    let slot = Int(id.slot)
    counters.connections -= 1
    if case .tlsFailed(let failure) = cause { shared.log(.debug, "tls_failed", ["reason": "\(failure)"]) }
    endSession(slot)
    admission.leave(slot, now: now.uptime)
    incomplete.forget(slot, &sessions[slot].keepsInput)
    sessions[slot] = Session()
  }

  // MARK: The turn

  /// What an answer of the hub sets free may ask the hub again: a pipelined request, the frames behind an upgrade, a
  /// session that ended. It goes round at once rather than with the next event, but not for ever.
  private static let exchangesPerTurn = 16

  /// All sockets were read: the hub, and what comes out of it.
  mutating func turnEnding() {
    if loop.isAssisted {
      // Where that gives the hub something to do, it is for this loop's own thread: the timer is due then.
      hub.collect(into: &outputs)
      deliverOutputs()
      return armLoopTimer()
    }
    if stallTime > 0 { excuseStall() }
    deliverHistory()
    var rounds = 0
    repeat {
      while !hub.exchange(&inputs, into: &outputs, now: now) {
        deliverOutputs()
        pause(microseconds: 500)
      }
      deliverOutputs()
      rounds += 1
    } while !inputs.isEmpty && rounds < Self.exchangesPerTurn
    fanOut.releaseHeld(by: drain.isDraining ? .max : now.uptime)
    if now.uptime >= clock.nextTick { tick() }
    armLoopTimer()
  }

  /// What there was to send is on its way.
  mutating func turnEnded() {
    if !loop.hasUnhandledReports { budget.renew() }
    fanOut.turnFlushed()
    hub.assistOthers()
  }

  /// Another loop has put something into this loop's mailbox, or something is stored: both are looked at when the turn
  /// ends; or somebody asks for counters; or the server is shutting down, which cannot wait for the next second.
  mutating func woken() {
    pickUpAccess()
    if shared.metrics.hub.question != answeredQuestion { publishCounters() }
    if shared.lifecycle.isShuttingDown { clock.tick(by: now.uptime) }
  }

  mutating func loopTimerFired() {
    resumeWaiting()
    if now.uptime >= pending.nextMetricsLook { answerMetrics() }
    if !pending.isEmpty { writeLists() }
  }

  mutating func armLoopTimer() {
    var next = min(clock.nextTick, hub.nextTurn, pending.nextMetricsLook)
    if let release = fanOut.deadline { next = min(next, release) }
    if !inputs.isEmpty || budget.isAnyoneWaiting || !pending.isEmpty { next = now.uptime }
    loop.setLoopTimer(at: next)
  }

  // MARK: Once a second

  /// Metrics for the other loops, what the operator should know, and the wishes of the server.
  private mutating func tick() {
    clock.ticked(now: now.uptime)
    shortages.write(
      loop.counters, loop.limits,
      addressHits: counters.hits(.connectionsPerAddress) + counters.hits(.requestRate))
    // Sessions' timers follow the uptime; their tokens end by the wall clock.
    if clock.wallClockWasSet(loop.now) {
      for slot in 0..<sessions.endIndex where sessions[slot].phase == .open { armSessionTimer(slot) }
    }
    publishCounters()
    checkDrain()
  }

  /// See `LoopClock.stall`.
  var stallTime: Int64 { clock.stall(now: now.uptime, isFirstTurn: loop.turn <= 1) }

  /// The time of a stall does not count against those who could not be heard meanwhile.
  private mutating func excuseStall() {
    shared.log(.warning, "loop_stalled", ["seconds": "\(Double(stallTime / 1_000_000) / 1000)", "loop": "\(index)"])
    counters.stalls += 1
    inputs.append(.loopStalled)
    incomplete.excuse(stallTime, now: now.uptime)
    clock.excuseStall(now: now.uptime)
  }

  /// What is counted here, and what the parts count.
  var allCounters: LoopCounters {
    var all = counters
    all.transport = loop.counters
    all.fanOut = fanOut.counters
    all.answersUnderWay = pending.count
    all.historyQuestions = pending.historyQuestions
    return all
  }

  mutating func publishCounters() {
    let question = shared.metrics.hub.question
    answeredQuestion = question
    shared.metrics.store(allCounters, loop: Int(index), answering: question)
    if let counters = hub.counters { shared.metrics.hub.store(counters, answering: question) }
  }

  private mutating func checkDrain() {
    switch drain.step(shared.lifecycle, connections: counters.connections, now: now.uptime) {
    case .serve(let end): return clock.tick(by: end ?? .max)
    case .begin:
      loop.stopListening()
      for slot in 0..<sessions.endIndex { tellToGo(slot) }
      return checkDrain()
    case .wait: break
    case .stop: loop.stop()
    }
    clock.tick(by: now.uptime + 20_000_000)
  }

  private mutating func tellToGo(_ slot: Int) {
    switch sessions[slot].phase {
    case .free, .closing: break
    case .open: close(slot, .goingAway)
    case .http:
      if sessions[slot].exchange?.isAnswering != true { loop.close(sessions[slot].connection) }
    case .admitting: loop.abort(sessions[slot].connection)
    }
  }
}
