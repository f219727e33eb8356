// One thread's event loop over epoll: connections, timers, listeners, and the output of a turn.
//
// As in redis: read all ready sockets, let the owner handle the input, then write to each connection once.
// Output for many connections is in the turn's arena once; a connection holds 24 bytes for each send, and bytes are
// copied only where the kernel takes no more.
//
// The files: EventLoop+Events (ready sockets), +Accepting, +Sending (send and flush), +Closing, +Timers, +Assists
// (turns on another thread); LoopState holds the hot state.

import CHubLinux
import Glibc
import HubBytes
public import HubSystem

/// An event loop, for the thread that runs it: not Sendable, except for its `waker`.
@safe
public final class EventLoop {
  /// A send: a range of the arena, its conflation key, and the index of the connection's next send (−1: none).
  struct Segment {
    var offset: UInt32
    var length: UInt32
    var key: UInt64
    var next: Int32
  }

  /// A listening socket. It is not watched while accepting pauses: for lack of descriptors, or because of the pace.
  struct Listener {
    let descriptor: Int32
    /// Set where its connections use TLS.
    let tls: TLSServer?
    var isWatched: Bool
    let isPaced: Bool
  }

  public let limits: EventLoopLimits
  let sockets: SocketCalls
  /// Wakes this loop from any thread.
  public let waker: Waker
  /// The hot state: see LoopState.swift.
  @usableFromInline let state: UnsafeMutablePointer<LoopState>
  /// The clock of a test that drives time; nil for the system's.
  private let clock: (() -> ClockReading)?
  /// Whether `clock` is set: checked instead of the closure, which would be retained.
  private let hasOwnClock: Bool
  let readBuffer: UnsafeMutableRawBufferPointer
  let pieces: UnsafeMutableBufferPointer<iovec>

  var spareOutboxes: [Outbox] = []
  var outboxRanks = OutboxRanks()

  /// The index of the first due timer that has not fired.
  var nextDueTimer = 0

  var listeners: [Listener] = []
  /// While `accepted` is called: the listener's index, in the order of the calls of `listen`.
  public internal(set) var acceptedOn = 0
  /// The token bucket of `acceptsPerSecond`: its tokens, and when they were counted last (uptime, ns).
  var acceptPace: Double
  var acceptPaceAt: Int64
  var signals: SignalWatch?
  private(set) var isStopping = false
  /// The number of epoll's reports, and how many are handled.
  private var reportCount = 0
  private var nextReport = 0

  /// A loop with its own epoll instance. `clock` is for tests that drive time manually.
  ///
  /// Throws when the kernel has no descriptor left for it.
  public convenience init(
    limits: EventLoopLimits = EventLoopLimits(), clock: (() -> ClockReading)? = nil
  ) throws(SystemError) {
    try self.init(limits: limits, clock: clock, network: nil)
  }

  /// A loop over a simulated network (nil: the kernel's), which never sleeps: all its turns have a timeout of 0.
  package init(
    limits: EventLoopLimits, clock: (() -> ClockReading)?, network: (any Network)?
  ) throws(SystemError) {
    limits.validate()
    self.limits = limits
    self.clock = clock
    hasOwnClock = clock != nil
    let now = clock?() ?? ClockReading.read()
    acceptPace = Double(limits.acceptsPerSecond)
    acceptPaceAt = now.uptimeNanoseconds
    waker = try Waker()
    sockets = SocketCalls(network)
    let poller = try Poller(eventsPerTurn: limits.eventsPerTurn, network: network)
    if network == nil { try poller.add(waker.descriptor, token: Token.waker, .readable) }
    // After the last throw: a failed init runs no deinit.
    unsafe state = .allocate(capacity: 1)
    unsafe state.initialize(
      to: LoopState(
        now: now, latestUptime: now.uptimeNanoseconds, poller: poller,
        sendRing: limits.sendsTogether && network == nil ? SendRing() : nil,
        pace: TurnPace(limits, now: now.uptimeNanoseconds), wheel: TimerWheel(startingAt: now.uptimeNanoseconds)))
    unsafe readBuffer = .allocate(byteCount: limits.readBufferBytes, alignment: 64)
    unsafe pieces = .allocate(capacity: 64)
    unsafe pieces.initialize(repeating: iovec())
  }

