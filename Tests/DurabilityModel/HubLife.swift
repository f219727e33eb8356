// One life of the hub: the real Hub, the real journal over the simulated disk, and loops without sockets. What
// Gateway's JournalQueue and HubThread do on two threads is done here call by call, when the world says so.
import HubBytes
import HubCore
import HubJournal
import HubJournalSupport
import HubMessages

/// Takes a fix that was read from a group of the journal.
typealias FixReader = (_ group: UInt64, _ driver: Identifier, _ fix: StoredFix) -> Void

/// What all lives of one history have in common.
struct HubSettings {
  var limits: HubLimits
  var journal: JournalLimits
  var loops: Int
}

final class HubLife {
  private let settings: HubSettings
  private var hub: Hub
  private let commit: GroupCommit
  private var writer: JournalWriter
  private var groups = GroupCommit.PendingGroups()
  let loops: [GatewayLoop]
  /// What the hub asks its journal, and answers on their way to it.
  private var lookups: [HistoryLookup] = []
  private var answers: [HubInput] = []
  /// What was given up at its start, and the last group of the snapshot that it began with; 0 without one.
  let loss: Damage?
  let snapshot: UInt64

  /// Reads what is on the disk, as `locationhub serve --data` does.
  init(
    _ settings: HubSettings, disk: SimulatedDisk, damage: DamagePolicy, epoch: InlineText, seed: UInt64, now: Moment,
    _ fix: FixReader
  ) throws(JournalError) {
    var hub = Hub(
      limits: settings.limits, timings: HubTimings(), sampling: SamplingRules(), epoch: epoch, seed: seed,
      outlets: settings.loops, now: now)
    let recovered = try Self.read(disk, settings, damage: damage, into: &hub, fix)
    hub.finishLoading(at: now)
    loss = recovered.report.loss
    snapshot = recovered.report.snapshot ?? 0
    hub.attachJournal(
      limit: settings.journal.groupBytes / 2, startsEpoch: recovered.report.startsAnew, epoch: epoch, looksUp: true)
    self.settings = settings
    self.hub = hub
    commit = GroupCommit(limits: settings.journal)
    writer = recovered.takeWriter()
    loops = (0..<settings.loops).map { GatewayLoop(number: $0) }
  }

  private static func read(
    _ disk: SimulatedDisk, _ settings: HubSettings, damage: DamagePolicy, into hub: inout Hub,
    _ fix: FixReader
  ) throws(JournalError) -> Recovered {
    try Recovery(files: disk, limits: settings.journal).run(damage: damage) { (part) throws(Senseless) in
      try load(part, into: &hub)
    } group: { (number, records) throws(Senseless) in
      try load(records, into: &hub)
      StoredSegment.forEachFix(in: records) { fix(number, $0, $1) }
    }
  }

  private static func load(_ records: UnsafeRawBufferPointer, into hub: inout Hub) throws(Senseless) {
    do throws(RecordError) { try hub.load(records) } catch { throw Senseless("\(error)") }
  }

  /// What the hub says of a driver; nil where it does not know it.
  func report(of driver: Identifier, _ now: Moment) -> DriverReport? {
    hub.process([.query(SessionRef(outlet: 0, slot: 1 << 21, generation: 0), .driver(driver))], now: now)
    var report: DriverReport?
    for output in hub.drain(0) {
      if case .queryResult(_, .driver(let found), _) = output {
        report = found
      } else {
        loops[0].outputs.append(output)
      }
    }
    return report
  }

  // MARK: Turns

  var hasLookups: Bool { !lookups.isEmpty }

  var counters: HubCounters { hub.counters }

  /// Whether the hub was told in its last turn that what has to be stored can be.
  private(set) var stores = true

  /// One turn of the hub's thread, with what the loops have for it.
  func turn(_ now: Moment) {
    stores = commit.currentCondition == .good
    hub.stored(through: commit.durableThrough, condition: stores ? .good : .unavailable)
    for loop in loops {
      hub.process(loop.inputs, now: now)
      loop.inputs.removeAll(keepingCapacity: true)
    }
    hub.process(answers, now: now)
    answers.removeAll(keepingCapacity: true)
    hub.takeRecords { records, ticket in commit.submit(records, ticket: ticket, isUrgent: true) }
    hub.takeLookups(into: &lookups)
    for loop in loops where hub.hasOutput(for: loop.number) {
      let list = hub.drain(loop.number)
      for output in list { loop.outputs.append(output) }
    }
  }

