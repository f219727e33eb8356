// A loop's access to the hub: a plain call where there is one loop, on whose thread the hub runs, and SharedHub where
// there are several. The loop's code is the same for both.
import HubBytes
package import HubCore
package import HubMessages

@safe
package struct HubPort: ~Copyable {
  /// For a single loop. Behind a pointer: reading a number of an optional hub copied the hub.
  private let turn: UnsafeMutablePointer<HubTurn>?
  /// For several loops.
  private let shared: SharedHub?
  private let loop: Int

  /// The port of the only loop. `journal` and `history` are nil where nothing is stored.
  package init(hub: consuming Hub, journal: JournalQueue? = nil, history: Consultation<HistoryLookup>? = nil) {
    let pointer = UnsafeMutablePointer<HubTurn>.allocate(capacity: 1)
    unsafe pointer.initialize(to: HubTurn(hub, journal: journal, history: history))
    unsafe turn = pointer
    shared = nil
    loop = 0
  }

  /// The port of one of several loops, by its number.
  package init(_ hub: SharedHub, loop: Int) {
    unsafe turn = nil
    shared = hub
    self.loop = loop
  }

  deinit {
    unsafe turn?.deinitialize(count: 1)
    unsafe turn?.deallocate()
  }

  /// The hub's counters, where there is one loop.
  package var counters: HubCounters? { unsafe turn?.pointee.counters }

  /// Gives the hub to a test, between two turns.
  package func inspect(_ body: (inout Hub) -> Void) {
    unsafe turn?.pointee.inspect(body)
    shared?.inspect(body)
  }

  /// When the hub needs its next turn from this loop (uptime, ns); 0 where it has more to do than one turn allows.
  package var nextTurn: Int64 { unsafe turn?.pointee.nextTurn ?? shared?.nextTurn(of: loop) ?? .max }

  /// Whether other loops share the hub.
  package var isShared: Bool { shared != nil }

  /// Wakes the other loops for a turn, of which the first runs the hub.
  package func wakeOthers() { shared?.wakeOthers(than: loop) }

  /// A turn is over and its output sent: assists other loops that sleep and have little output.
  @inline(__always)
  package func assistOthers() { shared?.assistOthers(from: loop) }

  /// Moves what other loops left for this one into the empty `outputs`.
  package func collect(into outputs: inout HubOutputs) { shared?.collect(loop, into: &outputs) }

  /// Hands over a turn's inputs in order, and puts the output into the empty `outputs`.
  ///
  /// False where another loop runs the hub and the mailbox to it is full: `inputs` has what did not fit. Then the
  /// caller delivers the output, so that the two loops never wait for each other, and tries again; until then it reads
  /// nothing.
  package mutating func exchange(_ inputs: inout HubInputs, into outputs: inout HubOutputs, now: Moment) -> Bool {
    guard let turn = unsafe turn else { return shared?.exchange(loop, &inputs, into: &outputs, now: now) ?? true }
    unsafe turn.pointee.run(&inputs, now: now)
    unsafe turn.pointee.drain(0, into: &outputs)
    return true
  }
}
