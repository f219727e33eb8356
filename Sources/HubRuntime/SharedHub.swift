// One hub for several loops, without a thread of its own: its turn runs on the thread of a loop that has input. A loop
// that finds it busy leaves its inputs and continues; the loop that runs the hub takes them, too.
//
//     loop A   reads, parses → takes the hub: A's fixes → its own deliveries at once, B's into B's mailbox
//     loop B   reads, parses → the hub is busy: its fixes into its mailbox; A handles them before it releases the hub
//
// With a thread of its own, every message crossed to that thread and back, each time with a wake-up, a switch of
// threads and cold caches. Here a position whose driver and rider are on the same loop crosses nothing, and another one
// once; if there is little output and the other loop sleeps, it is sent on this thread, without a wake-up
// (EventLoop+Assists). It is still one hub: one thread at a time, one order of all events, the same code.
import HubBytes
package import HubCore
package import HubMessages
import HubSystem

/// The hub that several loops share.
///
/// `@unchecked Sendable`: only the thread that holds `lock` touches what is behind `state`, and only its own loop's
/// thread each of `nextTurns` and `toAssist`, which the compiler cannot see.
@safe
package final class SharedHub: @unchecked Sendable {
  /// Turns for other loops before a loop polls its own sockets again.
  private static let roundsInARow = 2
  /// The loop that runs the hub whenever its thread is awake, at least once a second: for deadlines, and for other
  /// threads that wake it, when something was stored or looked up.
  private static let host = 0

  /// If a turn has this many deliveries for other loops, these are woken to send them while this loop continues; fewer
  /// are sent by this loop for those that sleep.
  private static let manyDeliveries = 9

  private let lock = CombiningLock()
  private let state: UnsafeMutablePointer<SharedTurns>
  private let inboxes: [MixedMailbox<FixInput, HubInput>]
  private let outlets: [Outlet]
  /// The loops with inputs in their inbox.
  private let posted = AtomicOutletSet()
  /// When the next turn is due, as each loop saw it when it last ran the hub; the newest counts. A cache line apart.
  private let nextTurns: UnsafeMutablePointer<Int64>
  /// The outlets for which each loop has a little output; touched only by that loop's turns.
  private let toAssist: UnsafeMutablePointer<OutletSet>
  /// The distance between two loops' entries, in elements: at least a cache line.
  private static let stride = 8
  private let lifecycle: Lifecycle

  /// A hub for loops with `outlets`, by number. `inboxCapacity`: the limit of a loop's inputs that wait while another
  /// runs the hub. `journal` and `history` are nil where nothing is stored; answers wake the first loop.
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

  /// When this loop has to run the hub (uptime, ns); 0 for at once.
  func nextTurn(of loop: Int) -> Int64 { unsafe nextTurns[loop * SharedHub.stride] }

  /// Hands over a loop's inputs in order, and puts its output into the empty `outputs`; see `HubPort.exchange`.
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

  /// Takes what other loops left for this one, without a turn of the hub.
  func collect(_ loop: Int, into outputs: inout HubOutputs) { outlets[loop].mailbox.drain(into: &outputs) }

  /// A loop's thread has ended: handles remaining inputs, since it may be the last one.
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

  /// A loop's turn is over: sends its output for others that sleep.
  @inline(__always)
  func assistOthers(from loop: Int) {
    if unsafe !toAssist[loop * SharedHub.stride].isEmpty { assistThem(from: loop) }
  }

  private func assistThem(from loop: Int) {
    var sleeping = unsafe toAssist[loop * SharedHub.stride]
    unsafe toAssist[loop * SharedHub.stride] = OutletSet()
    while let other = sleeping.popFirst() { outlets[other].assist() }
  }

  /// Whether this loop has to run the hub. Most turns of one that only sends, or reads pongs, have no input for it.
  private func isWanted(by loop: Int, _ inputs: borrowing HubInputs, _ now: Moment) -> Bool {
    unsafe !inputs.isEmpty || loop == SharedHub.host || nextTurns[loop * SharedHub.stride] <= now.uptime
      || lifecycle.isShuttingDown
  }

  // MARK: With the lock

  /// Runs turns of the hub until no input is left, or this loop has done enough.
  private func take(_ loop: Int, _ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) {
    // Another loop may have run the hub between the first look into this mailbox and now: its output comes first.
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
    unsafe state.pointee.run(&inputs, behind: posted.takeAll(), in: inboxes, now)
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

/// The hub's turn with its input and output, for the holder of the lock.
private struct SharedTurns: ~Copyable {
  fileprivate var turn: HubTurn
  private let metrics: HubMetrics
  private var output = HubOutputs()
  /// When the counters are published next (uptime, ns), and the newest answered request for them.
  private var nextTick: Int64
  private var answered: UInt64 = 0
  /// The newest turn's time. Loops read the clock when they wake, so one that takes the hub later may be behind it.
  private var now: Moment

  init(_ turn: consuming HubTurn, metrics: HubMetrics, now: Moment) {
    self.turn = turn
    self.metrics = metrics
    nextTick = now.uptime
    self.now = now
  }

  /// When the next turn is due (uptime, ns); 0 for at once.
  var nextTurn: Int64 { mutating get { turn.nextTurn } }

  /// Runs a turn of the hub, and publishes its counters where they are due.
  mutating func run(
    _ inputs: inout HubInputs, behind others: OutletSet, in inboxes: [MixedMailbox<FixInput, HubInput>], _ time: Moment
  ) {
    if time.uptime > now.uptime { now = time }
    turn.run(&inputs, behind: others, in: inboxes, now: now)
    let question = metrics.question
    guard now.uptime >= nextTick || question != answered else { return }
    nextTick = now.uptime + 1_000_000_000
    answered = question
    metrics.store(turn.counters, answering: question)
  }

  /// Appends a mailbox's content to `outputs`.
  mutating func pickUp(_ mailbox: MixedMailbox<PositionDelivery, HubOutput>, into outputs: inout HubOutputs) {
    if outputs.isEmpty { return mailbox.drain(into: &outputs) }
    mailbox.drain(into: &output)
    if output.isEmpty { return }
    outputs.append(first: output.count, of: &output)
  }

  /// Gives out the output of this thread's loop.
  mutating func giveOut(to loop: Int, into outputs: inout HubOutputs) {
    guard turn.hasOutput(for: loop) else { return }
    if outputs.isEmpty { return turn.drain(loop, into: &outputs) }
    turn.drain(loop, into: &output)
    outputs.append(first: output.count, of: &output)
  }

  /// Posts another outlet's output. True where it has fewer deliveries than `room`, which is reduced by them: then its
  /// thread is not woken for them. A lossy outlet drops what has no room; another that is behind makes the hub wait:
  /// its mailbox bounds the memory.
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
