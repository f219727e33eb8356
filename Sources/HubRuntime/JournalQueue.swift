// The hub's journal in a running server: read before anyone connects, then written by a thread of its own.
//
//     hub's thread   before a turn: releases what is stored by now, and logs a full disk;
//                    after it: its records go into the queue
//     its own        writes the queue, group by group, and wakes the hub's thread when a group is stored
package import HubBytes
package import HubCore
public import HubJournal
import HubMessages
package import HubSystem
import Synchronization

/// Where trips and their events are stored, and how damage is handled.
public struct JournalConfiguration: Sendable {
  public var directory: String
  /// Damage is moved aside, and the hub continues from before it, in a new epoch. Else the hub does not start.
  public var acceptsLoss = false
  public var limits = JournalLimits()
  /// How long data is kept that the hub itself does not need any more.
  public var retention = RetentionRule()

  public init(directory: String) { self.directory = directory }
}

/// The queue to the journal's thread, on the hub's side.
package final class JournalQueue: Sendable {
  package let commit: GroupCommit
  package let maintenance = Locked(MaintenanceCounters())
  /// The retention rule that replaces the one of the start; nil until it was reloaded.
  package let retention = Locked<RetentionRule?>(nil)
  private let limits: JournalLimits
  private let log: Log
  private let watch = Locked(FullDiskWatch())
  /// Whether `watch` has an end to log. It is kept apart, so that a hub with room on its disk need not take the lock.
  private let isWatching = Atomic(false)

  package init(limits: JournalLimits, log: Log) {
    commit = GroupCommit(limits: limits)
    self.limits = limits
    self.log = log
  }

  /// Bytes of records that may wait to be handed over: with the largest one on top they still fit a group.
  package var recordLimit: Int { limits.groupBytes / 2 }

  /// Releases what waited for the disk.
  func release(_ hub: inout Hub, now: Moment) {
    let through = commit.durableThrough
    switch commit.currentCondition {
    case .good where !isWatching.load(ordering: .relaxed): hub.stored(through: through, condition: .good)
    case .good: release(&hub, through: through, condition: .good, isFull: false, now)
    case .full: release(&hub, through: through, condition: .unavailable, isFull: true, now)
    case .stopped: hub.stored(through: through, condition: .unavailable)  // the journal's thread has logged it
    }
  }

  /// Releases what waited, and logs that the disk is full, or no longer.
  private func release(
    _ hub: inout Hub, through ticket: UInt64, condition: StorageCondition, isFull: Bool, _ now: Moment
  ) {
    let before = FullDiskWatch.Losses(hub.counters)
    hub.stored(through: ticket, condition: condition)
    let line = watch.withLock { watch in
      let line = watch.look(
        isFull: isFull, before: before, after: FullDiskWatch.Losses(hub.counters), uptime: now.uptime)
      isWatching.store(watch.isOpen, ordering: .relaxed)
      return line
    }
    switch line {
    case .full(let seconds, let losses): logFull(seconds, losses)
    case .writable(let seconds, let losses):
      log(
        .info, "journal_writable",
        ["seconds": "\(seconds)", "refused": "\(losses.refused)", "fixes_not_stored": "\(losses.fixesNotStored)"])
    case nil: break
    }
  }

  private func logFull(_ seconds: Int64, _ losses: FullDiskWatch.Losses) {
    let error = commit.counters.lastFull
    var hint = "moves and batches get storage_full, positions continue; it is tried again twice a second"
    if case .gone = error {
      hint = "moves and batches get storage_full, positions continue; put it back as it was, or restart the hub"
    }
    log(
      .error, "journal_full",
      [
        "error": error.map { "\($0)" } ?? "", "seconds": "\(seconds)", "refused": "\(losses.refused)",
        "fixes_not_stored": "\(losses.fixesNotStored)", "hint": hint,
      ])
  }

  /// Hands over the turn's records: at once if something waits for them, else together with later turns'. Without room
  /// they stay with the hub, which then refuses further changes.
  func submit(_ hub: inout Hub) {
    let awaited = hub.awaitedTicket
    unsafe hub.takeRecords { records, ticket in
      unsafe commit.submit(records, ticket: ticket, isUrgent: ticket <= awaited)
    }
    if awaited > commit.durableThrough { commit.hurry(through: awaited) }
  }
}

/// A hub on its way to its thread.
package final class HubBox {
  private var hub: Hub?

  package init(_ hub: consuming Hub) { self.hub = consume hub }

  func load(_ records: UnsafeRawBufferPointer) throws(RecordError) { try unsafe hub!.load(records) }

  package func take() -> Hub { hub.take()! }
}

/// A journal's writer on its way to its thread.
///
/// `@unchecked Sendable`: the thread that made it releases it before the other begins, which the compiler cannot see
/// because the hub was read in the same call.
package final class WriterBox: @unchecked Sendable {
  var writer: JournalWriter
  package let report: RecoveryReport

  init(_ writer: consuming JournalWriter, _ report: RecoveryReport) {
    self.writer = consume writer
    self.report = report
  }
}

extension JournalConfiguration {
  /// Reads the journal into a hub that has not handled anything. `newEpoch` is the hub's epoch where the journal is
  /// empty, or has lost something. `whileReading` is called between groups, as it may take long.
  package func recover(
    into hub: inout Hub, recordLimit: Int, newEpoch: InlineText, _ log: Log, whileReading: () -> Void = {}
  ) throws(JournalError) -> WriterBox {
    let began = ClockReading.read().uptimeNanoseconds
    let files = try DiskFiles(path: directory)
    let recovered = try unsafe Recovery(files: files, limits: limits).run(damage: acceptsLoss ? .moveAside : .refuse) {
      (part) throws(InvalidPayload) in
      whileReading()
      try unsafe load(part, into: &hub)
    } group: { (_, records) throws(InvalidPayload) in
      whileReading()
      try unsafe load(records, into: &hub)
    }
    hub.finishLoading(at: Moment(ClockReading.read()))
    hub.attachJournal(
      limit: recordLimit, startsEpoch: recovered.report.startsAnew, epoch: newEpoch, looksUp: true)
    note(recovered.report, hub.shownCounters(), nanoseconds: ClockReading.read().uptimeNanoseconds - began, log)
    let report = recovered.report
    return WriterBox(recovered.takeWriter(), report)
  }

  private func load(_ records: UnsafeRawBufferPointer, into hub: inout Hub) throws(InvalidPayload) {
    do throws(RecordError) { try unsafe hub.load(records) } catch { throw InvalidPayload("\(error)") }
  }

  private func note(_ report: RecoveryReport, _ counters: HubCounters, nanoseconds: Int64, _ log: Log) {
    if let tail = report.tail {
      log(
        .warning, "journal_tail_cut",
        [
          "file": tail.file, "offset": "\(tail.offset)", "bytes": "\(tail.bytes)",
          "hint": "a write that was cut: nothing in it was acked",
        ])
    }
    for name in report.brokenSnapshots { log(.warning, "journal_snapshot_broken", ["file": name]) }
    if let loss = report.loss {
      log(.error, "journal_loss", ["what": "\(loss)", "hint": "the damaged files are kept as damaged-…"])
    }
    log(
      .info, "journal_read",
      [
        "directory": directory, "trips": "\(counters.entries(.trips))", "events": "\(counters.entries(.events))",
        "snapshot": report.snapshot.map { "\($0)" } ?? "none",
        "groups": "\(report.groups)", "milliseconds": "\(nanoseconds / 1_000_000)",
      ])
  }
}
