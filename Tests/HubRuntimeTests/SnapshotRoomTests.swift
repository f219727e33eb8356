// Snapshots on a disk without room for them.
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

  @Test("While the next snapshot may not fit on the disk none is begun, and it is written when there is room again")
  func room() throws {
    let directory = "/tmp/snapshots-\(UUID().uuidString)"
    defer { do { try FileManager.default.removeItem(atPath: directory) } catch { Issue.record(error) } }
    var configuration = JournalConfiguration(directory: directory)
    (configuration.limits.snapshotBytes, configuration.limits.maintenanceSeconds) = (1, 0.05)
    let log = Log(level: .error)
    let journal = JournalQueue(limits: configuration.limits, log: log)
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
    let (looks, submitted) = (Locked(0), Locked(1000 as UInt64))
    let maintenance = JournalMaintenance(journal, configuration, log) {
      // So that another one is due behind this one.
      let number = submitted.withLock {
        $0 += 1
        return $0
      }
      Self.submit(number, to: journal)
      return HubBox(Self.makeHub())
    } freeBytes: { files in
      let look = looks.withLock {
        $0 += 1
        return $0
      }
      let isWritten = Self.hasSnapshot(files)
      #expect(!isWritten || look > 4)
      if isWritten || look == 100 { journal.commit.close() }
      return look < 4 ? 0 : 1  // what the first one may take, by the limit above
    }
    maintenance.run(after: report)
    writer.join()
    let counters = journal.maintenance.withLock { $0 }
    #expect(looks.withLock { $0 } > 4 && counters.snapshots >= 1 && counters.failures == 3)
  }
}
