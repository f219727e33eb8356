// The hub's side of its journal: records to be handed over, and what waits for them.
import HubBytes
import HubMessages

/// Whether records can be stored.
public enum StorageCondition: Sendable {
  case good
  /// The disk is full, or the journal has stopped: changes get `storage_full`, positions are published.
  case unavailable
}

/// Records and waiting outputs of a hub with a journal; always empty without one.
struct HubStorage: ~Copyable {
  let isOn: Bool
  /// Bytes of records that may wait for handover.
  private let limit: Int
  /// Records that are not handed over yet.
  private(set) var records = ByteBuffer()
  /// Fixes of the present message, and whether one of them was published.
  private var fixes = ByteBuffer()
  private(set) var hasPublishedFixes = false
  /// The number of the next handover.
  private(set) var ticket: UInt64 = 1
  /// Records up to this number are on stable storage.
  private(set) var storedThrough: UInt64 = 0
  /// Records up to this number are waited for.
  private(set) var awaited: UInt64 = 0
  /// Whether the hub's caller answers `HistoryLookup`s.
  let callerAnswersLookups: Bool
  private(set) var condition = StorageCondition.good
  private(set) var held = HeldOutputs()
  /// The numbers of the records whose waiting answers were refused last, because nothing could be stored.
  private(set) var unanswered: ClosedRange<UInt64> = 0...0
  /// Inputs among the held entries.
  private(set) var parked = 0
  /// Held entries are being released.
  private(set) var isReleasing = false
  /// The number of the newest handover that says that a channel was forgotten.
  private(set) var forgottenTicket: UInt64 = 0

  /// Without a journal.
  init() {
    isOn = false
    limit = 0
    callerAnswersLookups = false
  }

  init(limit: Int, callerAnswersLookups: Bool) {
    isOn = true
    self.callerAnswersLookups = callerAnswersLookups
    self.limit = limit
  }

  /// The number of the handover that has the newest change; 0 where there was none.
  var newest: UInt64 { records.isEmpty ? ticket - 1 : ticket }

  /// Whether a change is not stored yet.
  var hasUnstored: Bool { newest > storedThrough }

  /// Whether another change may be made.
  var hasRoom: Bool { !isOn || condition == .good && records.count < limit }

  mutating func write(_ record: DurableRecord) {
    if isOn { RecordWriter.write(record, into: &records) }
  }

  // MARK: Fixes

  var hasFixes: Bool { !fixes.isEmpty }

  @inline(__always)
  mutating func add(_ fix: Fix, _ disposition: StoredFix.Disposition, _ position: Position?) {
    if position != nil { hasPublishedFixes = true }
    unsafe fixes.append(atMost: StoredFix.size) {
      unsafe StoredFix.write(fix, disposition, position, into: $0)
      return StoredFix.size
    }
  }

  /// Writes a record of the collected fixes.
  mutating func writeFixes(
    driverID: Identifier, tripID: Identifier?, received: Timestamp, tracking: StoredTracking, progress: TripProgress?,
    published: Timestamp?
  ) {
    RecordWriter.write(
      fixes: fixes, driverID: driverID, tripID: tripID, received: received, tracking: tracking, progress: progress,
      published: published,
      into: &records)
    fixes.removeAll()
    hasPublishedFixes = false
  }

  // MARK: Handing over

  /// Gives the records to `body`, and drops them if it takes them.
  mutating func handOver(_ body: (UnsafeRawBufferPointer, UInt64) -> Bool) {
    let ticket = ticket
    guard !records.isEmpty, unsafe records.withBytes({ unsafe body($0, ticket) }) else { return }
    records.removeAll(keepingAtMost: 1 << 20)
    self.ticket += 1
  }

  mutating func hold(_ output: HubOutput, for outlet: UInt32) {
    held.append(.output(output, outlet: outlet), until: awaitNewest())
  }

  /// Waits for all changes made so far, and gives their number.
  mutating func awaitNewest() -> UInt64 {
    awaited = newest
    return newest
  }

  mutating func park(_ input: HubInput) {
    held.append(.input(input), until: awaitNewest())
    parked += 1
  }

  /// The next held entry whose records are stored.
  mutating func release() -> HeldOutputs.Held? {
    let next = held.next(storedThrough: storedThrough)
    if case .input = next { parked -= 1 }
    return next
  }

  mutating func stored(through ticket: UInt64, _ condition: StorageCondition) {
    self.condition = condition
    storedThrough = max(storedThrough, ticket)
  }

  /// Begins or ends the release of held entries.
  mutating func setReleasing(_ isReleasing: Bool) { self.isReleasing = isReleasing }

  /// Notes that a channel's removal is in the records that are written now.
  mutating func noteForgotten() { forgottenTicket = ticket }

  /// Removes and gives all held answers, oldest first. Events stay.
  mutating func takeAnswers() -> [HeldOutputs.Held] {
    parked = 0
    if held.answers > 0 { unanswered = storedThrough + 1...max(newest, storedThrough + 1) }
    return held.takeAnswers()
  }
}
