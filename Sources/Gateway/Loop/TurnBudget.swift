// The work of one loop between two polls of its sockets, and the connections that wait for the next.
//
// Without it a peer decides how much memory a turn takes: hundreds of pipelined requests, or a resume of every trip of
// the day, whose answers would exceed the outbox's limit and end the session each time.
import HubMessages
import HubSystem
import HubTransport

/// What was spent of `Limits.unitsPerPoll` and `Limits.requestsPerPoll`, and the connections that wait because it is
/// used up, or until their peer has read its answers.
struct TurnBudget {
  private let loop: EventLoop
  private let admissions: Admissions
  /// In bytes: a unit is as much work as `WorkUnits.bytes` of a message.
  private var work = 0
  private var requests = 0
  private let workPerPoll: Int
  private let requestsPerPoll: Int
  private let resumedPerTurn: Int
  private let unansweredSubscriptions: Int
  private let pipelinedBytes: Int
  /// The rate of sessions whose token states none.
  let usualRate: Pacing.Rate
  /// Connections to continue, the next one first, each once.
  private var waiting: ArraySlice<ConnectionID> = []
  private var isQueued: Set<ConnectionID> = []

  init(_ loop: EventLoop, _ limits: Limits, _ admissions: Admissions) {
    self.loop = loop
    self.admissions = admissions
    unansweredSubscriptions = limits.unansweredSubscriptions
    pipelinedBytes = limits.pipelinedBytes
    usualRate = Pacing.Rate(limits)
    workPerPoll = limits.unitsPerPoll * WorkUnits.bytes
    requestsPerPoll = limits.requestsPerPoll
    resumedPerTurn = limits.resumedPerTurn
  }

  /// Counts reading a message or request of so many bytes, or writing such an answer. Short ones are free, since
  /// everybody sends them. A whole unit's bytes are not: many sent at once would make the turn long.
  @inline(__always)
  mutating func spend(bytes: Int) { if bytes > Limits.freeBytesPerMessage { work += bytes } }

  /// Counts work beyond that of reading the bytes.
  @inline(__always)
  mutating func spend(units: Int) { work += units * WorkUnits.bytes }

  /// Counts a request, or a piece of a long answer, which is as much work.
  mutating func spendRequest() { requests += 1 }

  /// Renews the budget for the next poll.
  mutating func renew() {
    work = max(0, work - workPerPoll)
    requests = max(0, requests - requestsPerPoll)
  }

  @inline(__always) var hasUnits: Bool { work < workPerPoll }
  var hasRoomForRequest: Bool { requests < requestsPerPoll && hasUnits }

  /// Charges a session for work.
  @inline(__always)
  func charge(_ session: inout Session, _ cost: Double) {
    session.charge(cost, usualRate, now: loop.now.uptimeNanoseconds)
  }

  /// Charges a session for a message's content beyond its size in bytes.
  mutating func charge(_ session: inout Session, more units: Int, than bytes: Int) {
    charge(&session, work: units - WorkUnits.of(bytes: bytes))
  }

  /// Charges a session for work of this turn beside that of its message.
  mutating func charge(_ session: inout Session, work units: Int) {
    guard units > 0 else { return }
    spend(units: units)
    charge(&session, Double(units))
  }

  /// Charges an answer of so many bytes of the arena: its text, and once more what was compressed. A rider is charged
  /// for it (`WorkUnits.ofAnswer`), up to a full bucket.
  mutating func chargeAnswer(_ session: inout Session, bytes: Int) {
    spend(bytes: bytes)
    let units = WorkUnits.ofAnswer(bytes: bytes)
    guard units > 0, session.phase == .open, session.open.rights.role == .rider else { return }
    guard let stream = session.stream else {
      return charge(&session, min(Double(units), session.open.rights.rate(usualRate).burst))
    }
    chargeAddress(of: stream, units)
  }

