// One incarnation of the hub: the real server over a simulated network, and the real journal over the simulated disk.
// What threads do in a running hub (a loop's turns, the journal's groups, its maintenance, its reader) is done here
// call by call, when the world says so.
import HubBytes
import HubCore
import HubGateway
import HubJournal
import HubJournalSupport
import HubMessages
import HubRuntime
import HubSystem
import HubTransport
import HubTransportSupport

/// Takes a fix that was read from a group of the journal.
typealias FixReader = (_ group: UInt64, _ driver: Identifier, _ fix: StoredFix) -> Void

/// What all incarnations of one history have in common.
struct HubSettings {
  var server: ServerConfiguration
  var journal: JournalLimits

  /// A hub as a server with these settings makes it.
  func makeHub(epoch: InlineText = InlineText(), seed: UInt64 = 0, now: Moment) -> Hub {
    Hub(
      limits: server.limits.hub, timings: server.timings, sampling: server.sampling, epoch: epoch, seed: seed,
      outlets: server.loops, now: now)
  }
}

final class HubIncarnation {
  /// What a server's loops read as the time.
  private final class Clock {
    var now: Moment
    init(_ now: Moment) { self.now = now }
  }

  /// What the hub asks its journal.
  private final class Lookups {
    var rounds: [(questions: [HistoryLookup], answers: Mailbox<HubInput>)] = []
  }

  private let settings: HubSettings
  private let clock: Clock
  private let lookups: Lookups
  /// One for each loop.
  let networks: [SimulatedNetwork]
  private let server: EmbeddedServer
  private let commit: GroupCommit
  private var writer: JournalWriter
  private var groups = GroupCommit.PendingGroups()
  /// What was given up at its start, and the last group of the snapshot that it began with; 0 without one.
  let loss: Damage?
  let snapshot: UInt64
  /// Its report of each driver after it had read its journal; nil for unknown ones.
  let reports: [DriverReport?]

  /// Reads what is on the disk, as `locationhub serve --data` does.
  init(
    _ settings: HubSettings, disk: SimulatedDisk, damage: DamagePolicy, epoch: InlineText, seed: UInt64, now: Moment,
    drivers: [Identifier], _ fix: FixReader
  ) throws(JournalError) {
    var hub = settings.makeHub(epoch: epoch, seed: seed, now: now)
    let recovered = try Self.read(disk, settings, damage: damage, into: &hub, fix)
    hub.finishLoading(at: now)
    loss = recovered.report.loss
    snapshot = recovered.report.snapshot ?? 0
    hub.attachJournal(
      limit: settings.journal.groupBytes / 2, startsEpoch: recovered.report.startsAnew, epoch: epoch, looksUp: true)
    var reports: [DriverReport?] = []
    for driver in drivers { reports.append(Self.report(of: driver, in: &hub, now)) }
    self.reports = reports
    self.settings = settings
    let networks = (0..<settings.server.loops).map { _ in SimulatedNetwork() }
    let (clock, lookups) = (Clock(now), Lookups())
    do throws(SystemError) {
      server = try EmbeddedServer(settings.server, hub, networks: networks) {
        ClockReading(
          uptimeNanoseconds: clock.now.uptime, unixMilliseconds: clock.now.timestamp.milliseconds)
      } history: { waker in
        Consultation(waking: waker) { hub, waiting in
          hub.takeLookups(into: &waiting)
        } consult: { questions, answers in
          lookups.rounds.append((questions, answers))
          return true
        }
      }
    } catch {
      preconditionFailure("no descriptors for a loop: \(error)")
    }
    self.networks = networks
    self.clock = clock
    self.lookups = lookups
    guard let journal = server.journal else { preconditionFailure("a server with a journal") }
    commit = journal.commit
    writer = recovered.takeWriter()
  }

  private static func read(
    _ disk: SimulatedDisk, _ settings: HubSettings, damage: DamagePolicy, into hub: inout Hub,
    _ fix: FixReader
  ) throws(JournalError) -> Recovered {
    try disk.recover(settings.journal, damage: damage, into: &hub) { number, records in
      StoredSegment.forEachFix(in: records) { fix(number, $0, $1) }
    }
  }

