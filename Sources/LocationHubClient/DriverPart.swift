// The driver's side of a client: what is kept, when it is sent, and how often the phone should measure.
//
// The session's own queue holds only unconfirmed messages: this part fills it from the files while connected, and takes
// all of it back when the connection ends. So the files alone say what the hub does not have yet.
import HubClientCore
import HubMessages

/// Used only on the client's thread.
final class DriverPart {
  /// Entries handed to the session: confirmed when the session's oldest unconfirmed message is a later one.
  private struct OnItsWay {
    let message: UInt64
    let entry: UInt64
    let fixes: Int
  }

  let queue: FixQueue
  let backlog: LatestSource<Backlog>
  let sampling: SamplingController
  private var onItsWay: [OnItsWay] = []
  private var entriesOnTheirWay = 0
  private var refused: UInt64 = 0
  /// Refused moves of an earlier run, whose caller is gone.
  private var refusedMoves: UInt64 = 0
  /// The app's newest fix, its trip, and when the fix came (uptime, ns).
  private var newest: (fix: Fix, trip: Identifier?, at: Int64)?
  /// When the next batch is sent, and when the next sync is due (uptimes, ns).
  private var batchDue: Int64?
  private var syncDue: Int64?
  private var unsynced = 0
  /// When a failed read is tried again (uptime, ns).
  private var readDue: Int64?
  /// The driver is unavailable, by the app's report.
  private var isUnavailable = false

  init(_ queue: FixQueue, backlog: LatestSource<Backlog>, sampling: SamplingController) {
    self.queue = queue
    self.backlog = backlog
    self.sampling = sampling
    publish()
  }

  private var batch: Int { min(max(1, sampling.wish.current.batch), DriverPart.maximumBatch) }

  // MARK: What the app says

  /// Keeps a fix; one from a time that no hub accepts is counted as refused.
  func keep(_ fix: Fix, trip id: Identifier?, _ now: Moment) {
    guard fix.timestamp.isAcceptedFromClients else {
      refused += 1
      return
    }
    guard queue.append(.fix(fix, trip: id)) != nil else { return }
    noteUnsynced(now)
    if batchDue == nil { batchDue = now.uptime + nanoseconds(DriverPart.syncSeconds) }
    newest = (fix, id, now.uptime)
  }

  /// Keeps a move; false at the limit. It is on disk before it is sent.
  func keep(_ report: TripStatusReport, as id: MessageID, _ now: Moment) -> Bool {
    guard queue.append(.move(report, id)) != nil else { return false }
    batchDue = now.uptime
    unsynced += DriverPart.fixesPerSync
    syncDue = now.uptime
    sampling.moved(report.tripID, to: report.status)
    // Repeated positions do not name a trip that has ended.
    if report.status.isFinal, newest?.trip == report.tripID { newest?.trip = nil }
    return true
  }

  func reported(_ status: DriverStatus) { isUnavailable = status == .unavailable }

  /// Deletes the queue, on disk as well.
  func erase() {
    (unsynced, syncDue, batchDue, newest) = (0, nil, nil, nil)
    queue.erase()
    publish()
  }

  // MARK: What the hub says

  func answered(_ batch: Ack.Batch) { refused += UInt64(batch.rejected.count) }

  /// The hub has refused these fixes permanently. Those of a trip that is not this driver's are sent again without the
  /// trip, as history. Others are counted.
  func refused(_ fixes: [Fix], of trip: Identifier?, _ code: ErrorCode, _ now: Moment) {
    guard trip != nil, code == .forbidden || code == .unknownTrip else {
      refused += UInt64(fixes.count)
      return
    }
    for fix in fixes { _ = queue.append(.fix(fix, trip: nil)) }
    // On disk before their original entries are deleted.
    queue.sync()
    if batchDue == nil { batchDue = now.uptime }
  }

  /// A move of an earlier run of the app was refused.
  func refusedMove() { refusedMoves += 1 }

  // MARK: To the hub

  /// The connection has ended: unconfirmed entries are sent on the next one.
  func disconnected(_ session: ClientSession) {
    confirm(session)
    session.withdrawDurable()
    onItsWay = []
    entriesOnTheirWay = 0
    queue.rewind()
  }

  /// Confirms, writes and sends what can be now. Call it after every event.
  func reconcile(_ session: ClientSession, _ now: Moment) {
    confirm(session)
    giveUpHeld(session)
    if let readDue, readDue <= now.uptime { (self.readDue, queue.readFailure) = (nil, nil) }
    repeatIfDue(session, now)
    syncIfDue(now)
    feed(session, now)
    publish()
    if queue.readFailure != nil, readDue == nil {
      readDue = now.uptime + nanoseconds(DriverPart.readAgainSeconds)
    }
  }

  private func confirm(_ session: ClientSession) {
    let oldest = session.oldestDurable ?? .max
    var done = 0
    var fixes = 0
    while done < onItsWay.count, onItsWay[done].message < oldest {
      fixes += onItsWay[done].fixes
      done += 1
    }
    guard done > 0 else { return }
    let entry = onItsWay[done - 1].entry
    onItsWay.removeFirst(done)
    entriesOnTheirWay = max(0, entriesOnTheirWay - fixes)
    queue.release(through: entry, fixes: fixes)
    if queue.isEmpty { (unsynced, syncDue) = (0, nil) }
  }

