// Batches with fixes that are older than memory reaches. Whether such a fix is a duplicate is in the journal, which
// another thread reads: the hub asks, continues, and handles those fixes when the answer comes.
//
//     batch → its newer fixes are handled; the older ones wait here      hub's thread
//     all that was recorded before is stored → `takeLookups`             the hub's caller
//     read the driver's records                                          a reader's thread
//     `HubInput.knownFixes` → the older fixes are handled, and the ack   hub's thread
//
// A driver has one lookup at a time: the next one must see what the batch before it recorded.
public import HubMessages

/// A question for the journal: at which of `times` does the driver have a fix in it? Answered by
/// `HubInput.knownFixes` with the same ticket.
public struct HistoryLookup: Sendable {
  public var ticket: UInt64
  public var driverID: Identifier
  /// 1–500 in ascending order, ms since 1970.
  public var times: [Int64]

  /// The key of the driver's fixes in an index.
  public var key: UInt64 { DurableKeys.fixes(ofDriver: driverID) }

  /// Where to begin to read: none of these fixes arrived before this time of the hub (ms since 1970), unless the clock
  /// of the phone was over an hour ahead. Such a fix is accepted again, and readers of the track see it once.
  public var since: Int64 { times[0] - 3_600_000 }
}

/// A batch of which some fixes wait for the journal.
struct PartialBatch {
  var input: BatchInput
  var driver: Handle
  var driverID: Identifier
  var trip: Handle?
  /// The last handled fix belongs to no trip: it was measured before the driver took its current one.
  var isBeforeTrip = false
  /// The fixes that wait, by their indices in the batch, in the order of their times.
  var indices: [Int] = []
  /// The outcome of the others.
  var summary = Ack.Batch(accepted: 0, duplicates: 0, rejected: [])

  /// The fix at an index, if it is to be handled now. Nil for an unreadable one, and for one that is looked up in the
  /// journal, since it is older than `unknownBefore` and its time is not remembered.
  @inline(__always)
  mutating func fix(
    at index: Int, of driver: Int, _ drivers: borrowing Drivers, unknownBefore: Int64,
    counting counters: inout HubCounters
  ) -> Fix? {
    switch input.batch.fixes[index] {
    case .failure(let code):
      counters.fixesUnreadable += 1
      summary.rejected.append(.init(index: index, code: code))
    case .success(let fix):
      if fix.timestamp.milliseconds >= unknownBefore || drivers.remembers(fix.timestamp, of: driver) { return fix }
      indices.append(index)
    }
    return nil
  }

  /// The trip that a fix belongs to: the batch's `trip`, or nil if it was measured before the driver took that trip.
  /// `isFirst`: it belongs to the trip, and the fix before it did not. A phone's backlog may reach back that far, and
  /// the trip's rider must not see where the previous rider was taken.
  mutating func trip(
    _ trip: Int?, of fix: Fix, _ trips: borrowing Trips, at now: Timestamp
  ) -> (trip: Int?, isFirst: Bool) {
    guard let trip, input.isOfCurrentTrip else { return (trip, false) }
    let wasBefore = isBeforeTrip
    isBeforeTrip = trips[trip].wasAccepted(after: fix.timestamp, now: now)
    return (isBeforeTrip ? nil : trip, wasBefore && !isBeforeTrip)
  }

  /// Splits the fixes that waited into `new` ones and `found`, the times of duplicates: `known` ones (ascending), and
  /// repetitions.
  mutating func split(known: [Int64]) -> (new: [(index: Int, fix: Fix)], found: [Timestamp]) {
    var (new, found): ([(index: Int, fix: Fix)], [Timestamp]) = ([], [])
    var last: Timestamp?
    for index in indices {
      guard case .success(let fix) = input.batch.fixes[index] else { continue }
      if fix.timestamp == last || known.containsAscending(fix.timestamp.milliseconds) {
        found.append(fix.timestamp)
      } else {
        new.append((index, fix))
      }
      last = fix.timestamp
    }
    summary.duplicates += found.count
    return (new, found)
  }
}

