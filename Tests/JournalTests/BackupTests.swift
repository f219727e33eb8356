// A copy of a journal, made while it grows, is summarised and forgotten: a start from it finds what was stored when the
// copy began.
import Glibc
import HubJournalSupport
import HubSystem
import HubTestSupport
import Testing

@testable import HubJournal

/// A disk on which something happens at each look.
private final class BusyDisk: JournalFiles {
  private let disk: SimulatedDisk
  private let happens: () throws(JournalError) -> Void

  init(_ disk: SimulatedDisk, _ happens: @escaping () throws(JournalError) -> Void) {
    (self.disk, self.happens) = (disk, happens)
  }

  private func live() throws(SystemError) {
    do throws(JournalError) { try happens() } catch { throw SystemError(call: "append", errno: 5) }
  }

  var path: String { disk.path }
  var isAtPath: Bool { true }
  func freeBytes() -> UInt64? { nil }
  func names() throws(SystemError) -> [String] { try disk.names() }
  func about(_ name: String) throws(SystemError) -> JournalFileFacts? { try disk.about(name) }
  func read(_ name: String) throws(SystemError) -> [UInt8] { try disk.read(name) }
  func openForReading(_ name: String) throws(SystemError) -> (any ReadableJournalFile)? {
    try live()
    return try disk.openForReading(name)
  }
  func open(_ name: String) throws(SystemError) -> any JournalFile { try disk.open(name) }
  func rename(_ name: String, to newName: String) throws(SystemError) { try disk.rename(name, to: newName) }
  func remove(_ name: String) throws(SystemError) { try disk.remove(name) }
  func synchronize() throws(SystemError) { try disk.synchronize() }
}

/// A journal's writer that several closures write with.
private final class Writing {
  var writer: JournalWriter
  var written: [UInt8] = []
  private var last: UInt64 = 0

  init(_ bench: Bench) throws(JournalError) {
    let recovered = try Recovery(files: bench.disk, limits: bench.limits).run(damage: .refuse) { _ in
    } group: { _, _ in
    }
    writer = recovered.takeWriter()
  }

  /// Writes a record, and now and then does what maintenance does.
  func live(_ bench: Bench, _ rule: RetentionRule, _ random: inout SplitMix64) throws(JournalError) {
    let payload = KeyedRecords.record(UInt8.random(in: 0...3, using: &random), [1, 2, 3])
    last = try writer.append(payload)
    written += payload
    guard Int.random(in: 0..<3, using: &random) == 0 else { return }
    writer.sealSegment()
    try bench.keep(through: last, rule)
  }
}

@Suite struct BackupTests {
  @Test("whatever the hub does while a copy is made, a start from the copy finds at least what was stored before it")
  func beside() throws {
    var snapshots = 0
    for seed in UInt64(0)..<150 {
      var random = SplitMix64(seed: seed)
      var bench = Bench()
      bench.limits.segmentBytes = Int.random(in: 80...300, using: &random)
      var rule = RetentionRule()
      rule.bytes = Int.random(in: 0...400, using: &random)
      let writing = try Writing(bench)
      for _ in 0..<Int.random(in: 0...8, using: &random) { try writing.live(bench, rule, &random) }
      let before = writing.written
      let copy = Bench(limits: bench.limits)
      let busy = BusyDisk(bench.disk) { [bench] () throws(JournalError) in
        if Int.random(in: 0..<2, using: &random) == 0 { try writing.live(bench, rule, &random) }
      }
      let backup = try JournalBackup.make(of: busy, in: copy.disk, limits: bench.limits)
      #expect(try copy.verify().damages == [], "seed \(seed)")
      let state = try copy.state()
      #expect(state.starts(with: before) && writing.written.starts(with: state), "seed \(seed)")
      #expect(state.count == 8 * Int(backup.lastGroup), "seed \(seed)")
      if copy.disk.files.keys.contains(where: { $0.hasSuffix(".snapshot") }) { snapshots += 1 }
      // It continues from there, in an epoch of its own, since the original uses the same numbers.
      let started = try copy.open { writer in _ = try writer.append(KeyedRecords.record(9, [9])) }
      #expect(started.report.startsAnew && started.report.loss == nil, "seed \(seed)")
    }
    #expect(snapshots > 50)
  }

