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
// woken (EventLoop+Visits). It is still one hub: one thread at a time, one order of all events, and what it does is the
// same code.
import HubCore
import HubMessages
import HubSystem
import HubTransport
import Synchronization

/// The hub that several loops share.
///
/// `@unchecked Sendable`: what is behind `state` is touched only by the thread that holds `turn`, and each of
/// `nextTurns` only by its own loop's thread, which the compiler cannot see.
final class SharedHub: @unchecked Sendable {
  /// Turns for the sake of others before a loop looks at its own sockets again.
  private static let roundsInARow = 2
  /// The loop that takes the hub whenever its thread is awake, once a second at least: for what is due by the clock,
  /// and for what comes from other threads than the loops', which wake it: what is stored, what was looked up.
  private static let host = 0

  /// So many deliveries are worth waking loops for, which bring them out while this one goes on; as long as there are
  /// fewer in a turn, for all others together, they are brought out for those that sleep.
  private static let manyDeliveries = 9

  private let turn = CombiningLock()
  private let state: UnsafeMutablePointer<SharedTurns>
  private let inboxes: [MixedMailbox<FixInput, HubInput>]
  private let outboxes: [MixedMailbox<PositionDelivery, HubOutput>]
  /// The loops that have left something in their inbox, a bit each.
  private let posted = Atomic<UInt64>(0)
  /// When the hub wanted its next turn, as each loop has last seen it: who had it last has the right time. A loop's is
  /// a cache line from the next one's.
  private let nextTurns: UnsafeMutablePointer<Int64>
  private static let stride = 8
  private let visitors: [LoopVisitor]
  /// The loops that each loop has put a little out for, a bit each; touched only by that loop's turns.
  private let visits: UnsafeMutablePointer<UInt64>
  private let shared: SharedState

  /// `visitors`: of the loops, by number; 64 at most.
  init(_ hub: consuming Hub, visitors: [LoopVisitor], capacity: Int, shared: SharedState, now: Moment) {
    precondition((1...64).contains(visitors.count))
    self.visitors = visitors
    inboxes = visitors.map { _ in MixedMailbox(capacity: capacity) }
    outboxes = visitors.map { _ in MixedMailbox(capacity: capacity) }
    visits = .allocate(capacity: visitors.count * SharedHub.stride)
    visits.initialize(repeating: 0, count: visitors.count * SharedHub.stride)
    self.shared = shared
    state = .allocate(capacity: 1)
    state.initialize(
      to: SharedTurns(
        hub, lookups: FixLookups(shared, waking: visitors[SharedHub.host].waker), shared: shared, now: now))
    nextTurns = .allocate(capacity: visitors.count * SharedHub.stride)
    nextTurns.initialize(repeating: 0, count: visitors.count * SharedHub.stride)
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
    nextTurns.deallocate()
    visits.deallocate()
  }

  /// When this loop has to come back (uptime, ns); 0 for at once.
  func nextTurn(of loop: Int) -> Int64 { nextTurns[loop * SharedHub.stride] }

  /// Hands a loop's inputs over, in order, and puts what has come out for it into the empty `outputs`; see
  /// `HubPort.exchange`.
  func exchange(_ loop: Int, _ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) -> Bool {
    outboxes[loop].drain(into: &outputs)
    guard isWanted(by: loop, inputs, now) else { return true }
    if turn.tryLock() {
      take(loop, &inputs, into: &outputs, now: now)
      return true
    }
    inboxes[loop].append(whatFitsOf: &inputs)
    posted.bitwiseOr(1 << UInt64(loop), ordering: .releasing)
    if turn.lockOrDelegate() { take(loop, &inputs, into: &outputs, now: now) }
    return inputs.isEmpty
  }

  /// What the other loops have left for this one, without a turn of the hub.
  func collect(_ loop: Int, into outputs: inout HubOutputs) { outboxes[loop].drain(into: &outputs) }

  /// A loop's thread has ended: what it and others have left is done, for it may be the last one.
  func finish(_ loop: Int, now: Moment) {
    while !turn.tryLock() { pause(microseconds: 100) }
    var inputs = HubInputs()
    var outputs = HubOutputs()
    repeat { run(loop, &inputs, into: &outputs, now: now) } while !turn.unlock()
    visitOthers(from: loop)
  }

  func wakeOthers(than loop: Int) {
    for other in visitors.indices where other != loop { visitors[other].waker.wake() }
  }

  /// A loop's turn is over: what it has put out for others that sleep is brought out.
  @inline(__always)
  func visitOthers(from loop: Int) {
    if visits[loop * SharedHub.stride] != 0 { visitThem(from: loop) }
  }

  private func visitThem(from loop: Int) {
    var loops = visits[loop * SharedHub.stride]
    visits[loop * SharedHub.stride] = 0
    while loops != 0 {
      visitors[loops.trailingZeroBitCount].visit()
      loops &= loops - 1
    }
  }

