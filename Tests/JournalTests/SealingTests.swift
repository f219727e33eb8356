import Glibc
import HubSystem
import HubTestSupport
import Testing

@testable import HubJournal

@Suite struct SealingTests {
  @Test("Maintenance is woken when enough is stored, and gets a full segment though nothing more comes")
  func sealing() throws {
    let path = "/tmp/journal-seal-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    let limits = JournalLimits()
    let commit = GroupCommit(limits: limits, lazyMilliseconds: 1)
    let files = try DiskFiles(path: path)
    defer { removeAll(path) }
    let thread = try startThread(name: "journal") { @Sendable in
      do {
        var recovered = try Recovery(files: try DiskFiles(beside: path), limits: limits).run(damage: .refuse) { _ in
        } group: { _, _ in
        }
        try commit.run(&recovered.writer) {
          0
        } onChange: {
        }
      } catch {
        Issue.record(error)
      }
    }
    let bytes = [UInt8](repeating: 1, count: 100)
    for ticket in UInt64(1)...10 { #expect(bytes.withBytes { commit.submit($0, ticket: ticket, isUrgent: true) }) }
    commit.waitUntilStored(bytes: 1000, seconds: 60)
    #expect(commit.durableThrough == 10)
    let last = try #require(commit.sealSegment(seconds: 60))
    #expect(last >= 1)
    #expect(try JournalInventory(files, limits: limits).segments.map(\.first) == [1])
    #expect(bytes.withBytes { commit.submit($0, ticket: 11, isUrgent: true) })
    commit.waitUntilStored(bytes: 1100, seconds: 60)
    #expect(try JournalInventory(files, limits: limits).segments.map(\.first) == [1, last + 1])
    #expect(commit.sealSegment(seconds: 60) == last + 1)
    commit.close()
    thread.join()
    #expect(commit.isClosing && commit.sealSegment(seconds: 60) == nil)
  }

  private func removeAll(_ path: String) {
    do {
      let files = try DiskFiles(beside: path)
      for name in try files.names() { try files.remove(name) }
      #expect(rmdir(path) == 0)
    } catch {
      Issue.record(error)
    }
  }
}
