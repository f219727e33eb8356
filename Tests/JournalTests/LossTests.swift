// What the model of durability (Tests/DurabilityModel) found: each as a small journal of its own.
import HubJournalSupport
import HubSystem
import HubTestSupport
import Testing

@testable import HubJournal

@Suite struct LossTests {
  @Test("A broken snapshot with nothing to read instead is damage, and not an empty journal")
  func brokenSnapshot() throws {
    let bench = Bench()
    try bench.open { writer in for step in 1...3 { _ = try writer.append([UInt8(step)]) } }
    var snapshot = try SnapshotWriter(files: bench.disk, limits: bench.limits, through: 3, created: 0)
    try [1, 2, 3].withBytes { (bytes) throws(JournalError) in try snapshot.write(bytes) }
    try snapshot.finish()
    bench.disk.files[FileHeader.name(.segment, 1)] = nil
    let name = FileHeader.name(.snapshot, 3)
    bench.disk.spoil(name, 50, 1)
    let damage = Damage(kind: .missing(through: 3), file: name, offset: 0, group: 1)
    #expect(throws: JournalError.damaged(damage)) { try bench.open() }
    let found = try bench.open(damage: .moveAside) { writer in _ = try writer.append([4]) }
    #expect(found.report.loss == damage && found.report.startsAnew)
    #expect(bench.disk.files.keys.contains("damaged-1-" + name))
    #expect(try bench.open().groups == [1: [4]])
  }

  /// A journal of three groups with a snapshot of all, which is broken.
  private func withBrokenSnapshot() throws -> Bench {
    let bench = Bench()
    try bench.open { writer in for step in 1...3 { _ = try writer.append([UInt8(step)]) } }
    var snapshot = try SnapshotWriter(files: bench.disk, limits: bench.limits, through: 3, created: 0)
    try [1, 2, 3].withBytes { (bytes) throws(JournalError) in try snapshot.write(bytes) }
    try snapshot.finish()
    bench.disk.spoil(FileHeader.name(.snapshot, 3), 50, 1)
    return bench
  }

  @Test("Where the start refuses for a broken snapshot, a torn tail is not cut off either")
  func brokenSnapshotAndTail() throws {
    let bench = try withBrokenSnapshot()
    let content = try #require(bench.disk.files[FileHeader.name(.segment, 1)])
    content.bytes.removeLast()
    let torn = content.bytes
    #expect(throws: JournalError.self) { try bench.open() }
    #expect(content.bytes == torn)
    let found = try bench.open(damage: .moveAside)
    #expect(found.groups.count == 2 && found.report.tail?.bytes == GroupHeader.size && content.bytes.count < torn.count)
  }

  @Test("A broken snapshot that the segments make up for is passed over")
  func needlessSnapshot() throws {
    let bench = try withBrokenSnapshot()
    let found = try bench.open()
    #expect(found.groups.count == 3 && found.report.loss == nil && found.report.brokenSnapshots.count == 1)
  }

  @Test("A loss that was accepted is still known at the next start, until something is stored behind it")
  func lossMark() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 100
    try bench.open { writer in for step in 1...6 { _ = try writer.append([UInt8](repeating: UInt8(step), count: 40)) } }
    let name = try #require(bench.disk.files.keys.min())
    bench.disk.spoil(name, FileHeader.size + GroupHeader.size + 3, 4)
    #expect(try bench.open(damage: .moveAside).report.startsAnew)
    let second = try bench.open { writer in _ = try writer.append([7]) }
    #expect(second.report.startsAnew && second.report.loss == nil)
    #expect(try !bench.open().report.startsAnew)
  }

  @Test("What was moved aside before is not replaced by a second loss at the same group")
  func twoLosses() throws {
    let bench = Bench()
    let name = FileHeader.name(.segment, 1)
    var spoiled: [[UInt8]] = []
    for round in UInt8(1)...3 {
      try bench.open { writer in for step in UInt8(0)..<2 { _ = try writer.append([round, step]) } }
      bench.disk.spoil(name, FileHeader.size + GroupHeader.size, 1)
      spoiled.append(try bench.disk.read(name))
      bench.disk.room = 20
      #expect(throws: JournalError.self) { try bench.open(damage: .moveAside) }
      bench.disk.room = .max
      #expect(try bench.open(damage: .moveAside).report.loss?.group == 1)
    }
    let kept = try ["damaged-1-", "damaged-1-2-", "damaged-1-3-"].map { try bench.disk.read($0 + name) }
    #expect(kept == spoiled && bench.disk.files.keys.count { $0.hasPrefix("damaged-") } == 3)
  }

  @Test("What a killed hub wrote and did not synchronise is on stable storage before it is published")
  func killedBeforeSync() throws {
    for call in 0..<12 {
      let bench = Bench()
      var random = SplitMix64(seed: UInt64(call))
      try bench.open { writer in
        bench.disk.callsUntilDeath = call
        for step in 1...3 {
          do throws(JournalError) { _ = try writer.append([UInt8(step)]) } catch { return }
        }
      }
      bench.disk.revive()
      let stored = try bench.open { writer in _ = try writer.append([9]) }
      bench.disk.cutPower(&random)
      let after = try bench.open()
      #expect(after.groups == stored.groups.merging([stored.next: [9]]) { $1 }, "killed at call \(call)")
    }
  }

  @Test("A segment's header that was torn while it was written is no newer program's")
  func tornHeader() throws {
    let bench = Bench()
    try bench.open { writer in _ = try writer.append([1]) }
    let content = SimulatedDisk.Content()
    content.bytes = Array(FileHeader(kind: .segment, group: 2, created: 0).encoded(CRC32C())[..<8]) + [7, 7, 7, 7, 7]
    bench.disk.files[FileHeader.name(.segment, 2)] = content
    #expect(try bench.open { writer in _ = try writer.append([2]) }.groups == [1: [1]])
    #expect(try bench.open().groups == [1: [1], 2: [2]])
  }
}