  /// Closes all descriptors without a callback.
  deinit {
    for slot in 0..<slab.slotCount where unsafe slab.pointer(slot).pointee.descriptor >= 0 {
      unsafe sockets.close(slab.pointer(slot).pointee.descriptor)
    }
    for listener in listeners { sockets.close(listener.descriptor) }
    endAssists()
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
    unsafe readBuffer.deallocate()
    unsafe pieces.deinitialize()
    unsafe pieces.deallocate()
  }

  /// The number of turns: a stamp for data that is valid for one turn, such as ranges of the arena.
  public var turn: UInt64 { counters.turns }

  /// Runs turns until `stop` is called, with the delegate that is set now.
  public func run() {
    isStopping = false
    let delegate = delegate
    lockTurns()
    unsafe state.pointee.isRunning = true
    unsafe state.pointee.latestUptime = now.uptimeNanoseconds
    while !isStopping { takeTurn(delegate, timeoutMilliseconds: -1) }
    unsafe state.pointee.isRunning = false
    unlockTurns()
  }

  /// Makes `run` return after the present turn. From another thread: wake the loop, and call it in `woken`.
  public func stop() { isStopping = true }

  /// One turn: sleeps until something is ready, a timer is due, the waker is called or `timeoutMilliseconds` have
  /// passed (negative: no limit; 0: does not sleep), then handles everything that is ready.
  public func runTurn(timeoutMilliseconds: Int32 = -1) {
    // Time may have passed since the last turn: its reading is too old for this one's sleep.
    unsafe state.pointee.latestUptime = now.uptimeNanoseconds
    takeTurn(delegate, timeoutMilliseconds: timeoutMilliseconds)
  }

  /// One turn. The caller holds a strong reference to the delegate, so that `run` takes one for all its turns.
  private func takeTurn(_ delegate: (any EventLoopDelegate)?, timeoutMilliseconds: Int32) {
    // Reports that the last turn left unhandled come first, without another poll.
    let pollsSockets = !hasUnhandledReports
    if pollsSockets {
      var timeout = timeToSleep(atMost: timeoutMilliseconds)
      if timeout != 0, gatherIfAsked() { timeout = 0 }
      let fallsAsleep = timeout != 0 && waker.announceSleep()
      if fallsAsleep { timeout = fallAsleep(milliseconds: timeout) }
      let ready = unsafe state.pointee.poller.wait(milliseconds: fallsAsleep ? timeout : 0)
      if fallsAsleep { lockTurns() }
      (reportCount, nextReport) = (ready, 0)
    }
    let wasCalled = waker.awaken()
    beginTurn()
    if pollsSockets { unsafe state.pointee.pace.count(reportCount, at: now.uptimeNanoseconds) }
    callBack(delegate, wasCalled: wasCalled)
  }

  /// Lets the next sleep, up to `uptimeNanoseconds`, be ended by sockets and timers, but not by the waker.
  ///
  /// Calls of the waker are seen when that sleep ends, and cost their callers no system call: for an owner that lets
  /// messages of other threads accumulate. For loops without assistants only.
  public func gather(until uptimeNanoseconds: Int64) {
    unsafe precondition(state.pointee.turnLock == nil)
    unsafe state.pointee.gathersUntil = uptimeNanoseconds
  }

  /// Sleeps until the time given to `gather`; false when that has passed, or when none was given.
  @inline(__always)
  private func gatherIfAsked() -> Bool {
    let until = unsafe state.pointee.gathersUntil
    return until > 0 && gather(until)
  }

  @inline(never)
  private func gather(_ until: Int64) -> Bool {
    unsafe state.pointee.gathersUntil = 0
    let left = unsafe min(until, state.pointee.wakesAt) - readUptime()
    guard left > 0 else { return false }
    poller.sleep(nanoseconds: left)
    return true
  }