  /// Most turns of a loop that only sends, or reads pongs, have nothing for the hub.
  private func isWanted(by loop: Int, _ inputs: borrowing HubInputs, _ now: Moment) -> Bool {
    !inputs.isEmpty || loop == SharedHub.host || nextTurns[loop * SharedHub.stride] <= now.uptime
      || shared.lifecycle.isShuttingDown
  }

  // MARK: With the lock

  /// Turns of the hub, until nobody has left anything or this loop has done enough of them.
  private func take(_ loop: Int, _ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) {
    // Another loop may have had the hub between the first look into this mailbox and now: that comes before what
    // follows.
    state.pointee.pickUp(outboxes[loop], into: &outputs)
    for _ in 0..<SharedHub.roundsInARow {
      run(loop, &inputs, into: &outputs, now: now)
      nextTurns[loop * SharedHub.stride] = state.pointee.nextTurn
      if turn.unlock() { return }
    }
    nextTurns[loop * SharedHub.stride] = 0
    turn.unlockAnyway()
  }

  private func run(_ loop: Int, _ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) {
    state.pointee.begin(now)
    var loops = posted.load(ordering: .relaxed) == 0 ? 0 : posted.exchange(0, ordering: .acquiring)
    while loops != 0 {
      state.pointee.handle(inboxes[loops.trailingZeroBitCount])
      loops &= loops - 1
    }
    state.pointee.end(with: &inputs)
    var room = SharedHub.manyDeliveries
    for other in outboxes.indices {
      if other == loop {
        state.pointee.giveOut(to: loop, into: &outputs)
      } else {
        let isVisit = state.pointee.post(
          to: outboxes[other], of: other, waking: visitors[other].waker, unlessWithin: &room)
        if isVisit { visits[loop * SharedHub.stride] |= 1 << UInt64(other) }
      }
    }
  }
}

/// The hub, and what it takes in and gives out in one turn: what belongs to who has the lock.
private struct SharedTurns: ~Copyable {
  private var hub: Hub
  private let lookups: FixLookups?
  private let shared: SharedState
  private var batch = HubInputs()
  private var output = HubOutputs()
  /// When the counters are shown next (uptime, ns), and the newest question for them that was answered.
  private var nextTick: Int64
  private var answered: UInt64 = 0
  /// Loops read the clock when they wake, so one that takes the hub later may have an earlier time.
  private var now: Moment

  init(_ hub: consuming Hub, lookups: FixLookups?, shared: SharedState, now: Moment) {
    self.hub = hub
    self.lookups = lookups
    self.shared = shared
    nextTick = now.uptime
    self.now = now
  }

  /// When the next turn is due (uptime, ns); 0 for at once.
  var nextTurn: Int64 { mutating get { hub.hasMoreDue ? 0 : hub.nextAreaTick } }

  mutating func begin(_ time: Moment) {
    if time.uptime > now.uptime { now = time }
    shared.journal?.release(&hub, now: now)
    lookups?.answer(&hub, now: now)
  }

  mutating func handle(_ inbox: MixedMailbox<FixInput, HubInput>) {
    inbox.drain(into: &batch)
    hub.handle(batch, now: now)
    batch.removeAll()
  }

  mutating func end(with inputs: inout HubInputs) {
    hub.handle(inputs, now: now)
    inputs.removeAll()
    hub.endTurn()
    shared.journal?.submit(&hub)
    lookups?.ask(&hub)
    let question = shared.metrics.question
    guard now.uptime >= nextTick || question != answered else { return }
    nextTick = now.uptime + 1_000_000_000
    answered = question
    shared.metrics.store(hub.shownCounters(), answering: question)
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
    guard hub.hasOutput(loop: loop) else { return }
    if outputs.isEmpty { return hub.drain(loop: loop, into: &outputs) }
    hub.drain(loop: loop, into: &output)
    outputs.append(first: output.count, of: &output)
  }

  /// What came out for another loop. True where that is fewer deliveries than `room`, which they then take of it: its
  /// thread is not woken for them. A loop that is behind makes who has the hub wait: the limit of its mailbox is what
  /// bounds the memory between them.
  mutating func post(
    to mailbox: MixedMailbox<PositionDelivery, HubOutput>, of loop: Int, waking waker: Waker,
    unlessWithin room: inout Int
  ) -> Bool {
    guard hub.hasOutput(loop: loop) else { return false }
    let deliveries = hub.deliveryCount(loop: loop, below: room)
    let isFew = deliveries < room
    if isFew { room -= deliveries }
    hub.drain(loop: loop, into: &output)
    mailbox.append(whatFitsOf: &output)
    if output.isEmpty, isFew { return true }
    while true {
      waker.wake()
      if output.isEmpty { return false }
      if shared.lifecycle.isFinished(loop) {
        output.removeAll()
        return false
      }
      pause(microseconds: 500)
      mailbox.append(whatFitsOf: &output)
    }
  }
}
