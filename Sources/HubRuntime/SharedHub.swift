// One hub for several loops, without a thread of its own: a turn of it runs on the thread of whichever loop has
// something for it. A loop that finds it busy leaves its inputs and goes on; who is at it takes them too.
//
//     loop A   reads, parses → takes the hub: A's fixes → its own deliveries at once, B's into B's mailbox → B's
//     deliveries
//     loop B   reads, parses → the hub is taken: its fixes into its mailbox; A handles them before it lets go
//
// Why not a thread for it, as there was: every message crossed to that thread and back, and each crossing is a wake-up,
// a switch of threads and cold caches. Here a position whose driver and rider are on the same loop crosses nothing, and
// another one once; and where that is little and the other loop sleeps, it is brought out on this thread, and nobody is
// woken (EventLoop+Assists). It is still one hub: one thread at a time, one order of all events, and what it does is
// the same code.
import HubBytes
package import HubCore
package import HubMessages
import HubSystem

/// The hub that several loops share.
///
/// `@unchecked Sendable`: what is behind `state` is touched only by the thread that holds `lock`, and each of
/// `nextTurns` and `toAssist` only by its own loop's thread, which the compiler cannot see.
@safe
package final class SharedHub: @unchecked Sendable {
  /// Turns for the sake of others before a loop looks at its own sockets again.
  private static let roundsInARow = 2
  /// The loop that takes the hub whenever its thread is awake, once a second at least: for what is due by the clock,
  /// and for what comes from other threads than the loops', which wake it: what is stored, what was looked up.
  private static let host = 0

  /// So many deliveries are worth waking loops for, which bring them out while this one goes on; as long as there are
  /// fewer in a turn, for all others together, they are brought out for those that sleep.
  private static let manyDeliveries = 9

  private let lock = CombiningLock()
  private let state: UnsafeMutablePointer<SharedTurns>
  private let inboxes: [MixedMailbox<FixInput, HubInput>]
  private let outlets: [Outlet]
  /// The loops that have left something in their inbox.
  private let posted = AtomicOutletSet()
  /// When the hub wanted its next turn, as each loop has last seen it: who had it last has the right time. A loop's is
  /// a cache line from the next one's.
  private let nextTurns: UnsafeMutablePointer<Int64>
  /// The outlets that each loop has put a little out for; touched only by that loop's turns.
  private let toAssist: UnsafeMutablePointer<OutletSet>
  /// From one loop's to the next one's in both, in elements: a cache line at least.
  private static let stride = 8
  private let lifecycle: Lifecycle

  /// A hub for loops whose outlets are `outlets`, by number. `inboxCapacity`: inputs of a loop that may wait while
  /// another has the hub. `journal` and `history` are nil where nothing is stored; answers wake the first loop.
  package init(
    _ hub: consuming Hub, outlets: [Outlet], inboxCapacity: Int, journal: JournalQueue? = nil,
    history: Consultation<HistoryLookup>? = nil, lifecycle: Lifecycle, metrics: HubMetrics, now: Moment
  ) {
    precondition((1...OutletSet.capacity).contains(outlets.count))
    self.outlets = outlets
    self.lifecycle = lifecycle
    inboxes = outlets.map { _ in MixedMailbox(capacity: inboxCapacity) }
    let count = outlets.count * SharedHub.stride
    unsafe nextTurns = .allocate(capacity: count)
    unsafe nextTurns.initialize(repeating: 0, count: count)
    unsafe toAssist = .allocate(capacity: count)
    unsafe toAssist.initialize(repeating: OutletSet(), count: count)
    unsafe state = .allocate(capacity: 1)
    unsafe state.initialize(
      to: SharedTurns(HubTurn(hub, journal: journal, history: history), metrics: metrics, now: now))
  }

  deinit {
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
    unsafe nextTurns.deallocate()
    unsafe toAssist.deallocate()
  }

  func inspect(_ body: (inout Hub) -> Void) { unsafe state.pointee.turn.inspect(body) }

  /// When this loop has to come back (uptime, ns); 0 for at once.
  func nextTurn(of loop: Int) -> Int64 { unsafe nextTurns[loop * SharedHub.stride] }

  /// Hands a loop's inputs over, in order, and puts what has come out for it into the empty `outputs`; see
  /// `HubPort.exchange`.
  func exchange(_ loop: Int, _ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) -> Bool {
    outlets[loop].mailbox.drain(into: &outputs)
    guard isWanted(by: loop, inputs, now) else { return true }
    if lock.tryLock() {
      take(loop, &inputs, into: &outputs, now: now)
      return true
    }
    inboxes[loop].append(whatFitsOf: &inputs)
    posted.insert(loop)
    if lock.lockOrDelegate() { take(loop, &inputs, into: &outputs, now: now) }
    return inputs.isEmpty
  }

  /// What the other loops have left for this one, without a turn of the hub.
  func collect(_ loop: Int, into outputs: inout HubOutputs) { outlets[loop].mailbox.drain(into: &outputs) }

  /// A loop's thread has ended: what it and others have left is done, for it may be the last one.
  package func finish(_ loop: Int, now: Moment) {
    outlets[loop].close()
    while !lock.tryLock() { pause(microseconds: 100) }
    var inputs = HubInputs()
    var outputs = HubOutputs()
    repeat { run(loop, &inputs, into: &outputs, now: now) } while !lock.unlock()
    assistOthers(from: loop)
  }

  func wakeOthers(than loop: Int) {
    for other in outlets.indices where other != loop { outlets[other].waker.wake() }
  }

  /// A loop's turn is over: what it has put out for others that sleep is brought out.
  @inline(__always)
  func assistOthers(from loop: Int) {
    if unsafe !toAssist[loop * SharedHub.stride].isEmpty { assistThem(from: loop) }
  }

  private func assistThem(from loop: Int) {
    var sleeping = unsafe toAssist[loop * SharedHub.stride]
    unsafe toAssist[loop * SharedHub.stride] = OutletSet()
    while let other = sleeping.popFirst() { outlets[other].assist() }
  }

  /// Most turns of a loop that only sends, or reads pongs, have nothing for the hub.
  private func isWanted(by loop: Int, _ inputs: borrowing HubInputs, _ now: Moment) -> Bool {
    unsafe !inputs.isEmpty || loop == SharedHub.host || nextTurns[loop * SharedHub.stride] <= now.uptime
      || lifecycle.isShuttingDown
  }

  // MARK: With the lock

  /// Turns of the hub, until nobody has left anything or this loop has done enough of them.
  private func take(_ loop: Int, _ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) {
    // Another loop may have had the hub between the first look into this mailbox and now: that comes before what
    // follows.
    unsafe state.pointee.pickUp(outlets[loop].mailbox, into: &outputs)
    for _ in 0..<SharedHub.roundsInARow {
      run(loop, &inputs, into: &outputs, now: now)
      unsafe nextTurns[loop * SharedHub.stride] = state.pointee.nextTurn
      if lock.unlock() { return }
    }
    unsafe nextTurns[loop * SharedHub.stride] = 0
    lock.unlockAnyway()
  }

  private func run(_ loop: Int, _ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) {
    unsafe state.pointee.begin(now)
    var others = posted.takeAll()
    while let other = others.popFirst() { unsafe state.pointee.handle(inboxes[other]) }
    unsafe state.pointee.end(with: &inputs)
    var room = SharedHub.manyDeliveries
    for (number, outlet) in outlets.enumerated() {
      if number == loop {
        unsafe state.pointee.giveOut(to: loop, into: &outputs)
      } else if unsafe state.pointee.post(to: outlet, number, unlessWithin: &room) {
        unsafe toAssist[loop * SharedHub.stride].insert(number)
      }
    }
  }
}

