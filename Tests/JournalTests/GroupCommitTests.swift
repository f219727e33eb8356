import Glibc
import HubJournalSupport
import HubSystem
import HubTestSupport
import Testing

@testable import HubJournal

@Suite struct GroupCommitTests {
  private func submit(_ commit: GroupCommit, _ bytes: [UInt8], _ ticket: UInt64) -> Bool {
    bytes.withBytes { commit.submit($0, ticket: ticket, isUrgent: true) }
  }

  /// Stores until the end.
  private func run(_ commit: GroupCommit, _ bench: Bench, onChange: () -> Void = {}) throws {
    try bench.open { writer in
      try commit.run(&writer) {
        1_763_680_000_000
      } onChange: {
        onChange()
      }
    }
  }

  @Test("Everything submitted before the end is stored, whole and in order, in groups of whole submissions")
  func order() throws {
    var bench = Bench()
    bench.limits.groupBytes = 64
    bench.limits.pendingBytes = 1 << 20
    let commit = GroupCommit(limits: bench.limits, lazyMilliseconds: 1)
    var random = SplitMix64(seed: 4)
    var submitted: [[UInt8]] = []
    for ticket in 1...500 {
      let bytes = [UInt8](repeating: UInt8(ticket % 251), count: Int.random(in: 1...64, using: &random))
      submitted.append(bytes)
      #expect(submit(commit, bytes, UInt64(ticket)))
    }
    commit.close()
    try run(commit, bench)
    #expect(commit.durableThrough == 500 && commit.currentCondition == .good)
    #expect(commit.counters.submissions == 500)
    let groups = try bench.open().groups.sorted { $0.key < $1.key }.map(\.value)
    #expect(groups.allSatisfy { $0.count <= 64 })
    #expect(Array(groups.joined()) == Array(submitted.joined()))
    // Each group ends where a submission ends.
    var ends: Set<Int> = []
    var sum = 0
    for bytes in submitted {
      sum += bytes.count
      ends.insert(sum)
    }
    sum = 0
    for group in groups {
      sum += group.count
      #expect(ends.contains(sum))
    }
  }

  @Test("What comes while the disk is busy shares a group")
  func sharing() throws {
    let bench = Bench()
    let commit = GroupCommit(limits: bench.limits, lazyMilliseconds: 1)
    for ticket in 1...100 { #expect(submit(commit, [1, 2, 3], UInt64(ticket))) }
    commit.close()
    try run(commit, bench)
    #expect(commit.counters.groups == 1 && commit.counters.bytes == 300)
  }

  @Test("At the limit of what may wait nothing more is taken, and nothing that was taken is lost")
  func limit() throws {
    var bench = Bench()
    bench.limits.groupBytes = 40
    bench.limits.pendingBytes = 100
    let commit = GroupCommit(limits: bench.limits, lazyMilliseconds: 1)
    let bytes = [UInt8](repeating: 9, count: 40)
    #expect(submit(commit, bytes, 1) && submit(commit, bytes, 2))
    #expect(!submit(commit, bytes, 3))
    commit.close()
    #expect(!submit(commit, [1], 4))
    try run(commit, bench)
    #expect(commit.durableThrough == 2)
  }

  @Test("After a failed fdatasync nothing counts as stored, nothing more is taken, and it is reported")
  func failure() throws {
    let bench = Bench()
    let commit = GroupCommit(limits: bench.limits, lazyMilliseconds: 1)
    #expect(submit(commit, [1], 1))
    bench.disk.syncsUntilFailure = 1  // the segment's header; the group's fails
    var calls = 0
    #expect(throws: JournalError.self) { try run(commit, bench) { calls += 1 } }
    #expect(commit.durableThrough == 0 && commit.currentCondition == .stopped && calls == 1)
    #expect(!submit(commit, [2], 2))
  }

  @Test("A full disk is tried again, and continues by itself")
  func full() throws {
    let bench = Bench()
    let disk = bench.disk
    let commit = GroupCommit(limits: bench.limits, lazyMilliseconds: 1, fullRetryMilliseconds: 1)
    disk.room = 10
    #expect(submit(commit, [1, 2, 3], 1))
    try run(commit, bench) {
      if commit.currentCondition == .full { disk.room = .max } else { commit.close() }
    }
    #expect(commit.durableThrough == 1 && commit.currentCondition == .good && commit.counters.timesFull == 1)
    #expect(try bench.open().groups == [1: [1, 2, 3]])
  }

  @Test("On a real disk: each ticket that counts as stored is found again")
  func onDisk() throws {
    let path = "/tmp/journal-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    defer { removeDirectory(path) }
    let limits = JournalLimits()
    let commit = GroupCommit(limits: limits)
    let thread = try startThread(name: "journal") { @Sendable in
      do {
        var recovered = try Recovery(files: try DiskFiles(path: path), limits: limits).run(damage: .refuse) { _ in
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
    for ticket in 1...2000 {
      #expect(submit(commit, [UInt8(ticket & 0xFF), UInt8(ticket >> 8)], UInt64(ticket)))
    }
    commit.close()
    thread.join()
    #expect(commit.durableThrough == 2000)
    let files = try DiskFiles(path: path)
    #expect(throws: JournalError.locked(directory: path)) { _ = try DiskFiles(path: path) }
    var bytes: [UInt8] = []
    _ = try Recovery(files: files, limits: limits).run(damage: .refuse) { _ in
    } group: { _, payload in
      bytes.append(contentsOf: payload)
    }
    let expected = (1...2000 as ClosedRange<Int>).flatMap { number -> [UInt8] in
      [UInt8(number & 0xFF), UInt8(number >> 8)]
    }
    #expect(bytes == expected)
  }

  private func removeDirectory(_ path: String) {
    do {
      let files = try DiskFiles(path: path)
      for name in try files.names() { try files.remove(name) }
      #expect(rmdir(path) == 0)
    } catch {
      Issue.record(error)
    }
  }
}
