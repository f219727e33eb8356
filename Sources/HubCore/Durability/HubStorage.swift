// The hub's side of its journal: records that are still to be handed over, and what waits for them.
import HubBytes
import HubMessages

/// Whether what has to be stored can be.
public enum StorageCondition: Sendable {
  case good
  /// The disk is full, or the journal has stopped: changes are refused with `storage_full`, positions go on.
  case unavailable
}

/// Records and waiters of a hub with a journal; without one nothing is ever in it.
struct HubStorage: ~Copyable {
  let isOn: Bool
  /// Bytes of records that may wait to be handed over.
  private let limit: Int
  /// Changes that were made and not handed over yet.
  private(set) var records = ByteBuffer()
  /// Fixes of the message that is being handled, and whether one of them was published.
  private var fixes = ByteBuffer()
  private(set) var hasPublishedFixes = false
  /// The number that `records` will be handed over with.
  private(set) var ticket: UInt64 = 1
  /// Everything up to this number is on stable storage.
  private(set) var storedThrough: UInt64 = 0
  /// Somebody waits for everything up to this number.
  private(set) var awaited: UInt64 = 0
  /// Whoever drives the hub answers `HistoryLookup`s.
  let looksUp: Bool
  private(set) var condition = StorageCondition.good
  private(set) var held = HeldOutputs()
  /// The records whose answers were refused last because nothing could be stored.
  private(set) var unanswered: ClosedRange<UInt64> = 0...0
  /// Inputs among what is held.
  private(set) var parked = 0
  /// What waited is being handled.
  private(set) var isReleasing = false
  /// The number with which a channel was forgotten last.
  private(set) var forgottenTicket: UInt64 = 0

  /// Without a journal.
  init() {
    isOn = false
    limit = 0
    looksUp = false
  }

  init(limit: Int, looksUp: Bool) {
    isOn = true
    self.looksUp = looksUp
    self.limit = limit
  }

  /// The number of the newest change; 0 where nothing is stored.
  var newest: UInt64 { records.isEmpty ? ticket - 1 : ticket }

  /// Whether something was changed that is not stored yet.
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

  /// Makes a record of the fixes that were added.
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

  /// Gives the records to `body`, which says whether it has taken them; they are forgotten then.
  mutating func handOver(_ body: (UnsafeRawBufferPointer, UInt64) -> Bool) {
    let ticket = ticket
    guard !records.isEmpty, unsafe records.withBytes({ unsafe body($0, ticket) }) else { return }
    records.removeAll(keepingAtMost: 1 << 20)
    self.ticket += 1
  }

  mutating func hold(_ output: HubOutput, for outlet: UInt32) {
    held.append(.output(output, outlet: outlet), until: awaitNewest())
  }

  /// Somebody waits for all changes made so far: gives their number.
  mutating func awaitNewest() -> UInt64 {
    awaited = newest
    return newest
  }

  mutating func park(_ input: HubInput) {
    held.append(.input(input), until: awaitNewest())
    parked += 1
  }

  /// What has waited long enough, oldest first.
  mutating func release() -> HeldOutputs.Held? {
    let next = held.next(storedThrough: storedThrough)
    if case .input = next { parked -= 1 }
    return next
  }

  mutating func stored(through ticket: UInt64, _ condition: StorageCondition) {
    self.condition = condition
    storedThrough = max(storedThrough, ticket)
  }

  /// What waited begins to be handled, or was.
  mutating func setReleasing(_ isReleasing: Bool) { self.isReleasing = isReleasing }

  /// A channel was forgotten with what is written now.
  mutating func noteForgotten() { forgottenTicket = ticket }

  /// Whoever waits for an answer, oldest first, waits no longer. Events go on waiting.
  mutating func takeAnswers() -> [HeldOutputs.Held] {
    parked = 0
    if held.answers > 0 { unanswered = storedThrough + 1...max(newest, storedThrough + 1) }
    return held.takeAnswers()
  }
}