/// The batches that wait, and what is asked for them.
struct HistoryLookups {
  private var batches: [UInt64: PartialBatch] = [:]
  /// Tickets of each driver's batches, oldest first; the lookup of the first is running.
  private var ofDriver: [UInt32: [UInt64]] = [:]
  /// Questions to ask when records up to `storage` are stored.
  private var waiting = FirstInFirstOut<(storage: UInt64, ticket: UInt64)>()
  private var lastTicket: UInt64 = 0
  private(set) var fixes = 0

  /// Whether a batch of so many fixes of this driver may wait.
  func hasRoom(for new: Int, of driver: Int, _ limits: HubLimits) -> Bool {
    fixes + new <= limits.waitingFixes && ofDriver[UInt32(driver)]?.count ?? 0 < limits.waitingPerDriver
  }

  /// A driver's `storedThrough`, lowered to just before its earliest fix that waits here.
  func limit(_ storedThrough: Timestamp?, of driver: Int) -> Timestamp? {
    guard var end = storedThrough else { return nil }
    for ticket in ofDriver[UInt32(driver)] ?? [] {
      guard let batch = batches[ticket], let first = batch.indices.first,
        case .success(let fix) = batch.input.batch.fixes[first]
      else { continue }
      end = min(end, Timestamp(milliseconds: fix.timestamp.milliseconds - 1))
    }
    return end
  }

  /// Keeps a batch until the answer comes; `storage` is the newest record's ticket.
  mutating func add(_ batch: PartialBatch, storage: UInt64) {
    lastTicket += 1
    fixes += batch.input.batch.fixes.count
    batches[lastTicket] = batch
    ofDriver[batch.driver.index, default: []].append(lastTicket)
    if ofDriver[batch.driver.index]?.count == 1 { waiting.append((storage, lastTicket)) }
  }

  /// The questions whose records are stored.
  mutating func take(storedThrough: UInt64, into lookups: inout [HistoryLookup]) {
    while let first = waiting.first, first.storage <= storedThrough, let next = waiting.next() {
      guard let batch = batches[next.ticket] else { continue }
      let times = batch.indices.compactMap { index -> Int64? in
        guard case .success(let fix) = batch.input.batch.fixes[index] else { return nil }
        return fix.timestamp.milliseconds
      }
      lookups.append(HistoryLookup(ticket: next.ticket, driverID: batch.driverID, times: times))
    }
  }

  /// Removes the batches whose questions wait for records behind `storedThrough`, and later ones of the same drivers.
  mutating func takeUnstored(storedThrough: UInt64) -> [PartialBatch] {
    var taken: [PartialBatch] = []
    var due = FirstInFirstOut<(storage: UInt64, ticket: UInt64)>()
    while let next = waiting.next() {
      guard next.storage > storedThrough else {
        due.append(next)
        continue
      }
      guard let driver = batches[next.ticket]?.driver.index else { continue }
      for ticket in ofDriver.removeValue(forKey: driver) ?? [] {
        if let batch = remove(ticket) { taken.append(batch) }
      }
    }
    waiting = due
    return taken
  }

  /// Removes and returns a batch that is answered or refused; nil if it was removed before.
  mutating func remove(_ ticket: UInt64) -> PartialBatch? {
    guard let batch = batches.removeValue(forKey: ticket) else { return nil }
    fixes -= batch.input.batch.fixes.count
    return batch
  }

  /// Ends the driver's lookup, and starts its next one for when records up to the ticket `storage` are stored.
  mutating func startNext(driver: UInt32, storage: UInt64) {
    ofDriver[driver]?.removeFirst()
    if let next = ofDriver[driver]?.first {
      waiting.append((storage, next))
    } else {
      ofDriver[driver] = nil
    }
  }
}
