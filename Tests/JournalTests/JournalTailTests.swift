// A reader beside the writer, on a disk in memory.
import Glibc
import HubJournalSupport
import Testing

@testable import HubJournal

@Suite struct JournalTailTests {
  /// The groups up to the last, by number and position.
  private func groups(_ tail: JournalTail, through last: UInt64) throws -> [GroupPosition] {
    var found: [GroupPosition] = []
    while try tail.read(through: last, { group, _ in found.append(group) }) {}
    return found
  }

  private func bench() throws -> Bench {
    var bench = Bench()
    bench.limits.segmentBytes = 200
    try bench.open { writer in for step in UInt8(0)..<40 { _ = try writer.append([step, step]) } }
    return bench
  }

  @Test("A group that was read is found again without those before it in its segment, which may be damaged since")
  func seeking() throws {
    let bench = try bench()
    let tail = JournalTail(files: bench.disk, limits: bench.limits, next: 1)
    let all = try groups(tail, through: 40)
    #expect(all.map(\.number) == Array(1...40))
    let group = try #require(all.last { $0.segment < $0.number })
    bench.disk.files[FileHeader.name(.segment, group.segment)]!.bytes[FileHeader.size + GroupHeader.size] ^= 1
    tail.seek(to: group)
    #expect(try groups(tail, through: 40) == Array(all[(Int(group.number) - 1)...]) && tail.missedGroups == 0)
  }

  @Test("Forwards within a segment it continues where it is; back, and in another one, it opens a file")
  func seekingForwards() throws {
    let bench = try bench()
    let tail = JournalTail(files: bench.disk, limits: bench.limits, next: 2)
    let first = try groups(tail, through: 2)
    bench.disk.openError = EMFILE
    tail.seek(to: 5)
    #expect(try first.map(\.number) == [2] && groups(tail, through: 6).map(\.number) == [5, 6])
    for number in [6, 12] as [UInt64] {
      tail.seek(to: number)
      #expect(throws: JournalError.self) { try groups(tail, through: number) }
    }
    bench.disk.openError = nil
    for number in [6, 12, 3] as [UInt64] {
      tail.seek(to: number)
      #expect(try groups(tail, through: number).map(\.number) == [number])
    }
  }

  @Test("What is behind a damaged group is read, up to the last one that is stored, and what is damaged is counted")
  func damaged() throws {
    let bench = try bench()
    let all = try groups(JournalTail(files: bench.disk, limits: bench.limits, next: 1), through: 40)
    #expect(all[8].segment == 1 && all[9].segment == 10)
    for group in [all[3], all[4], all[8]] {
      bench.disk.spoil(FileHeader.name(.segment, 1), group.offset + GroupHeader.size, 1)
    }
    let tail = JournalTail(files: bench.disk, limits: bench.limits, next: 1)
    #expect(try groups(tail, through: 5) == Array(all[..<3]))
    #expect(try groups(tail, through: 9) == Array(all[5..<8]))
    #expect(try groups(tail, through: 40) == Array(all[9...]))
    #expect(tail.missedGroups == 3 && tail.damagedGroups == 3)
  }

  @Test("Where its segment was deleted the next one follows, and what is between counts as missed")
  func seekingDeleted() throws {
    let bench = try bench()
    let tail = JournalTail(files: bench.disk, limits: bench.limits, next: 1)
    let all = try groups(tail, through: 40)
    let group = try #require(all.first { $0.segment < $0.number })
    bench.disk.files[FileHeader.name(.segment, group.segment)] = nil
    tail.seek(to: group)
    let rest = all.filter { $0.segment > group.segment }
    #expect(try groups(tail, through: 40) == rest)
    #expect(tail.missedGroups == rest[0].number - group.number && tail.damagedGroups == 0)
  }
}