/// The hub's turn, and what it takes in and gives out: what belongs to who has the lock.
private struct SharedTurns: ~Copyable {
  fileprivate var turn: HubTurn
  private let metrics: HubMetrics
  private var batch = HubInputs()
  private var output = HubOutputs()
  /// When the counters are shown next (uptime, ns), and the newest question for them that was answered.
  private var nextTick: Int64
  private var answered: UInt64 = 0
  /// Loops read the clock when they wake, so one that takes the hub later may have an earlier time.
  private var now: Moment

  init(_ turn: consuming HubTurn, metrics: HubMetrics, now: Moment) {
    self.turn = turn
    self.metrics = metrics
    nextTick = now.uptime
    self.now = now
  }

  /// When the next turn is due (uptime, ns); 0 for at once.
  var nextTurn: Int64 { mutating get { turn.nextTurn } }

  mutating func begin(_ time: Moment) {
    if time.uptime > now.uptime { now = time }
    turn.begin(now: now)
  }

  mutating func handle(_ inbox: MixedMailbox<FixInput, HubInput>) {
    inbox.drain(into: &batch)
    turn.handle(batch, now: now)
    batch.removeAll()
  }

  mutating func end(with inputs: inout HubInputs) {
    turn.handle(inputs, now: now)
    inputs.removeAll()
    turn.end()
    let question = metrics.question
    guard now.uptime >= nextTick || question != answered else { return }
    nextTick = now.uptime + 1_000_000_000
    answered = question
    metrics.store(turn.counters, answering: question)
  }

  /// What is in a mailbox, behind what is in `outputs`.
  mutating func pickUp(_ mailbox: MixedMailbox<PositionDelivery, HubOutput>, into outputs: inout HubOutputs) {
    if outputs.isEmpty { return mailbox.drain(into: &outputs) }
    mailbox.drain(into: &output)
    if output.isEmpty { return }
    outputs.append(first: output.count, of: &output)
  }

  /// What came out for the loop whose thread this is.
  mutating func giveOut(to loop: Int, into outputs: inout HubOutputs) {
    guard turn.hasOutput(for: loop) else { return }
    if outputs.isEmpty { return turn.drain(loop, into: &outputs) }
    turn.drain(loop, into: &output)
    outputs.append(first: output.count, of: &output)
  }

  /// What came out for another outlet. True where that is fewer deliveries than `room`, which they then take of it: its
  /// thread is not woken for them. A lossy outlet goes without what it has no room for; another that is behind makes
  /// who has the hub wait: the limit of its mailbox is what bounds the memory between them.
  mutating func post(to outlet: Outlet, _ number: Int, unlessWithin room: inout Int) -> Bool {
    guard turn.hasOutput(for: number) else { return false }
    if outlet.isLossy {
      turn.drain(number, into: &output)
      outlet.mailbox.append(whatFitsOf: &output)
      outlet.leaveOut(output.count)
      output.removeAll()
      return false
    }
    let deliveries = turn.deliveryCount(for: number, below: room)
    let isFew = deliveries < room
    if isFew { room -= deliveries }
    turn.drain(number, into: &output)
    outlet.mailbox.append(whatFitsOf: &output)
    if output.isEmpty, isFew { return true }
    while true {
      outlet.waker.wake()
      if output.isEmpty { return false }
      if outlet.isClosed {
        output.removeAll()
        return false
      }
      pause(microseconds: 500)
      outlet.mailbox.append(whatFitsOf: &output)
    }
  }
}