  /// Unlocks the turns for assistants, pauses if the loop is under load, and gives the timeout of the next poll (ms).
  @inline(__always)
  private func fallAsleep(milliseconds: Int32) -> Int32 {
    var (pause, left): (Int64, Int64) = (0, 0)
    if unsafe state.pointee.pace.isOn {
      left = unsafe state.pointee.wakesAt &- state.pointee.latestUptime
      let worked = unsafe state.pointee.latestUptime &- now.uptimeNanoseconds
      pause = unsafe state.pointee.pace.pause(before: left, after: worked)
      if pause > 0 { counters.pauses += 1 }
    }
    unlockTurns()
    if pause == 0 { return milliseconds }
    waker.sleep(nanoseconds: pause)
    return pause == left ? 0 : milliseconds
  }

  private func beginTurn() {
    now = readClock()
    unsafe state.pointee.latestUptime = now.uptimeNanoseconds
    counters.turns += 1
  }

  /// A turn on an assistant's thread, which delivers and sends only. Sockets, timers and wake-ups are left to the
  /// loop's own thread.
  func takeAssistedTurn() {
    beginTurn()
    callBack(delegate)
  }

  /// The turn's callbacks. A separate function, whose parameter is one strong reference for all of them: a variable
  /// would be retained for each.
  @inline(never)
  private func callBack(_ delegate: (any EventLoopDelegate)?, wasCalled: Bool) {
    handleReports(delegate)
    fireTimers(delegate)
    if wasCalled { delegate?.woken() }
    endTurn(delegate)
  }

  @inline(never)
  private func callBack(_ delegate: (any EventLoopDelegate)?) { endTurn(delegate) }

  @inline(__always)
  private func endTurn(_ delegate: (any EventLoopDelegate)?) {
    deliverNotices(delegate)
    delegate?.turnEnding()
    reconcile(delegate)
    delegate?.turnEnded()
  }

  /// Handles the ready sockets, within one turn's limits. A report may be stale by then, because an event before it has
  /// ended its connection: `handle` checks that.
  private func handleReports(_ delegate: (any EventLoopDelegate)?) {
    let before = unsafe state.pointee.counters.bytesRead
    unsafe state.pointee.spentBytes = 0
    var (next, room) = (nextReport, true)
    let (count, limit) = (reportCount, limits.readBytesPerTurn)
    while next < count, room {
      handle(poller.readiness(next), delegate)
      next += 1
      let read = unsafe Int(truncatingIfNeeded: state.pointee.counters.bytesRead &- before)
      room = unsafe read + state.pointee.spentBytes < limit
    }
    nextReport = next
    if next < count { unsafe state.pointee.counters.turnsCut += 1 }
  }

  /// The monotonic clock at this moment of a turn, in nanoseconds. The following sleep is computed from the newest
  /// reading, so that a reading at a turn's end costs nothing extra.
  public func readUptime() -> Int64 {
    let uptime = hasOwnClock ? readClock().uptimeNanoseconds : ClockReading.uptime()
    unsafe state.pointee.latestUptime = uptime
    return uptime
  }

  @inline(__always)
  private func readClock() -> ClockReading {
    if hasOwnClock, let clock { return clock() }
    return ClockReading.read()
  }

  /// Whether ready sockets are left to the next turn, which follows without polling.
  public var hasUnhandledReports: Bool { nextReport < reportCount }

  /// Counts work beyond the size of the input, in bytes: compressed data, for instance. After much of it other ready
  /// sockets wait for the next turn.
  public func spend(bytes: Int) { unsafe state.pointee.spentBytes += bytes }

  /// Sleeps until something is ready or `uptimeNanoseconds`, to within some ten microseconds, where `runTurn` rounds up
  /// to milliseconds. For load generators, whose timing depends on it; a `runTurn` with a timeout of 0 has to follow,
  /// and sees calls of the waker.
  public func sleepPrecisely(until uptimeNanoseconds: Int64) {
    let left = uptimeNanoseconds - readUptime()
    let isIdle = unsafe dirty.isEmpty && !state.pointee.hasNotices && !hasUnhandledReports && !hasDueTimers
    if left > 0, isIdle { poller.sleep(nanoseconds: left) }
  }

