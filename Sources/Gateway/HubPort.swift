// A loop's way to the hub and back: a plain call where there is one loop, whose thread the hub lives on; and where
// there are several, by way of SharedHub. The loop's code is the same for both.
import HubCore
import HubMessages
import HubTransport

struct HubPort: ~Copyable {
  /// Where there is one loop. Behind a pointer: an optional hub was copied whole to be asked for a number.
  private let hub: UnsafeMutablePointer<Hub>?
  private let journal: JournalQueue?
  private let lookups: FixLookups?
  /// Where there are several.
  private let shared: SharedHub?
  private let loop: Int

  init(hub: consuming Hub, journal: JournalQueue? = nil, lookups: FixLookups? = nil) {
    let place = UnsafeMutablePointer<Hub>.allocate(capacity: 1)
    place.initialize(to: hub)
    self.hub = place
    self.journal = journal
    self.lookups = lookups
    shared = nil
    loop = 0
  }

  init(_ hub: SharedHub, loop: Int) {
    self.hub = nil
    journal = nil
    lookups = nil
    shared = hub
    self.loop = loop
  }

  deinit {
    hub?.deinitialize(count: 1)
    hub?.deallocate()
  }

  /// The hub's counters, where there is one loop.
  var counters: HubCounters? { hub?.pointee.shownCounters() }

  /// When the hub wants its next turn from this loop (uptime, ns); 0 where it has more to do than one turn allows.
  var nextTurn: Int64 {
    if let hub { return hub.pointee.hasMoreDue ? 0 : hub.pointee.nextAreaTick }
    return shared?.nextTurn(of: loop) ?? .max
  }

  /// Whether other loops share the hub.
  var isShared: Bool { shared != nil }

  /// Has the other loops take a turn, and the first of them the hub.
  func wakeOthers() { shared?.wakeOthers(than: loop) }

  /// A turn is over and its output sent: other loops that sleep and have little to bring out are visited.
  @inline(__always)
  func visitOthers() { shared?.visitOthers(from: loop) }

  /// Puts what other loops have left for this one into the empty `outputs`.
  func collect(into outputs: inout HubOutputs) { shared?.collect(loop, into: &outputs) }

  /// Hands a turn's inputs over, in order, and puts what has come out into the empty `outputs`.
  ///
  /// False where another loop has the hub and the mailbox to it is full: `inputs` holds what did not fit. Then the
  /// caller delivers what came out, so that the other never waits for this loop in turn, and tries again; meanwhile
  /// this one reads no more.
  mutating func exchange(_ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) -> Bool {
    guard let hub else { return shared?.exchange(loop, &inputs, into: &outputs, now: now) ?? true }
    journal?.release(&hub.pointee, now: now)
    lookups?.answer(&hub.pointee, now: now)
    hub.pointee.process(inputs, now: now)
    journal?.submit(&hub.pointee)
    lookups?.ask(&hub.pointee)
    inputs.removeAll()
    hub.pointee.drain(loop: 0, into: &outputs)
    return true
  }
}