  /// Answers what the hub has asked. `isStored` says whether a driver's fix is in the journal.
  func answerLookups(_ isStored: (_ driver: Identifier, _ time: Int64) -> Bool) {
    for lookup in lookups {
      answers.append(
        .knownFixes(ticket: lookup.ticket, lookup.times.filter { isStored(lookup.driverID, $0) }))
    }
    lookups.removeAll()
  }

  /// One group of the journal's thread. Nil where it cannot go on in this life.
  func write(_ now: Moment) -> GroupCommit.Progress? {
    guard commit.currentCondition != .stopped else { return nil }
    do throws(JournalError) {
      return try commit.writeGroup(&groups, &writer, created: now.timestamp.milliseconds)
    } catch {
      return nil
    }
  }

  /// Nothing waits for a turn, for the disk or for its clients.
  var isIdle: Bool {
    groups.isEmpty && commit.isIdle && lookups.isEmpty && answers.isEmpty && !hub.hasMoreDue
      && loops.allSatisfy { $0.inputs.isEmpty && $0.outputs.isEmpty && !hub.hasOutput(for: $0.number) }
  }

  /// What the keeper does: a snapshot of all that is stored, made from the one before it and the groups since, and the
  /// end of what is older than the rule says. `fix` is called with each fix in these groups. Gives the last group of
  /// the snapshot that it was made from (0 without one); nil where there was nothing to do.
  func keep(
    _ disk: SimulatedDisk, _ rule: RetentionRule, now: Moment, _ fix: FixReader
  ) throws(JournalError) -> UInt64? {
    guard groups.isEmpty, writer.next > 1 else { return nil }
    writer.sealSegment()
    let last = writer.next - 1
    var copy = Hub(
      limits: settings.limits, timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText(), seed: 0,
      outlets: settings.loops, now: now)
    let report = try Recovery(files: disk, limits: settings.journal).read(through: last) { (part) throws(Senseless) in
      try Self.load(part, into: &copy)
    } group: { (number, records) throws(Senseless) in
      try Self.load(records, into: &copy)
      StoredSegment.forEachFix(in: records) { fix(number, $0, $1) }
    }
    guard report.snapshot != last else { return nil }
    let milliseconds = now.timestamp.milliseconds
    do throws(JournalError) {
      var snapshot = try SnapshotWriter(files: disk, limits: settings.journal, through: last, created: milliseconds)
      try copy.writeSnapshot { (part) throws(JournalError) in try snapshot.write(part) }
      try snapshot.finish()
    } catch {
      try SnapshotWriter.removeUnfinished(disk)
      throw error
    }
    _ = try JournalInventory(disk, limits: settings.journal).apply(
      rule, limits: settings.journal, broken: Set(report.brokenSnapshots), now: milliseconds, in: disk)
    return report.snapshot ?? 0
  }

  // MARK: Its durable state

  /// The records of a snapshot, sorted: tables that were filled in another order are the same.
  func state() -> [[UInt8]] { Self.state(of: hub) }

  /// The same of a hub that reads the disk now. `fix` is called with each fix behind the newest snapshot.
  @discardableResult
  static func read(
    _ disk: SimulatedDisk, _ settings: HubSettings, now: Moment, _ fix: FixReader
  ) throws(JournalError) -> [[UInt8]] {
    var hub = Hub(
      limits: settings.limits, timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText(), seed: 0,
      outlets: settings.loops, now: now)
    _ = try read(disk, settings, damage: .refuse, into: &hub, fix)
    hub.finishLoading(at: now)
    return state(of: hub)
  }

  private static func state(of hub: borrowing Hub) -> [[UInt8]] {
    var records: [[UInt8]] = []
    hub.writeSnapshot { part in
      var offset = 0
      while offset < part.count {
        let length = 4 + Int(UInt32(littleEndian: part.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        records.append(Array(part[offset..<offset + length]))
        offset += length
      }
    }
    return records.sorted { $0.lexicographicallyPrecedes($1) }
  }
}