  /// A message that the hub fails at repeatedly, and that everything else waits for, counts as refused.
  private func giveUpHeld(_ session: ClientSession) {
    while entriesOnTheirWay >= DriverPart.maximumInFlight, case .fixes(let fixes, _)? = session.giveUpHeld() {
      refused += UInt64(fixes.count)
      confirm(session)
    }
  }

  /// When a stationary phone that measures only on movement repeats its position (uptime, ns).
  private var repeatDue: Int64? {
    guard !isUnavailable, let newest, let silence = sampling.silenceSeconds else { return nil }
    return newest.at + nanoseconds(silence)
  }

  /// Repeats the newest fix with the present time, so that the driver does not become stale.
  private func repeatIfDue(_ session: ClientSession, _ now: Moment) {
    guard session.maximumBatch != nil, let newest, let due = repeatDue, due <= now.uptime else { return }
    var fix = newest.fix
    guard now.timestamp > fix.timestamp else {
      self.newest = nil
      return
    }
    fix.timestamp = now.timestamp
    (fix.speed, fix.heading, fix.speedAccuracy, fix.headingAccuracy) = (0, nil, nil, nil)
    keep(fix, trip: newest.trip, now)
    batchDue = now.uptime
  }

  private func noteUnsynced(_ now: Moment) {
    unsynced += 1
    if syncDue == nil { syncDue = now.uptime + nanoseconds(DriverPart.syncSeconds) }
  }

  private func syncIfDue(_ now: Moment) {
    let isDue = syncDue.map { $0 <= now.uptime } ?? false
    guard isDue || unsynced >= max(DriverPart.fixesPerSync, batch) else { return }
    let isDone = queue.sync()
    unsynced = 0
    // Retries what the disk did not take.
    syncDue = isDone ? nil : now.uptime + nanoseconds(DriverPart.syncSeconds)
  }

  private func feed(_ session: ClientSession, _ now: Moment) {
    guard let largest = session.maximumBatch else { return }
    while queue.readFailure == nil, queue.unsent > 0, entriesOnTheirWay < DriverPart.maximumInFlight {
      let isDue = queue.unsent >= UInt64(batch) || queue.hasUnsentMoves || batchDue.map { $0 <= now.uptime } ?? true
      guard isDue else { return }
      let entries = queue.take(min(largest, DriverPart.maximumBatch))
      guard !entries.isEmpty else {
        if queue.readFailure == nil { queue.skipRest() }
        break
      }
      send(entries, session)
    }
    if queue.unsent == 0 { batchDue = nil }
  }

  /// Sends runs of fixes of one trip as a batch, a single live one by itself.
  private func send(_ entries: [(number: UInt64, record: FixRecord)], _ session: ClientSession) {
    var run: [Fix] = []
    var runTrip: Identifier?
    var last: UInt64 = 0
    func endRun() {
      guard let first = run.first else { return }
      let message = session.nextNumber
      let isTaken: Bool
      if run.count == 1 {
        isTaken = session.send(first, trip: runTrip)
      } else {
        // The protocol asks for oldest first.
        let fixes = run.sorted { $0.timestamp < $1.timestamp }.map { Result<Fix, ErrorCode>.success($0) }
        isTaken = session.send(LocationBatch(tripID: runTrip, fixes: fixes)) != nil
      }
      precondition(isTaken, "the session's queue has room for all that may be on its way")
      note(message, last, fixes: run.count)
      run = []
    }
    for (number, record) in entries {
      switch record {
      case .fix(let fix, let trip):
        if trip != runTrip { endRun() }
        runTrip = trip
        run.append(fix)
        last = number
      case .move(let report, let id):
        endRun()
        let message = session.nextNumber
        let isTaken = session.send(report, as: id)
        precondition(isTaken, "the session's queue has room for all that may be on its way")
        note(message, number, fixes: 0)
      }
    }
    endRun()
  }

  private func note(_ message: UInt64, _ entry: UInt64, fixes: Int) {
    onItsWay.append(OnItsWay(message: message, entry: entry, fixes: fixes))
    entriesOnTheirWay += fixes
  }

  /// When `reconcile` is due (uptime, ns); nil for never.
  func deadline(isOpen: Bool) -> Int64? {
    let mayFeed = isOpen && queue.readFailure == nil && entriesOnTheirWay < DriverPart.maximumInFlight
    return [mayFeed ? batchDue : nil, syncDue, isOpen ? repeatDue : nil, readDue].compactMap(\.self).min()
  }

  private func publish() {
    let oldest = queue.oldest
    backlog.set(
      Backlog(
        fixes: queue.fixes, moves: queue.moves.count, bytes: queue.bytes, dropped: queue.dropped, refused: refused,
        refusedMoves: refusedMoves, damage: queue.damage,
        diskFailure: (queue.failure ?? queue.readFailure).map { "\($0)" }, oldest: oldest))
  }
}
