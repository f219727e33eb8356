// A loop's way to the hub and back: a plain call where the hub lives on the loop's thread, two mailboxes where it has its
// own. The loop's code is the same for both.
import HubCore
import Messages
import Transport

final class HubPort {
  /// The hub itself, where there is one loop.
  private var hub: Hub?
  private let journal: HubJournal?
  private let lookups: FixLookups?
  private let toHub: Mailbox<HubInput>?
  private let fromHub: Mailbox<HubOutput>?

  init(hub: consuming Hub, journal: HubJournal? = nil, lookups: FixLookups? = nil) {
    self.hub = consume hub
    self.journal = journal
    self.lookups = lookups
    toHub = nil
    fromHub = nil
  }

  init(toHub: Mailbox<HubInput>, fromHub: Mailbox<HubOutput>) {
    hub = nil
    journal = nil
    lookups = nil
    self.toHub = toHub
    self.fromHub = fromHub
  }

  /// The hub's counters, where the hub is here.
  var counters: HubCounters? { hub?.counters }

  /// The hub is here and has more to do than one turn allows.
  var hasMoreDue: Bool { hub?.hasMoreDue ?? false }

  /// When the hub, if it is here, wants a turn for its areas (uptime, ns).
  var nextAreaTick: Int64 { hub?.nextAreaTick ?? .max }

  /// Hands a turn's inputs over, in order, and puts what has come out into the empty `outputs`.
  ///
  /// False where the hub's mailbox is full: `inputs` holds what did not fit. Then the caller delivers what came out, so
  /// that the hub never waits for this loop in turn, and tries again; meanwhile the loop reads no more.
  func exchange(_ inputs: inout [HubInput], into outputs: inout [HubOutput], now: Moment) -> Bool {
    guard let toHub, let fromHub else {
      journal?.release(&hub!)
      lookups?.answer(&hub!, now: now)
      hub!.process(inputs, now: now)
      journal?.submit(&hub!)
      lookups?.ask(&hub!)
      inputs.removeAll(keepingCapacity: true)
      hub!.drain(loop: 0, into: &outputs)
      return true
    }
    toHub.append(whatFitsOf: &inputs)
    fromHub.drain(into: &outputs)
    return inputs.isEmpty
  }
}

extension Mailbox {
  /// Appends in order as much of `batch` as there is room for, and takes that out of it. A batch of more than the whole
  /// capacity goes over in pieces: it would never fit at once.
  func append(whatFitsOf batch: inout [Message]) {
    if append(emptying: &batch) { return }
    var sent = 0
    while sent < batch.count, append(batch[sent]) { sent += 1 }
    batch.removeFirst(sent)
  }
}

/// The hub on a thread of its own: an event loop without sockets that sleeps until a mailbox has something.
final class HubThread: EventLoopDelegate {
  private let loop: EventLoop
  private var hub: Hub
  private let inboxes: [Mailbox<HubInput>]
  private let outboxes: [Mailbox<HubOutput>]
  private let shared: SharedState
  private let lookups: FixLookups?
  private var batch: [HubInput] = []
  private var output: [HubOutput] = []
  private var nextTick: Int64

  init(
    hub: consuming Hub, loop: EventLoop, inboxes: [Mailbox<HubInput>], outboxes: [Mailbox<HubOutput>],
    shared: SharedState
  ) {
    self.hub = hub
    self.loop = loop
    self.inboxes = inboxes
    self.outboxes = outboxes
    self.shared = shared
    lookups = FixLookups(shared, waking: loop.waker)
    nextTick = loop.now.uptimeNanoseconds
    loop.delegate = self
    loop.setLoopTimer(at: nextTick)
  }

  func turnEnding() {
    let reading = loop.now
    let now = Moment(
      uptime: reading.uptimeNanoseconds, timestamp: Timestamp(milliseconds: reading.unixMilliseconds))
    shared.journal?.release(&hub)
    lookups?.answer(&hub, now: now)
    for inbox in inboxes {
      inbox.drain(into: &batch)
      hub.handle(batch, now: now)
      batch.removeAll(keepingCapacity: true)
    }
    hub.endTurn()
    shared.journal?.submit(&hub)
    lookups?.ask(&hub)
    for (index, outbox) in outboxes.enumerated() where hub.hasOutput(loop: index) {
      hub.drain(loop: index, into: &output)
      post(to: outbox, loop: index)
    }
    if now.uptime >= nextTick {
      nextTick = now.uptime + 1_000_000_000
      shared.metrics.store(hub.counters)
    }
    loop.setLoopTimer(at: hub.hasMoreDue ? now.uptime : min(nextTick, hub.nextAreaTick))
  }

  /// A loop that is behind makes the hub wait: the limit of its mailbox is what bounds the memory between them.
  private func post(to outbox: Mailbox<HubOutput>, loop index: Int) {
    while true {
      outbox.append(whatFitsOf: &output)
      if output.isEmpty { return }
      if shared.lifecycle.isFinished(index) { return output.removeAll() }
      pause(microseconds: 500)
    }
  }

  func woken() {
    if (0..<outboxes.count).allSatisfy(shared.lifecycle.isFinished) { loop.stop() }
  }

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