  /// Flushes and delivers callbacks until both are done. A delegate that always sends in `drained` does not hold up the
  /// loop: after some rounds the rest is left to the next turn, and the arena is kept until then.
  private func reconcile(_ delegate: (any EventLoopDelegate)?) {
    var rounds = 0
    repeat {
      flush()
      deliverNotices(delegate)
      rounds += 1
    } while !dirty.isEmpty && rounds < 8
    if dirty.isEmpty {
      segments.removeAll()
      arena.removeAll(keepingAtMost: limits.arenaKeepBytes)
    }
  }

  /// Makes the callbacks noted during operations, if they still apply. Those that they cause wait for the next call, so
  /// that two sides that keep failing cannot hold up the loop.
  @inline(__always)
  private func deliverNotices(_ delegate: (any EventLoopDelegate)?) {
    if unsafe state.pointee.hasNotices { deliverAllNotices(delegate) }
  }

  @inline(never)
  private func deliverAllNotices(_ delegate: (any EventLoopDelegate)?) {
    var notices = takeAll(&drainedNotices)
    for id in notices {
      guard let connection = unsafe slab.live(id), unsafe connection.pointee.outbox == nil else { continue }
      if unsafe connection.pointee.state == .open { delegate?.drained(id) }
    }
    release(&notices, to: &drainedNotices)

    notices = takeAll(&overflowedNotices)
    for id in notices {
      guard let connection = unsafe slab.live(id), unsafe connection.pointee.flags.contains(.hasOverflowed) else {
        continue
      }
      if unsafe connection.pointee.state == .open || connection.pointee.state == .connecting {
        delegate?.overflowed(id)
      }
    }
    release(&notices, to: &overflowedNotices)

    notices = takeAll(&doomedNotices)
    for id in notices {
      let cause = unsafe slab.pointer(id.slot).pointee.cause
      wheel.forget(id.slot, in: slab)
      slab.remove(id.slot)
      counters.closed += 1
      counters.connections -= 1
      delegate?.closed(id, cause)
    }
    release(&notices, to: &doomedNotices)
    unsafe state.pointee.hasNotices = !doomedNotices.isEmpty || !drainedNotices.isEmpty || !overflowedNotices.isEmpty
  }

  private func takeAll(_ list: inout [ConnectionID]) -> [ConnectionID] {
    if list.isEmpty { return [] }
    var taken: [ConnectionID] = []
    swap(&taken, &list)
    return taken
  }

  /// Keeps the memory of a delivered list, unless new notices came meanwhile.
  private func release(_ taken: inout [ConnectionID], to list: inout [ConnectionID]) {
    taken.removeAll(keepingCapacity: true)
    if list.isEmpty && list.capacity < taken.capacity { swap(&taken, &list) }
  }

  /// Milliseconds until the next timer, at most `timeout`, and 0 while something waits for the next turn.
  func timeToSleep(atMost timeout: Int32) -> Int32 {
    if unsafe timeout == 0 || !dirty.isEmpty || state.pointee.hasNotices || hasDueTimers { return 0 }
    var next = wheel.nextUptimeNanoseconds ?? .max
    if let loopTimerAt { next = min(next, loopTimerAt) }
    if let acceptRetryAt { next = min(next, acceptRetryAt) }
    unsafe state.pointee.wakesAt = next
    if next == .max { return timeout }
    // The sleep begins now, not when the turn began: by a reading from the turn's end, if there is one.
    let latest = unsafe state.pointee.latestUptime
    let reckoned = latest > now.uptimeNanoseconds ? latest : readUptime()
    // Compared before subtracting, which could overflow: a timer that is due at once may be set to `.min`.
    let nanoseconds = next <= reckoned ? 0 : next - reckoned
    // Rounded up: a sleep that ends just before the time would be followed by a second one.
    let milliseconds = Int32(clamping: nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1))
    return timeout < 0 ? milliseconds : min(timeout, milliseconds)
  }

  /// Notes a callback to be made outside operations.
  func note(_ id: ConnectionID, in list: inout [ConnectionID]) {
    list.append(id)
    unsafe state.pointee.hasNotices = true
  }
}
