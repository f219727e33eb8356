// When snapshots are written: on a disk without room for them, and where little is stored.
import Foundation
import HubBytes
import HubMessages
import HubSystem
import HubTestSupport
import Testing

@testable import HubCore
@testable import HubJournal
@testable import HubRuntime

@Suite struct SnapshotRoomTests {
  private static func makeHub() -> Hub {
    Hub(
      limits: HubLimits(), timings: HubTimings(), sampling: SamplingRules(), epoch: InlineText("e")!, seed: 1,
      pseudonymKey: nil, drawnKey: SipKey(1, 2), outlets: 1,
      now: Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_764_000_000_000)))
  }

  /// Records that any hub can load, longer than a snapshot of one that has nothing.
  private static func submit(_ number: UInt64, to journal: JournalQueue) {
    var records = ByteBuffer()
    for fence in 0..<200 { RecordWriter.write(.fenceDeleted(Identifier("fence-\(fence)")!), into: &records) }
    let isTaken = records.withBytes { journal.commit.submit($0, ticket: number, isUrgent: true) }
    #expect(isTaken)
  }

  private static func hasSnapshot(_ files: DiskFiles) -> Bool {
    do throws(SystemError) { return try files.names().contains { $0.hasSuffix(".snapshot") } } catch {
      Issue.record(error)
      return false
    }
  }

  /// Maintains a new journal with one record, by a clock that stands still, until `look` closes it: that is called
  /// before each snapshot, says how much room there is, and has another record stored while the snapshot is made.
  private static func maintain(
    _ limits: JournalLimits, _ rule: RetentionRule = RetentionRule(),
    _ look: @escaping @Sendable (DiskFiles, JournalQueue) -> UInt64?
  ) throws -> MaintenanceCounters {
    let directory = "/tmp/snapshots-\(UUID().uuidString)"
    defer { do { try FileManager.default.removeItem(atPath: directory) } catch { Issue.record(error) } }
    var configuration = JournalConfiguration(directory: directory)
    (configuration.limits, configuration.retention) = (limits, rule)
    let log = Log(level: .error)
    let journal = JournalQueue(limits: limits, log: log)
    var hub = Self.makeHub()
    let box = try configuration.recover(
      into: &hub, recordLimit: journal.recordLimit, newEpoch: InlineText("e")!, log)
    let report = box.report
    let writer = try startThread(name: "journal") {
      do throws(JournalError) { try journal.commit.run(&box.writer, clock: { 1 }, onChange: {}) } catch {
        Issue.record(error)
      }
    }
    journal.submit(&hub)  // its first record
    let submitted = Locked(1000 as UInt64)
    let maintenance = JournalMaintenance(journal, configuration, log) {
      let number = submitted.withLock {
        $0 += 1
        return $0
      }
      Self.submit(number, to: journal)
      return HubBox(Self.makeHub())
    } freeBytes: { files in
      look(files, journal)
    }
    maintenance.run(after: report)
    writer.join()
    return journal.maintenance.withLock { $0 }
  }

  @Test("While the next snapshot may not fit on the disk none is begun, and it is written when there is room again")
  func room() throws {
    var limits = JournalLimits()
    (limits.snapshotBytes, limits.maintenanceSeconds) = (1, 0.05)
    let looks = Locked(0)
    let counters = try Self.maintain(limits) { files, journal in
      let look = looks.withLock {
        $0 += 1
        return $0
      }
      let isWritten = Self.hasSnapshot(files)
      #expect(!isWritten || look > 4)
      if isWritten || look == 2000 { journal.commit.close() }
      return look < 4 ? 0 : 1  // what the first one may take, by the limit above
    }
    #expect(looks.withLock { $0 } > 4 && counters.snapshots >= 1 && counters.failures == 3)
  }

  @Test("Where little is stored, a segment's age makes a snapshot due, so that old history can go")
  func age() throws {
    var (limits, rule) = (JournalLimits(), RetentionRule())
    (limits.segmentAges, limits.maintenanceSeconds, rule.milliseconds) = (1...1, 0.05, 1)
    let counters = try Self.maintain(limits, rule) { files, journal in
      if Self.hasSnapshot(files) { journal.commit.close() }
      return nil
    }
    #expect(counters.snapshots >= 1 && counters.failures == 0)
  }
}
