// Snapshots: the newest complete one is read, and the journal that it replaces may go.
import HubJournalSupport
import HubSystem
import HubTestSupport
import Testing

@testable import HubJournal

@Suite struct SnapshotTests {
  @Test("A start reads the newest whole snapshot and what is behind it, and passes over a broken one")
  func snapshots() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 100
    try bench.open { writer in for step in 1...10 { _ = try writer.append([UInt8](repeating: UInt8(step), count: 30)) }
    }
    func snapshot(_ group: UInt64, _ parts: [[UInt8]]) throws {
      var writer = try SnapshotWriter(files: bench.disk, limits: bench.limits, through: group, created: 0)
      for part in parts { try part.withBytes { try writer.write($0) } }
      try writer.finish()
    }
    try snapshot(4, [[4]])
    try snapshot(7, [[7, 7], [8]])
    let found = try bench.open()
    #expect(found.parts == [[7, 7], [8]])
    #expect(found.groups.keys.sorted() == [8, 9, 10])
    #expect(found.report.snapshot == 7 && found.next == 11)

    let name = FileHeader.name(.snapshot, 7)
    let bytes = try bench.disk.read(name)
    for offset in bytes.indices where !(8..<12).contains(offset) {
      bench.disk.files[name]!.bytes = bytes
      bench.disk.files[name]!.bytes[offset] ^= 4
      let found = try bench.open()
      #expect(found.report.brokenSnapshots == [name] && found.report.snapshot == 4 && found.parts == [[4]])
      #expect(found.groups.keys.sorted() == [5, 6, 7, 8, 9, 10])
    }
    for cut in bytes.indices {
      bench.disk.files[name]!.bytes = Array(bytes[..<cut])
      #expect(try bench.open().report.snapshot == 4)
    }
    // The segments that a snapshot holds may be gone.
    bench.disk.files[name]!.bytes = bytes
    for segment in bench.disk.files.keys {
      if let first = FileHeader.group(ofName: segment, .segment), first <= 6 { bench.disk.files[segment] = nil }
    }
    #expect(try bench.open().groups.keys.sorted() == [8, 9, 10])
  }
}
