// A loop's way to the hub and back: a plain call where the hub lives on the loop's thread, two mailboxes where it has its
// own. The loop's code is the same for both.
import HubCore
import Messages
import Transport

final class HubPort {
  // The hub itself, where there is one loop. Behind a pointer, because every use of a class's stored variable is checked for
  // exclusive access while the program runs, and an optional one was copied whole to be asked for a number. No call of this
  // class runs inside another: the hub calls nobody.
  private let hub: UnsafeMutablePointer<Hub>?
  private let journal: HubJournal?
  private let lookups: FixLookups?
  private let toHub: MixedMailbox<FixInput, HubInput>?
  private let fromHub: MixedMailbox<PositionDelivery, HubOutput>?

  init(hub: consuming Hub, journal: HubJournal? = nil, lookups: FixLookups? = nil) {
    let place = UnsafeMutablePointer<Hub>.allocate(capacity: 1)
    place.initialize(to: hub)
    self.hub = place
    self.journal = journal
    self.lookups = lookups
    toHub = nil
    fromHub = nil
  }

  init(toHub: MixedMailbox<FixInput, HubInput>, fromHub: MixedMailbox<PositionDelivery, HubOutput>) {
    hub = nil
    journal = nil
    lookups = nil
    self.toHub = toHub
    self.fromHub = fromHub
  }

  deinit {
    hub?.deinitialize(count: 1)
    hub?.deallocate()
  }

  /// The hub's counters, where the hub is here.
  var counters: HubCounters? { hub?.pointee.counters }

  /// When the hub, if it is here, wants its next turn (uptime, ns); 0 where it has more to do than one turn allows.
  var nextTurn: Int64 {
    guard let hub else { return .max }
    return hub.pointee.hasMoreDue ? 0 : hub.pointee.nextAreaTick
  }

  /// Hands a turn's inputs over, in order, and puts what has come out into the empty `outputs`.
  ///
  /// False where the hub's mailbox is full: `inputs` holds what did not fit. Then the caller delivers what came out, so
  /// that the hub never waits for this loop in turn, and tries again; meanwhile the loop reads no more.
  func exchange(_ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) -> Bool {
    if let hub {
      journal?.release(&hub.pointee)
      lookups?.answer(&hub.pointee, now: now)
      hub.pointee.process(inputs, now: now)
      journal?.submit(&hub.pointee)
      lookups?.ask(&hub.pointee)
      inputs.removeAll()
      hub.pointee.drain(loop: 0, into: &outputs)
      return true
    }
    toHub?.append(whatFitsOf: &inputs)
    fromHub?.drain(into: &outputs)
    return inputs.isEmpty
  }
}

/// The hub on a thread of its own: an event loop without sockets that sleeps until a mailbox has something.
final class HubThread: EventLoopDelegate {
  // Behind a pointer for the same reason, as SessionLoopDelegate's.
  private let turns: UnsafeMutablePointer<HubTurns>

  init(_ turns: consuming HubTurns) {
    let loop = turns.loop
    let nextTick = turns.nextTick
    self.turns = .allocate(capacity: 1)
    self.turns.initialize(to: turns)
    loop.delegate = self
    loop.setLoopTimer(at: nextTick)
  }

  deinit {
    turns.deinitialize(count: 1)
    turns.deallocate()
  }

  func turnEnding() { turns.pointee.take() }
  func woken() { turns.pointee.stopIfFinished() }

  func accepted(_ id: ConnectionID, from peer: SocketAddress) {}
  func connected(_ id: ConnectionID) {}
  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {}
  func drained(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) {}
  func closed(_ id: ConnectionID, _ cause: CloseCause) {}
  func timerFired(_ id: ConnectionID) {}
  func loopTimerFired() {}
  func turnEnded() {}
}

/// The hub, and what it takes in and gives out in a turn of its own thread.
struct HubTurns: ~Copyable {
  let loop: EventLoop
  private var hub: Hub
  private let inboxes: [MixedMailbox<FixInput, HubInput>]
  private let outboxes: [MixedMailbox<PositionDelivery, HubOutput>]
  private let shared: SharedState
  private let lookups: FixLookups?
  private var batch = HubInputs()
  private var output = HubOutputs()
  private(set) var nextTick: Int64

  init(
    hub: consuming Hub, loop: EventLoop, inboxes: [MixedMailbox<FixInput, HubInput>],
    outboxes: [MixedMailbox<PositionDelivery, HubOutput>], shared: SharedState
  ) {
    self.hub = hub
    self.loop = loop
    self.inboxes = inboxes
    self.outboxes = outboxes
    self.shared = shared
    lookups = FixLookups(shared, waking: loop.waker)
    nextTick = loop.now.uptimeNanoseconds
  }

  /// One turn.
  mutating func take() {
    let reading = loop.now
    let now = Moment(
      uptime: reading.uptimeNanoseconds, timestamp: Timestamp(milliseconds: reading.unixMilliseconds))
    shared.journal?.release(&hub)
    lookups?.answer(&hub, now: now)
    for inbox in inboxes {
      inbox.drain(into: &batch)
      hub.handle(batch, now: now)
      batch.removeAll()
    }
    hub.endTurn()
    shared.journal?.submit(&hub)
    lookups?.ask(&hub)
    for loop in outboxes.indices {
      hub.drain(loop: loop, into: &output)
      if !output.isEmpty { post(to: outboxes[loop], loop: loop) }
    }
    if now.uptime >= nextTick {
      nextTick = now.uptime + 1_000_000_000
      shared.metrics.store(hub.counters)
    }
    loop.setLoopTimer(at: hub.hasMoreDue ? now.uptime : min(nextTick, hub.nextAreaTick))
  }

  /// A loop that is behind makes the hub wait: the limit of its mailbox is what bounds the memory between them.
  private mutating func post(to outbox: MixedMailbox<PositionDelivery, HubOutput>, loop index: Int) {
    while true {
      outbox.append(whatFitsOf: &output)
      if output.isEmpty { return }
      if shared.lifecycle.isFinished(index) { return output.removeAll() }
      pause(microseconds: 500)
    }
  }

  func stopIfFinished() {
    if (0..<outboxes.count).allSatisfy(shared.lifecycle.isFinished) { loop.stop() }
  }
}
