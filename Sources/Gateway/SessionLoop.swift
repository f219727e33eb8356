// One event loop's sessions: turns bytes from the transport into messages for the hub, and brings its output to the
// sockets. Everything here runs on the loop's thread; only the hub's mailboxes and the metrics board are shared.
//
// The order of a turn: read (SessionLoop+Sessions, +Messages, +HTTP) → hub → deliver (+Delivery) → flush (Transport).
//
// A struct behind one object (SessionLoopDelegate): within its methods the compiler checks exclusive access itself,
// where a class would check each property at run time, a sixth of all instructions of a message.
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
  let limits: Limits
  let frameLimits: FrameLimits
  let http: HTTPService
  let control: ControlFrames
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
  var report: CounterReport
  var access: Current<TokenAccess?>
  var sweep = RevocationSweep()
  /// The index of the admin port's listener, as `EventLoop.acceptedOn` gives it; nil where this loop has none.
  let adminListener: Int?
  var admission: Admission
  private var clock: LoopClock
  private var drain: Drain
  var log: LoopLog

  init(
    index: Int, loop: EventLoop, hub: consuming HubPort, shared: SharedState, configuration: ServerConfiguration,
    adminListener: Int? = nil
  ) {
    self.index = UInt32(index)
    self.loop = loop
    self.hub = hub
    self.shared = shared
    self.adminListener = adminListener
    access = Current(shared.access)
    let limits = configuration.limits
    reader = MessageReader()
    http = HTTPService(
      loop, HTTPSettings(configuration, shared, reader, connectionsPerLoop: loop.limits.maximumConnections))
    pending = PendingReplies(limits, waking: loop.waker)
    frameLimits = FrameLimits(messageBytes: limits.messageBytes, fragments: limits.fragments)
    self.limits = limits
    control = ControlFrames(loop, configuration)
    fanOut = FanOut(
      loop, number: self.index, limits, shared.admissions,
      flushIntervalMilliseconds: configuration.flushIntervalMilliseconds)
    admission = Admission(configuration, shared.admissions)
    budget = TurnBudget(loop, limits, shared.admissions)
    incomplete = IncompleteInputs(limits, shared.admissions)
    report = CounterReport(shared.metrics, loop: index)
    clock = LoopClock(loop.now)
    drain = Drain(seconds: configuration.drainSeconds)
    log = LoopLog(shared.log, loop: self.index)
    loop.setLoopTimer(at: clock.nextTick)
  }

  var now: Moment { Moment(loop.now) }

  // MARK: Connections

  func reference(_ id: ConnectionID) -> SessionRef {
    SessionRef(outlet: index, slot: id.slot, generation: id.generation)
  }

  mutating func accepted(_ id: ConnectionID, from peer: SocketAddress) {
    let slot = Int(id.slot)
    sessions.makeRoom(for: slot)
    let deadline = now.uptime + nanoseconds(limits.handshakeSeconds)
    let peer = admission.peer(peer, isAdmin: loop.acceptedOn == adminListener)
    let exchange = Exchange(id, from: peer, deadline: deadline)
    sessions[slot] = Session(id, exchange, now: now.uptime)
    loop.setTimer(id, at: deadline)
    counters.connections += 1
    switch admission.enter(slot, from: peer, &counters, now: now.uptime) {
    case .admitted: break
    case .isOverLimit: exchange.isOverAddressLimit = true
    case .cutOff: loop.abort(id, reset: true)
    }
  }

  mutating func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard sessions.isCurrent(id) else { return }
    let slot = Int(id.slot)
    sessions[slot].hear(now: now.uptime)
    switch sessions[slot].phase {
    case .open where sessions[slot].stream != nil: control.ignore(bytes.count, from: sessions[slot])
    case .open, .closing: unsafe receivedFrames(slot, bytes)
    case .http, .admitting: unsafe receivedHTTP(slot, UnsafeRawBufferPointer(bytes))
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
    if case .tlsFailed(let failure) = cause { log.tlsFailed(failure) }
    if let exchange = sessions[slot].exchange { http.chargeUnfinished(exchange) }
    endSession(slot)
    admission.leave(slot, now: now.uptime)
    incomplete.forget(&sessions[slot], now: now.uptime)
    sessions[slot] = Session()
  }

  // MARK: The turn

  /// All sockets were read: runs the hub and delivers its output.
  mutating func turnEnding() {
    if loop.isAssisted {
      // Another loop's thread runs this turn to send output. If that causes inputs, the timer is set for at once.
      hub.collect(into: &outputs)
      deliverOutputs()
      return armLoopTimer()
    }
    if stallTime > 0 { excuseStall() }
    if pending.expectsAnswers(now: now.uptime) { deliverAnswers() }
    for _ in 0..<Limits.exchangesPerTurn {
      while !hub.exchange(&inputs, into: &outputs, now: now) {
        deliverOutputs()
        pause(microseconds: 500)
      }
      deliverOutputs()
      if inputs.isEmpty { break }
    }
    if now.uptime >= sweep.nextStep {  // checked first: `access` is copied for the call
      for slot in sweep.step(sessions, by: access.value, now: now) { close(slot, .tokenExpired, "token revoked") }
    }
    fanOut.advance(to: drain.isDraining ? .max : now.uptime, in: sessions)
    if now.uptime >= clock.nextTick { tick() }
    armLoopTimer()
  }

  /// Ends a turn whose output was written to the sockets.
  mutating func turnEnded() {
    if !loop.hasUnhandledReports { budget.renew() }
    fanOut.turnFlushed()
    if !inputs.isEmpty { armLoopTimer() }  // the flush has ended or drained sessions
    hub.assistOthers()
  }

  /// Another thread woke the loop. The end of the turn takes what is in the mailbox or was stored. New settings and
  /// keys, a request for counters and a shutdown are handled here, since they cannot wait for the next tick.
  mutating func woken() {
    if http.settings.pickUp() { admission.take(http.settings.configuration) }
    if access.pickUp() { sweep.begin(now: now.uptime) }
    if report.isAsked { report.publish(allCounters, hub.counters) }
    if shared.lifecycle.isShuttingDown { clock.tick(by: now.uptime) }
  }

  mutating func loopTimerFired() {
    resumeWaiting()
    if !pending.isEmpty { writeLists() }
  }

  mutating func armLoopTimer() {
    let own = min(min(clock.nextTick, sweep.nextStep), hub.nextTurn)  // `min` of four builds an array: 400 instructions
    let next = min(own, min(pending.nextMetricsLook, fanOut.deadline ?? .max))
    loop.setLoopTimer(at: inputs.isEmpty && !budget.isAnyoneWaiting && pending.isEmpty ? next : now.uptime)
  }

  // MARK: Once a second

  /// Each second: metrics, log lines, and changes of the server's state.
  private mutating func tick() {
    clock.ticked(now: now.uptime)
    log.shortages(loop.counters, loop.limits, counters)
    // Sessions' timers follow the uptime, expiry of tokens the wall clock.
    if clock.wallClockWasSet(loop.now) {
      for slot in 0..<sessions.endIndex where sessions[slot].phase == .open { control.arm(&sessions[slot], now: now) }
    }
    report.publish(allCounters, hub.counters)
    if index == 0 { inputs.append(.figures(report.figures(http.settings.metrics(), now: now))) }
    shared.ticked(Int(index), at: now.uptime)
    checkDrain()
  }

  /// How long this loop did not turn though a tick was due, in nanoseconds; 0 for less than a second.
  var stallTime: Int64 { clock.stall(now: now.uptime, isFirstTurn: loop.turn <= 1) }

  /// Excuses peers for the time of a stall, in which they were not read.
  private mutating func excuseStall() {
    log.stalled(stallTime)
    counters.stalls += 1
    inputs.append(.loopStalled)
    incomplete.excuse(stallTime, now: now.uptime)
    clock.excuseStall(now: now.uptime)
  }

  /// The counters of this loop and of its parts.
  var allCounters: LoopCounters { counters.with(loop.counters, fanOut.allCounters, pending: pending.counts) }

  private mutating func checkDrain() {
    switch drain.step(shared.lifecycle, sessions.endIndex, connections: counters.connections, now: now.uptime) {
    case .serve(let end): return clock.tick(by: end ?? .max)
    case .dismiss(let slots):
      loop.stopListening()
      for slot in slots { dismiss(slot) }
    case .wait: break
    case .stop: loop.stop()
    }
    clock.tick(by: now.uptime + 20_000_000)
  }

  private mutating func dismiss(_ slot: Int) {
    switch sessions[slot].phase {
    case .free, .closing: break
    case .open: close(slot, .goingAway)
    case .http: if let exchange = sessions[slot].exchange, exchange.mayBeDismissed { http.end(exchange) }
    case .admitting: loop.abort(sessions[slot].connection)
    }
  }
}