  @Test("damage and gaps that the copied snapshot covers are in the copy, too, from which a start finds the same state")
  func history() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 120
    try bench.open { writer in
      for step in UInt8(1)...9 { _ = try writer.append(KeyedRecords.record(step, [step])) }
      writer.sealSegment()
    }
    try bench.keep(through: 9, RetentionRule())
    try bench.open { writer in for step in UInt8(10)...11 { _ = try writer.append(KeyedRecords.record(step, [step])) } }
    let state = try bench.state()
    let names = bench.disk.files.keys.filter { FileHeader.group(ofName: $0, .segment) != nil }.sorted()
    bench.disk.spoil(names[0], FileHeader.size + 5, 1)
    bench.disk.files[names[1]] = nil
    let copy = Bench(limits: bench.limits)
    let backup = try JournalBackup.make(of: bench.disk, in: copy.disk, limits: bench.limits)
    #expect(try backup.lastGroup == 11 && copy.state() == state)
    #expect(copy.disk.files[names[0]]?.bytes == bench.disk.files[names[0]]?.bytes)
    // What a start reads must be whole.
    let last = try #require(names.last)
    bench.disk.spoil(last, FileHeader.size + 5, 1)
    #expect(throws: JournalError.damaged(Damage(kind: .group, file: last, offset: FileHeader.size, group: 10))) {
      _ = try JournalBackup.make(of: bench.disk, in: SimulatedDisk(), limits: bench.limits)
    }
  }

  @Test("Where a file that was seen is gone each time that it is opened, a copy gives up after 100 looks")
  func restless() {
    let disk = SimulatedDisk()
    var looks: UInt64 = 0
    disk.files[FileHeader.name(.segment, 1)] = SimulatedDisk.Content()
    let restless = BusyDisk(disk) { () throws(JournalError) in
      looks += 1
      disk.files = [FileHeader.name(.segment, looks + 1): SimulatedDisk.Content()]
    }
    #expect(throws: JournalError.system(SystemError(call: "openat", errno: ENOENT), file: disk.path)) {
      _ = try JournalBackup.make(of: restless, in: SimulatedDisk(), limits: JournalLimits())
    }
    #expect(looks == UInt64(JournalLimits.looksAtDirectory) && looks == 100)
  }

  @Test("damage is refused with its file and offset, and a full disk ends the copy at whatever byte")
  func refusals() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 120
    try bench.open { writer in
      for step in UInt8(1)...9 { _ = try writer.append(KeyedRecords.record(step, [step])) }
      writer.sealSegment()
    }
    let whole = SimulatedDisk()
    let backup = try JournalBackup.make(of: bench.disk, in: whole, limits: bench.limits)
    #expect(backup.lastGroup == 9 && backup.bytes == whole.files.values.reduce(0) { $0 + $1.bytes.count })
    for room in stride(from: 0, to: backup.bytes, by: 7) {
      let full = SimulatedDisk()
      full.room = room
      #expect(throws: JournalError.self) {
        _ = try JournalBackup.make(of: bench.disk, in: full, limits: bench.limits)
      }
    }
    let names = bench.disk.files.keys.sorted()
    bench.disk.spoil(names[0], FileHeader.size + 5, 1)
    #expect(
      throws: JournalError.damaged(Damage(kind: .group, file: names[0], offset: FileHeader.size, group: 1))
    ) { _ = try JournalBackup.make(of: bench.disk, in: SimulatedDisk(), limits: bench.limits) }
    bench.disk.spoil(names[0], FileHeader.size + 5, 1)
    bench.disk.files[names[1]] = nil
    #expect(throws: JournalError.self) {
      _ = try JournalBackup.make(of: bench.disk, in: SimulatedDisk(), limits: bench.limits)
    }
  }
}