  /// Charges a session for new cells of its view: a look-up and a snapshot each.
  mutating func chargeCells(_ session: inout Session, new count: Int, on channel: Channel) {
    if let stream = session.stream { return chargeCells(of: stream, new: count, on: channel) }
    charge(&session, work: WorkUnits.of(newCells: count, on: channel))
  }

  /// Charges a stream's address for cells that the hub has begun for it, also where it only checked the channel.
  mutating func chargeCells(of stream: EventStream, new count: Int, on channel: Channel) {
    let units = WorkUnits.of(newCells: count, on: channel)
    spend(units: units)
    chargeAddress(of: stream, units)
  }

  /// A stream has no rate of its own and may reconnect at once: its client's address is charged.
  private func chargeAddress(of stream: EventStream, _ units: Int) {
    guard units > 0, stream.rateKey != 0 else { return }
    admissions.chargeMore(stream.rateKey, units, now: loop.now.uptimeNanoseconds)
  }

  // MARK: Who waits

  var isAnyoneWaiting: Bool { !waiting.isEmpty }
  var waitingCount: Int { waiting.count }

  /// The connection continues in the next turn, which follows at once.
  mutating func resumeNextTurn(_ connection: ConnectionID) {
    if isQueued.insert(connection).inserted { waiting.append(connection) }
    loop.setLoopTimer(at: loop.now.uptimeNanoseconds)
  }

  /// Continues an exchange in the next turn: this turn's share is used up, or a long answer has more pieces.
  mutating func stall(_ exchange: Exchange) {
    exchange.stall()
    loop.pauseReading(exchange.connection)
    resumeNextTurn(exchange.connection)
  }

  /// The connection that has waited longest, for a turn of its own.
  mutating func takeWaiting() -> ConnectionID? {
    guard let connection = waiting.popFirst() else { return nil }
    isQueued.remove(connection)
    return connection
  }

  /// Whether another of them may continue in this turn, after so many.
  func mayResume(after resumed: Int) -> Bool { hasRoomForRequest && resumed < resumedPerTurn }

  // MARK: Sessions whose input waits

  /// Holds input from `offset` on where something blocks it, and returns what does; nil where it may be handled. While
  /// input is held the socket is not read: 64 KiB may have 7,000 pings in them, which would delay others.
  @inline(__always)
  mutating func holdIfBlocked(
    _ session: inout Session, _ bytes: UnsafeMutableRawBufferPointer, from offset: Int, of held: HeldInput?,
    _ counters: inout LoopCounters
  ) -> Session.BlockReason? {
    let now = loop.now.uptimeNanoseconds
    let reason = session.blockReason(
      hasUnits: hasUnits, usualRate, maximumUnanswered: unansweredSubscriptions, now: now)
    guard let reason else { return nil }
    if offset < bytes.count {
      unsafe session.hold(
        UnsafeRawBufferPointer(rebasing: bytes[offset...]), taken: offset, of: held, for: reason, now: now)
      loop.pauseReading(session.connection)
      switch reason {
      case .rate: counters.ratePauses += 1
      case .turn:
        counters.turnWaits += 1
        resumeNextTurn(session.connection)
      case .answers: break
      }
    }
    return reason
  }

  /// A subscription was answered: the session continues once all of them are, and its outbox is read.
  mutating func answered(_ session: inout Session) {
    session.open.subscriptions.answered()
    if session.isHolding, session.open.subscriptions.unanswered == 0 { resumeNextTurn(session.connection) }
  }

  /// The session is within its rate again: waiting input continues in the next turn, else its socket is read.
  mutating func resume(_ session: inout Session) {
    if session.isHolding { resumeNextTurn(session.connection) } else { readAgain(session) }
  }

  /// Reads from a session's socket again, unless something else prevents it: most flooding clients have more.
  func readAgain(_ session: borrowing Session) {
    if session.mayRead(atMost: pipelinedBytes) { loop.resumeReading(session.connection) }
  }
}
