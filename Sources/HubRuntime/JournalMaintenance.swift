// Maintains the journal while the hub runs, on a thread of its own: a new snapshot when enough was written or a segment
// is old, indexes of full segments, and removal of old ones.
//
// The durable state is a function of the journal. So a snapshot is not taken from the hub, which would have to pause or
// to copy itself, but made from the one before it and the segments since, by a second hub that loads them as at a start
// and is freed afterwards.
import Glibc
import HubCore
package import HubJournal
import HubSystem

/// Counters of maintenance.
package struct MaintenanceCounters: Sendable, Equatable {
  package var snapshots: UInt64 = 0
  /// Time that they took, without failures.
  package var snapshotNanoseconds: UInt64 = 0
  package var segmentsDeleted: UInt64 = 0
  package var failures: UInt64 = 0
  /// What is on the disk.
  package var segments = 0
  package var bytes = 0
}

/// Maintains a journal.
package final class JournalMaintenance: Sendable {
  private let journal: JournalQueue
  private let configuration: JournalConfiguration
  private let makeHub: @Sendable () -> HubBox
  private let log: Log
  private let freeBytes: @Sendable (DiskFiles) -> UInt64?

  /// `makeHub` makes a hub that has not handled anything. `freeBytes`: of the disk; nil where that is not known.
  package init(
    _ journal: JournalQueue, _ configuration: JournalConfiguration, _ log: Log,
    makeHub: @escaping @Sendable () -> HubBox,
    freeBytes: @escaping @Sendable (DiskFiles) -> UInt64? = { $0.freeBytes() }
  ) {
    self.freeBytes = freeBytes
    self.journal = journal
    self.configuration = configuration
    self.makeHub = makeHub
    self.log = log
  }

  private var limits: JournalLimits { configuration.limits }

  /// Maintains it until the journal closes. `report` is that of the start.
  package func run(after report: RecoveryReport) {
    lowerThreadPriority()
    // Where the newest snapshot ends, in bytes stored since the start: negative for one from before.
    var mark = -Int64(report.bytes)
    var broken = Set(report.brokenSnapshots)
    var isFailing = false
    var clock: RetentionClock?
    while !journal.commit.isClosing {
      do throws(JournalError) {
        let files = try DiskFiles(beside: configuration.directory)
        let (inventory, isOld) = try maintain(files, broken, &clock)
        let due = mark + Int64(max(limits.snapshotBytes, inventory.snapshots.last?.bytes ?? 0))
        journal.commit.waitUntilStored(bytes: UInt64(max(0, due)), seconds: limits.maintenanceSeconds)
        let stored = Int64(journal.commit.counters.bytes)
        if stored >= due || isOld && stored > mark, !journal.commit.isClosing {
          try requireRoom(files, inventory.snapshots.last?.bytes ?? 0)
          if try writeSnapshot(files, &broken) { mark = stored }
        }
        isFailing = false
      } catch {
        guard !journal.commit.isClosing else { return }
        note(error, isFirst: !isFailing)
        isFailing = true
        journal.commit.waitUntilStored(bytes: .max, seconds: limits.maintenanceSeconds)
      }
    }
  }

  private func note(_ error: JournalError, isFirst: Bool) {
    journal.maintenance.withLock { $0.failures += 1 }
    guard isFirst else { return }
    log(
      .error, "journal_maintenance_failed",
      ["error": "\(error)", "hint": "the hub continues; a start reads more until this is fixed, and it is tried again"])
  }

  // MARK: Snapshots

  /// Throws where the next snapshot will hardly fit on the disk: it would be tried in vain each minute, and meanwhile
  /// take room that the journal needs. `last`: the bytes of the one before.
  private func requireRoom(_ files: DiskFiles, _ last: Int) throws(JournalError) {
    let needed = last == 0 ? limits.snapshotBytes : last + min(last, limits.snapshotBytes)
    guard let free = freeBytes(files), free < UInt64(needed) else { return }
    throw .full(
      SystemError(call: "snapshot", errno: ENOSPC),
      file: "\(files.path): the next snapshot may take \(needed) bytes, and \(free) are free")
  }

  /// False where there was nothing to do, or no time.
  private func writeSnapshot(_ files: DiskFiles, _ broken: inout Set<String>) throws(JournalError) -> Bool {
    let began = ClockReading.read()
    guard let last = journal.commit.sealSegment(seconds: limits.maintenanceSeconds), last > 0 else { return false }
    defer { ProcessFacts.trimMemory() }
    let hub = makeHub()
    let recovery = Recovery(files: files, limits: limits)
    let report = try unsafe recovery.read(through: last) { (part) throws(InvalidPayload) in
      try unsafe load(part, into: hub)
    } group: { (_, records) throws(InvalidPayload) in
      try unsafe load(records, into: hub)
    }
    for name in report.brokenSnapshots where broken.insert(name).inserted {
      log(.warning, "journal_snapshot_broken", ["file": name])
    }
    guard report.snapshot != last else { return false }
    let bytes = try write(hub.take(), through: last, files)
    let took = UInt64(ClockReading.read().uptimeNanoseconds - began.uptimeNanoseconds)
    journal.maintenance.withLock {
      $0.snapshots += 1
      $0.snapshotNanoseconds += took
    }
    log(
      .info, "journal_snapshot",
      ["group": "\(last)", "bytes": "\(bytes)", "read": "\(report.bytes)", "milliseconds": "\(took / 1_000_000)"])
    return true
  }

  private func load(_ records: UnsafeRawBufferPointer, into hub: HubBox) throws(InvalidPayload) {
    if journal.commit.isClosing { throw InvalidPayload("the hub stops") }
    do throws(RecordError) { try unsafe hub.load(records) } catch { throw InvalidPayload("\(error)") }
  }

  private func write(
    _ hub: consuming Hub, through last: UInt64, _ files: DiskFiles
  ) throws(JournalError) -> Int {
    do throws(JournalError) {
      var snapshot = try SnapshotWriter(
        files: files, limits: limits, through: last, created: ClockReading.read().unixMilliseconds)
      try unsafe hub.writeSnapshot { (part) throws(JournalError) in
        if journal.commit.isClosing { throw .stopped }
        try unsafe snapshot.write(part)
      }
      let bytes = snapshot.bytes
      try snapshot.finish()
      return bytes
    } catch {
      // Half a snapshot is useless, and takes room on a full disk.
      try SnapshotWriter.removeUnfinished(files)
      throw error
    }
  }

  // MARK: Indexes and retention

  /// Indexes full segments and deletes old ones; gives what is left, and whether its age makes a snapshot due.
  private func maintain(
    _ files: DiskFiles, _ broken: Set<String>, _ clock: inout RetentionClock?
  ) throws(JournalError) -> (left: JournalInventory, isOld: Bool) {
    let before = try JournalInventory(files, limits: limits)
    let (rule, now) = (journal.retention.withLock { $0 } ?? configuration.retention, look(at: &clock, before))
    let deleted = try before.apply(rule, limits: limits, broken: broken, now: now, in: files)
    let history = try unsafe JournalHistory(directory: configuration.directory, limits: limits) { payload, note in
      unsafe DurableKeys.forEach(in: payload, note)
    }
    _ = try history.indexFullSegments { !journal.commit.isClosing }
    let after = try JournalInventory(files, limits: limits)
    journal.maintenance.withLock {
      $0.segmentsDeleted += UInt64(deleted)
      $0.segments = after.segments.count
      $0.bytes = after.bytes
    }
    if deleted > 0 { log(.info, "journal_segments_deleted", ["segments": "\(deleted)", "bytes": "\(after.bytes)"]) }
    return (after, after.needsSnapshot(rule, limits: limits, now: now))
  }

  /// The present time for the ages of segments, in ms since 1970.
  private func look(at clock: inout RetentionClock?, _ inventory: JournalInventory) -> Int64 {
    let reading = ClockReading.read()
    let (uptime, wall) = (reading.uptimeNanoseconds / 1_000_000, reading.unixMilliseconds)
    var known = clock ?? RetentionClock(uptime: uptime, wall: wall, newest: inventory.newestCreated)
    let (time, finding) = known.time(uptime: uptime, wall: wall)
    clock = known
    switch finding {
    case .nothing: break
    case .leapt(let milliseconds):
      log(
        .warning, "clock_leapt",
        [
          "seconds": "\(milliseconds / 1000)",
          "hint": "the wall clock was set ahead; ages in the journal go by uptime until it has held for a day",
        ])
    case .believed: log(.info, "clock_believed", ["hint": "ages in the journal go by the wall clock again"])
    }
    return time
  }
}
