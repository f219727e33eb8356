// One event loop's sessions: takes bytes from the transport, makes messages of them, hands those to the hub, and brings
// what comes out of it to the sockets. Everything here runs on the loop's thread; nothing is shared but the hub's
// mailboxes and the metrics board.
//
// The order of a turn: read (SessionLoop+Frames, +HTTP) → hub → deliver (SessionLoop+Delivery) → flush (Transport).
//
// A struct behind one object (SessionLoopDelegate): within its methods the compiler checks exclusive access itself,
// where a class would check each property at run time: that was a sixth of all instructions of a message.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubSystem
import HubTokens
import HubTransport
import HubWebSocket

struct SessionLoop: ~Copyable {
  let loop: EventLoop
  let index: UInt32
  let shared: SharedState
  let configuration: ServerConfiguration
  let limits: Limits
  let frameLimits: FrameLimits
  let http: HTTPSettings
  var sessions = SessionTable()
  let reader: MessageReader
  var hub: HubPort
  var inputs = HubInputs()
  var outputs = HubOutputs()
  var fanOut: FanOut
  var namedTrips = NamedTrips()
  /// Connections with requests that wait for the next turn.
  var stalled: [ConnectionID] = []
  /// Work towards `Limits.unitsPerPoll` and requests towards `Limits.requestsPerPoll`: what was done and not yet made
  /// up for.
  var unitsDone = 0
  var requestsDone = 0
  var pending: PendingReplies
  var counters = LoopCounters()
  /// The newest question for this loop's counters that was answered.
  private var answeredQuestion: UInt64 = 0
  var nextTick: Int64
  /// What the wall clock says beyond the uptime, in milliseconds, as of the last tick.
  private var wallClockOffset: Int64
  /// The transport's counters when shortages were last looked for.
  private var lastLogged = EventLoopCounters()
  private var loggedAddressHits: UInt64 = 0
  /// The keys that tokens are checked with; nil where none are taken.
  var access: TokenAccess?
  var accessGeneration: UInt64
  /// The listener of the admin port, as `EventLoop.acceptedOn` tells it; nil where this loop has none.
  let adminListener: Int?
  var countedAddresses = CountedAddresses()
  /// By slot, for the few connections that keep much.
  var incomplete: [Int: IncompleteInput] = [:]
  var isDraining = false
  var drainDeadline: Int64?

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
    http = HTTPSettings(configuration, shared, reader)
    pending = PendingReplies(limits, waking: loop.waker)
    frameLimits = FrameLimits(messageBytes: limits.messageBytes, fragments: limits.fragments)
    self.limits = limits
    fanOut = FanOut(
      loop, number: self.index, limits, flushIntervalMilliseconds: configuration.flushIntervalMilliseconds)
    nextTick = loop.now.uptimeNanoseconds
    wallClockOffset = loop.now.wallClockOffset
    loop.setLoopTimer(at: nextTick)
  }

  var now: Moment {
    let reading = loop.now
    return Moment(
      uptime: reading.uptimeNanoseconds, timestamp: Timestamp(milliseconds: reading.unixMilliseconds))
  }

  func isCurrent(_ id: ConnectionID) -> Bool {
    Int(id.slot) < sessions.endIndex && sessions[Int(id.slot)].connection == id
  }

  /// The slot of the connection that the hub's answer is for, unless it has gone.
  func slot(of session: SessionRef) -> Int? {
    isCurrent(ConnectionID(slot: session.slot, generation: session.generation)) ? Int(session.slot) : nil
  }

  /// Likewise, unless its session is over: one that is closing gave its subscriptions back already.
  func openSlot(of session: SessionRef) -> Int? {
    slot(of: session).flatMap { sessions[$0].phase == .open ? $0 : nil }
  }

  func reference(_ id: ConnectionID) -> SessionRef {
    SessionRef(outlet: index, slot: id.slot, generation: id.generation)
  }

  // MARK: Connections

  mutating func accepted(_ id: ConnectionID, from peer: SocketAddress) {
    let slot = Int(id.slot)
    sessions.makeRoom(for: slot)
    sessions[slot] = Session()
    sessions[slot].connection = id
    sessions[slot].phase = .http
    sessions[slot].lastHeard = now.uptime
    let deadline = now.uptime + nanoseconds(limits.handshakeSeconds)
    let exchange = Exchange(
      HTTPPeer(address: peer, isAdmin: loop.acceptedOn == adminListener, isProxy: isTrustedProxy(peer)),
      deadline: deadline)
    sessions[slot].exchange = exchange
    loop.setTimer(id, at: deadline)
    counters.connections += 1
    countConnection(slot, exchange)
  }

  mutating func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard isCurrent(id) else { return }
    let slot = Int(id.slot)
    sessions[slot].lastHeard = now.uptime
    sessions[slot].wasPinged = false
    switch sessions[slot].phase {
    case .open, .closing: receivedFrames(slot, bytes)
    case .http, .admitting: receivedHTTP(slot, UnsafeRawBufferPointer(bytes))
    case .free: break
    }
    settleIncomplete(slot)
    fanOut.flushIfLarge()
  }

  mutating func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard isCurrent(id) else { return }
    counters.connections -= 1
    if case .tlsFailed(let failure) = cause { shared.log(.debug, "tls_failed", ["reason": "\(failure)"]) }
    endSession(Int(id.slot))
    leaveAddress(Int(id.slot))
    forgetIncomplete(Int(id.slot))
    sessions[Int(id.slot)] = Session()
  }

  mutating func overflowed(_ id: ConnectionID) {
    guard isCurrent(id), sessions[Int(id.slot)].phase == .open else { return loop.abort(id) }
    close(Int(id.slot), .slowConsumer)
  }

  /// The session is over for the hub and for fan-out, whatever still happens on the socket.
  mutating func endSession(_ slot: Int) {
    let phase = sessions[slot].phase
    guard phase == .open || phase == .admitting else { return }
    if sessions[slot].role == .driver { inputs.append(.driverDisconnected(reference(sessions[slot].connection))) }
    leaveSession(slot)
    if phase == .open {
      counters.sessions[Int(sessions[slot].role.rawValue)] -= 1
      if sessions[slot].form == .binary {
        counters.binarySessions -= 1
        namedTrips.forget(slot)
      }
    }
    fanOut.close(slot, &sessions[slot].subscriptions, telling: &inputs)
  }

  // MARK: The turn

  /// What an answer of the hub sets free may ask the hub again: a pipelined request, the frames behind an upgrade, a
  /// session that ended. It goes round at once rather than with the next event, but not for ever.
  private static let exchangesPerTurn = 16

  mutating func turnEnding() {
    if loop.isVisited {
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
    fanOut.releaseHeld(by: isDraining ? .max : now.uptime)
    if now.uptime >= nextTick { tick() }
    armLoopTimer()
  }

  mutating func turnEnded() {
    if !loop.hasUnhandledReports { allowUnits() }
    fanOut.turnFlushed()
    hub.assistOthers()
  }

  /// Another loop has put something into this loop's mailbox, or something is stored: both are looked at when the turn
  /// ends; or somebody asks for counters; or the server is shutting down, which cannot wait for the next second.
  mutating func woken() {
    pickUpAccess()
    if shared.metrics.hub.question != answeredQuestion { publishCounters() }
    if shared.lifecycle.isShuttingDown { nextTick = min(nextTick, now.uptime) }
  }

  mutating func loopTimerFired() {
    resumeStalled()
    if now.uptime >= pending.nextMetricsLook { answerMetrics() }
    if !pending.isEmpty { writeLists() }
  }

  /// Once a second: presence deadlines, metrics for the other loops, and the wishes of the server.
  private mutating func tick() {
    nextTick = now.uptime + 1_000_000_000
    logShortages(since: lastLogged)
    lastLogged = loop.counters
    followWallClock()
    publishCounters()
    checkDrain()
  }

  /// For how long this loop did not turn, though it was due to: its machine was suspended, or had no time for it (ns; 0
  /// for less than a second).
  var stallTime: Int64 {
    let late = now.uptime - nextTick
    return late > 1_000_000_000 && loop.turn > 1 ? late : 0
  }

  /// The time of a stall does not count against those who could not be heard meanwhile.
  private mutating func excuseStall() {
    shared.log(.warning, "loop_stalled", ["seconds": "\(Double(stallTime / 1_000_000) / 1000)", "loop": "\(index)"])
    counters.stalls += 1
    inputs.append(.loopStalled)
    excuseIncomplete(stallTime)
    nextTick = now.uptime
  }

  /// Somebody has set the clock that tokens end by: the sessions' timers, which follow the uptime, are set anew.
  private mutating func followWallClock() {
    let offset = loop.now.wallClockOffset
    guard abs(offset - wallClockOffset) > 100 else { return }
    wallClockOffset = offset
    for slot in 0..<sessions.endIndex where sessions[slot].phase == .open { armSessionTimer(slot) }
  }

  /// What an operator should know of the last second, once, however often it happened.
  private mutating func logShortages(since before: EventLoopCounters) {
    let now = loop.counters
    let (hits, hitsBefore) = (
      counters.hits(.connectionsPerAddress) + counters.hits(.requestRate), loggedAddressHits
    )
    loggedAddressHits = hits
    if hits > hitsBefore {
      shared.log(
        .warning, "address_over_limit",
        [
          "loop": "\(index)", "count": "\(hits - hitsBefore)",
          "hint": "if that is a proxy's address, name it with --trusted-proxy",
        ])
    }
    if now.acceptWaits > before.acceptWaits {
      shared.log(.info, "accept_waits", ["loop": "\(index)", "limit": "\(loop.limits.acceptsPerSecond)"])
    }
    if now.acceptPauses > before.acceptPauses {
      shared.log(
        .warning, "accept_paused", ["loop": "\(index)", "hint": "out of file descriptors or memory: raise ulimit -n"])
    }
    if now.refused > before.refused {
      shared.log(
        .warning, "connections_refused",
        ["loop": "\(index)", "count": "\(now.refused - before.refused)", "limit": "\(loop.limits.maximumConnections)"])
    }
    if now.overflowed > before.overflowed {
      shared.log(.info, "slow_consumers", ["loop": "\(index)", "count": "\(now.overflowed - before.overflowed)"])
    }
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

  mutating func armLoopTimer() {
    var next = nextTick
    if let release = fanOut.deadline { next = min(next, release) }
    next = min(next, hub.nextTurn)
    next = min(next, pending.nextMetricsLook)
    if !inputs.isEmpty || !stalled.isEmpty || !pending.isEmpty { next = now.uptime }
    loop.setLoopTimer(at: next)
  }

  // MARK: Drain

  /// Looks whether the server is shutting down, and takes the next step.
  private mutating func checkDrain() {
    switch shared.lifecycle.phase(at: now.uptime) {
    case .serving: return
    case .unready:
      nextTick = min(nextTick, shared.lifecycle.drainsAt)
      return
    case .draining: break
    }
    if !isDraining {
      isDraining = true
      drainDeadline = now.uptime + nanoseconds(configuration.drainSeconds)
      loop.stopListening()
      for slot in 0..<sessions.endIndex { drain(slot) }
    }
    if counters.connections == 0 || now.uptime >= drainDeadline! { loop.stop() }
    nextTick = now.uptime + 20_000_000
  }

  private mutating func drain(_ slot: Int) {
    switch sessions[slot].phase {
    case .free, .closing: break
    case .open: close(slot, .goingAway)
    case .http:
      if sessions[slot].exchange?.isAnswering != true { loop.close(sessions[slot].connection) }
    case .admitting: loop.abort(sessions[slot].connection)
    }
  }
}

extension ClockReading {
  /// Milliseconds; grows as the wall clock is set forward, or runs faster.
  fileprivate var wallClockOffset: Int64 { unixMilliseconds - uptimeNanoseconds / 1_000_000 }
}

/// Seconds as nanoseconds.
func nanoseconds(_ seconds: Double) -> Int64 { Int64(seconds * 1e9) }