  private static func load(_ records: UnsafeRawBufferPointer, into hub: inout Hub) throws(InvalidPayload) {
    do throws(RecordError) { try hub.load(records) } catch { throw InvalidPayload("\(error)") }
  }

  /// What a hub says of a driver; nil where it does not know it.
  private static func report(of driver: Identifier, in hub: inout Hub, _ now: Moment) -> DriverReport? {
    hub.process([.query(SessionRef(outlet: 0, slot: 1 << 21, generation: 0), .driver(driver))], now: now)
    for output in hub.drain(0) {
      if case .queryResult(_, .driver(let found), _) = output { return found }
    }
    return nil
  }

  // MARK: Turns

  var hasLookups: Bool { !lookups.rounds.isEmpty }

  var counters: HubCounters {
    var counters = HubCounters()
    server.inspect { counters = $0.shownCounters() }
    return counters
  }

  /// What its sockets came to.
  var socketCounters: [EventLoopCounters] { networks.indices.map { server.counters($0) } }

  /// Whether what has to be stored can be.
  var stores: Bool { commit.currentCondition == .good }

  /// One turn of a loop.
  func turn(_ loop: Int, _ now: Moment) {
    clock.now = now
    server.turn(loop)
  }

  /// Answers what the hub has asked. `isStored` says whether a driver's fix is in the journal.
  func answerLookups(_ isStored: (_ driver: Identifier, _ time: Int64) -> Bool) {
    for round in lookups.rounds {
      for lookup in round.questions {
        let known = lookup.times.filter { isStored(lookup.driverID, $0) }
        let hasRoom = round.answers.append(.knownFixes(ticket: lookup.ticket, known))
        precondition(hasRoom, "there is room for the answers of a round")
      }
    }
    lookups.rounds.removeAll()
  }

  /// One group of the journal's thread. Nil where it cannot continue in this incarnation.
  func write(_ now: Moment) -> GroupCommit.Progress? {
    guard commit.currentCondition != .stopped else { return nil }
    do throws(JournalError) {
      return try commit.writeGroup(&groups, &writer, created: now.timestamp.milliseconds)
    } catch {
      return nil
    }
  }

  /// Nothing waits for a turn or for the disk.
  var isIdle: Bool {
    var hasMoreDue = false
    server.inspect { hasMoreDue = $0.hasMoreDue }
    return groups.isEmpty && commit.isIdle && !hasLookups && !hasMoreDue
      && !networks.indices.contains { server.hasUnhandledInput($0) }
  }

  /// What maintenance does: a snapshot of all that is stored, made from the one before it and the groups since, and the
  /// end of what is older than the rule says. `fix` is called with each fix in these groups. Gives the last group of
  /// the snapshot that it was made from (0 without one); nil where there was nothing to do.
  func keep(
    _ disk: SimulatedDisk, _ rule: RetentionRule, now: Moment, _ fix: FixReader
  ) throws(JournalError) -> UInt64? {
    guard groups.isEmpty, writer.next > 1 else { return nil }
    writer.sealSegment()
    let last = writer.next - 1
    var copy = settings.makeHub(now: now)
    let report = try Recovery(files: disk, limits: settings.journal).read(through: last) {
      (part) throws(InvalidPayload) in
      try Self.load(part, into: &copy)
    } group: { (number, records) throws(InvalidPayload) in
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
  func state() -> [[UInt8]] {
    var records: [[UInt8]] = []
    server.inspect { records = Self.state(of: &$0) }
    return records
  }

  /// The state of a hub that reads the disk now. `fix` is called with each fix behind the newest snapshot.
  @discardableResult
  static func read(
    _ disk: SimulatedDisk, _ settings: HubSettings, now: Moment, _ fix: FixReader
  ) throws(JournalError) -> [[UInt8]] {
    var hub = settings.makeHub(now: now)
    _ = try read(disk, settings, damage: .refuse, into: &hub, fix)
    hub.finishLoading(at: now)
    return state(of: &hub)
  }

  private static func state(of hub: inout Hub) -> [[UInt8]] {
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
