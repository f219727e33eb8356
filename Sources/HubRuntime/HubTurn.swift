// One turn of the hub: the order of its steps, the same for every driver of it.
//
//     run     releases what is stored by now; takes the answers of other threads; the inputs, in order: fixes, moves of
//             trips, subscriptions, questions; what is due by the clock; then the turn's records go to the journal, and
//             its questions to other threads
//     drain   the output of one outlet after the other
//
// Records go to the journal behind all inputs of a turn, so that one write stores them all; output that has to be
// stored first stays in the hub until a turn begins after the write.
import HubBytes
import HubCore
import HubMessages
import HubSystem

/// The hub with all that takes part in its turns. It belongs to one thread at a time.
struct HubTurn: ~Copyable {
  private var hub: Hub
  private let journal: JournalQueue?
  private let history: Consultation<HistoryLookup>?

  /// What an inbox held, to reuse its memory.
  private var batch = HubInputs()

  /// `journal` and `history` are nil where nothing is stored.
  init(_ hub: consuming Hub, journal: JournalQueue?, history: Consultation<HistoryLookup>?) {
    self.hub = hub
    self.journal = journal
    self.history = history
  }

  /// Runs a turn, whose output is drained next: with what is in the `inboxes` of others, then with the `inputs`, which
  /// are empty afterwards. Inlined: a single loop has no inboxes, and pays for none.
  @inline(__always)
  mutating func run(
    _ inputs: inout HubInputs, behind others: OutletSet = OutletSet(),
    in inboxes: [MixedMailbox<FixInput, HubInput>] = [], now: Moment
  ) {
    journal?.release(&hub, now: now)
    history?.answer(&hub, now: now)
    var others = others
    while let other = others.popFirst() {
      inboxes[other].drain(into: &batch)
      hub.handle(batch, now: now)
      batch.removeAll()
    }
    hub.handle(inputs, now: now)
    inputs.removeAll()
    hub.endTurn()
    journal?.submit(&hub)
    history?.ask(&hub)
  }

  /// Swaps an outlet's output with the empty `outputs`.
  @inline(__always)
  mutating func drain(_ outlet: Int, into outputs: inout HubOutputs) { hub.drain(outlet, into: &outputs) }

  /// Whether an outlet has output.
  @inline(__always)
  mutating func hasOutput(for outlet: Int) -> Bool { hub.hasOutput(for: outlet) }

  /// The number of subscribers of an outlet's output; `limit` where it is that many or more, or where not all of it is
  /// positions.
  mutating func deliveryCount(for outlet: Int, below limit: Int) -> Int {
    hub.deliveryCount(for: outlet, below: limit)
  }

  /// When the next turn is due (uptime, ns); 0 for at once.
  var nextTurn: Int64 { mutating get { hub.hasMoreDue ? 0 : hub.nextAreaTick } }

  /// Gives the hub to a test, between two turns.
  mutating func inspect(_ body: (inout Hub) -> Void) { body(&hub) }

  /// The hub's present counters.
  var counters: HubCounters { mutating get { hub.shownCounters() } }
}
