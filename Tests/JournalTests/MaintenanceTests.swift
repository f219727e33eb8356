import Glibc
import HubJournalSupport
import HubSystem
import HubTestSupport
import Testing

@testable import HubJournal

/// The state of these journals is the row of all payloads' bytes; a snapshot is that row.
extension Bench {
  /// What maintenance does: a snapshot up to `last`, where a segment ends, indexes, and the end of what is too old.
  func keep(through last: UInt64, _ rule: RetentionRule, now: Int64 = 0) throws(JournalError) {
    var state: [UInt8] = []
    let report = try Recovery(files: disk, limits: limits).read(through: last) { part in
      state += part
    } group: { _, payload in
      state += payload
    }
    if last > 0, report.snapshot != last {
      var snapshot = try SnapshotWriter(files: disk, limits: limits, through: last, created: now)
      if !state.isEmpty { try state.withBytes { (bytes) throws(JournalError) in try snapshot.write(bytes) } }
      try snapshot.finish()
    }
    let history = JournalHistory(files: disk, limits: limits, keepsIndexes: true, keys: KeyedRecords.keys)
    _ = try history.indexFullSegments()
    _ = try JournalInventory(disk, limits: limits).apply(rule, limits: limits, now: now, in: disk)
  }

  /// What a start reads, as one row.
  func state() throws -> [UInt8] {
    let found = try open()
    return found.parts.flatMap(\.self) + found.groups.sorted { $0.key < $1.key }.flatMap(\.value)
  }

  func verify() throws -> Verification {
    var verifier = Verifier(files: disk, limits: limits, keys: KeyedRecords.keys)
    return try verifier.run { _ in }
  }
}

@Suite struct MaintenanceTests {
  @Test("Whatever moment the power goes at while a journal is kept, a start reads the same, and nothing is damaged")
  func powerCuts() throws {
    for seed in 0..<120 {
      var random = SplitMix64(seed: UInt64(seed))
      var bench = Bench()
      bench.limits.segmentBytes = Int.random(in: 80...300, using: &random)
      var rule = RetentionRule()
      rule.bytes = Int.random(in: 0...600, using: &random)
      var expected: [UInt8] = []
      for _ in 0..<4 {
        var last: UInt64 = 0
        try bench.open { writer in
          for _ in 0..<Int.random(in: 1...12, using: &random) {
            let payload = KeyedRecords.record(UInt8.random(in: 0...3, using: &random), [1, 2, 3])
            last = try writer.append(payload)
            expected += payload
          }
          writer.sealSegment()
          bench.disk.callsUntilDeath = Int.random(in: 0...30, using: &random)
          do throws(JournalError) { try bench.keep(through: last, rule) } catch {
            guard case .system = error else { throw error }
          }
        }
        bench.disk.revive()
        bench.disk.cutPower(&random)
        #expect(try bench.state() == expected, "seed \(seed)")
        #expect(try bench.verify().damages == [], "seed \(seed)")
        #expect(bench.disk.files.keys.allSatisfy { !$0.contains("+") && !$0.hasSuffix(".new") })
      }
    }
  }

  @Test("A snapshot's reader may be beside the writer: it reads up to where a segment ends, and changes nothing")
  func beside() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 100
    try bench.open { writer in
      for step in UInt8(1)...5 { _ = try writer.append([step]) }
      writer.sealSegment()
      _ = try writer.append([6])
      let before = bench.disk.files.mapValues(\.bytes)
      var read: [UInt8] = []
      _ = try Recovery(files: bench.disk, limits: bench.limits).read(through: 5) { _ in
      } group: { _, payload in
        read += payload
      }
      #expect(read == [1, 2, 3, 4, 5] && bench.disk.files.mapValues(\.bytes) == before)
      #expect(throws: JournalError.self) {
        _ = try Recovery(files: bench.disk, limits: bench.limits).read(through: 9) { _ in
        } group: { _, _ in
        }
      }
    }
  }

  @Test("An index that was stored after its segment was deleted goes with the next upkeep, and no other")
  func strayIndex() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 100
    try bench.open { writer in for step in UInt8(1)...5 { _ = try writer.append(KeyedRecords.record(step, [step])) } }
    try bench.keep(through: 0, RetentionRule())
    let before = Set(bench.disk.files.keys)
    #expect(before.contains(FileHeader.name(.index, 1)))
    let stray = SimulatedDisk.Content()
    bench.disk.files[FileHeader.name(.index, 77)] = stray
    try bench.keep(through: 0, RetentionRule())
    #expect(Set(bench.disk.files.keys) == before)
  }

  @Test("A long snapshot is put on the disk piece by piece, so that the journal's own writes never wait for all of it")
  func pieces() throws {
    var bench = Bench()
    bench.limits.snapshotSyncBytes = 150
    var snapshot = try SnapshotWriter(files: bench.disk, limits: bench.limits, through: 1, created: 0)
    let part = [UInt8](repeating: 1, count: 100)
    for _ in 0..<10 { try part.withBytes { (bytes) throws(JournalError) in try snapshot.write(bytes) } }
    #expect(bench.disk.syncs == 5)
    try snapshot.finish()
    #expect(bench.disk.syncs == 6)
  }

  @Test("Damage in a segment that a snapshot holds does not stop a start, and verify reports its position")
  func oldDamage() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 200
    try bench.open { writer in
      for step in UInt8(1)...20 { _ = try writer.append(KeyedRecords.record(step, [step])) }
      writer.sealSegment()
    }
    try bench.keep(through: 20, RetentionRule())
    try bench.open { writer in _ = try writer.append(KeyedRecords.record(1, [21])) }
    let state = try bench.state()
    let names = bench.disk.files.keys.filter { FileHeader.group(ofName: $0, .segment) != nil }.sorted()
    #expect(try bench.verify().damages == [])
    bench.disk.files[names[0]]!.bytes[FileHeader.size + 5] ^= 1
    #expect(try bench.state() == state)
    let damage = Damage(kind: .group, file: names[0], offset: FileHeader.size, group: 1)
    #expect(try bench.verify().damages == [damage])
    // A broken snapshot is reported, too; the start then needs the segments.
    let snapshot = FileHeader.name(.snapshot, 20)
    bench.disk.files[snapshot]!.bytes[40] ^= 1
    #expect(try bench.verify().damages.map(\.kind).contains(.snapshot))
    #expect(throws: JournalError.damaged(damage)) { _ = try bench.state() }
  }

  @Test("verify finds each flipped bit of segments and snapshots, a gap, and a broken index; a torn tail is not damage")
  func verification() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 120
    try bench.open { writer in
      for step in UInt8(1)...9 { _ = try writer.append(KeyedRecords.record(step, [step])) }
      writer.sealSegment()
    }
    try bench.keep(through: 9, RetentionRule())
    try bench.open { writer in _ = try writer.append(KeyedRecords.record(1, [10])) }
    let good = try bench.verify()
    #expect(good.damages == [] && good.groups == 10 && good.snapshots == 1 && good.brokenIndexes == [])
    let names = bench.disk.files.keys.sorted()
    let segments = names.filter { FileHeader.group(ofName: $0, .segment) != nil }
    for name in names {
      let whole = bench.disk.files[name]!.bytes
      // Of an index, whose blocks are mostly empty, some.
      for offset in whole.indices where offset < 200 || offset % 101 == 0 {
        bench.disk.files[name]!.bytes = whole
        bench.disk.files[name]!.bytes[offset] ^= 8
        let found = try bench.verify()
        let isFound = found != good
        #expect(isFound, "\(name) byte \(offset)")
        if name == segments.last, offset >= FileHeader.size {
          #expect(found.unfinished != nil && found.damages == [])
        } else if name == segments.last {
          #expect(found.damages.map(\.kind) == [.header])
        }
        if FileHeader.group(ofName: name, .index) != nil { #expect(found.brokenIndexes == [name]) }
      }
      bench.disk.files[name]!.bytes = whole
    }
    bench.disk.files[segments[1]] = nil
    let next = try #require(FileHeader.group(ofName: segments[2], .segment))
    let first = try #require(FileHeader.group(ofName: segments[1], .segment))
    let gap = Damage(kind: .missing(through: next - 1), file: segments[2], offset: 0, group: first)
    #expect(try bench.verify().damages == [gap])
    bench.disk.files[segments[0]] = nil
    #expect(try bench.verify().damages == [], "what the snapshot holds may be gone from the front")
  }

  @Test("A payload that cannot be read ends the reading of all groups, and is named; otherwise all groups are read")
  func everyGroup() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 120
    try bench.open { writer in
      for step in 0..<20 {
        _ = try [UInt8(step)].withBytes { (bytes) throws(JournalError) in
          try writer.append(bytes, created: Int64(step) * 10)
        }
      }
    }
    var found: [UInt8] = []
    try forEachGroup(of: bench.disk, limits: bench.limits) { number, payload in
      #expect(number == UInt64(payload[0]) + 1)
      found.append(payload[0])
      return true
    }
    #expect(found == Array(0..<20))
    var late: [UInt8] = []
    try forEachGroup(of: bench.disk, limits: bench.limits, since: 100) { _, payload in
      late.append(payload[0])
      return true
    }
    #expect(late.first! <= 10 && late.first! > 0 && late.last == 19)
    #expect(throws: JournalError.self) {
      try forEachGroup(of: bench.disk, limits: bench.limits) { (number, _) throws(InvalidPayload) in
        if number == 3 { throw InvalidPayload("three") }
        return true
      }
    }
  }
}

@Suite struct RetentionTests {
  /// Segments of 10 groups and 100 bytes, one an hour, from group 1 and time 0 on.
  private func inventory(_ segments: Int, snapshots: [UInt64]) -> JournalInventory {
    JournalInventory(
      segments: (0..<segments).map {
        JournalInventory.Segment(
          name: "s\($0)", first: UInt64($0 * 10 + 1), created: Int64($0) * 3_600_000, bytes: 90, indexBytes: 10)
      },
      snapshots: snapshots.map {
        JournalInventory.Snapshot(name: "p\($0)", group: $0, created: 0, bytes: 100)
      })
  }

  private func rule(hours: Int64, bytes: Int = .max) -> RetentionRule {
    var rule = RetentionRule()
    rule.milliseconds = hours * 3_600_000
    rule.bytes = bytes
    return rule
  }

  private func gone(
    _ inventory: JournalInventory, _ rule: RetentionRule, broken: Set<String> = [], hour: Int64
  ) -> [String] {
    let surplus = inventory.surplus(rule, keeping: 2, broken: broken, now: hour * 3_600_000 + 1)
    return surplus.snapshots.map(\.name) + surplus.segments.map(\.name)
  }

  @Test(
    "A snapshot is due for a segment behind the newest one that is a quarter of the rule old, from an hour to a day")
  func ageOfSnapshots() {
    func isDue(_ snapshots: [UInt64], hours: Int64, at hour: Int64) -> Bool {
      inventory(3, snapshots: snapshots).needsSnapshot(
        rule(hours: hours), limits: JournalLimits(), now: hour * 3_600_000)
    }
    #expect(!isDue([10], hours: 8, at: 2) && isDue([10], hours: 8, at: 3), "the second one is behind it")
    #expect(!isDue([30], hours: 8, at: 3) && isDue([30], hours: 8, at: 4), "the newest may be")
    #expect(!isDue([], hours: 8, at: 1) && isDue([], hours: 8, at: 2))
    #expect(!isDue([], hours: 1, at: 0) && isDue([], hours: 1, at: 1))
    #expect(!isDue([], hours: 1000, at: 23) && isDue([], hours: 1000, at: 24))
    #expect(
      !JournalInventory(segments: [], snapshots: []).needsSnapshot(rule(hours: 1), limits: JournalLimits(), now: 0))
    #expect(JournalLimits().segmentAges.upperBound < RetentionClock.longestPause, "or it would count as a leap")
  }

  @Test("A segment goes when its newest group is too old, which is when the next one was begun")
  func age() {
    let inventory = inventory(6, snapshots: [50])
    #expect(gone(inventory, rule(hours: 5), hour: 5) == [])
    #expect(gone(inventory, rule(hours: 5), hour: 6) == ["s0"])
    #expect(gone(inventory, rule(hours: 5), hour: 8) == ["s0", "s1", "s2"])
    #expect(gone(inventory, rule(hours: 1), hour: 1000) == ["s0", "s1", "s2", "s3", "s4"], "the newest stays")
    var setBack = inventory
    setBack.segments[1].created = 0
    setBack.segments[0].created = 100 * 3_600_000
    #expect(gone(setBack, rule(hours: 5), hour: 104) == [], "the clock was set back: it may be younger")
  }

  @Test("Over the size the oldest go, and their indexes count")
  func size() {
    let inventory = inventory(6, snapshots: [50])
    #expect(gone(inventory, rule(hours: 1000, bytes: 700), hour: 6) == [])
    #expect(gone(inventory, rule(hours: 1000, bytes: 699), hour: 6) == ["s0"])
    #expect(gone(inventory, rule(hours: 1000, bytes: 500), hour: 6) == ["s0", "s1"])
    var odd = inventory
    odd.snapshots.append(JournalInventory.Snapshot(name: "p60", group: 60, created: 0, bytes: 1 << 40))
    #expect(gone(odd, rule(hours: 1000, bytes: 700), broken: ["p60"], hour: 6) == [])
  }

  @Test("Nothing goes that the older of the two snapshots that are kept does not hold, however old and large it is")
  func covered() {
    #expect(gone(inventory(6, snapshots: []), rule(hours: 1, bytes: 1), hour: 1000) == [])
    #expect(gone(inventory(6, snapshots: [20, 40]), rule(hours: 1, bytes: 1), hour: 1000) == ["s0", "s1"])
    #expect(
      gone(inventory(6, snapshots: [10, 20, 40]), rule(hours: 1, bytes: 1), hour: 1000) == ["p10", "s0", "s1"])
    #expect(gone(inventory(6, snapshots: [10, 20, 40]), rule(hours: 1000), hour: 1) == ["p10"])
    // A snapshot that is known to be broken holds nothing.
    #expect(
      gone(inventory(6, snapshots: [10, 20, 40]), rule(hours: 1), broken: ["p20"], hour: 1000) == ["s0"])
  }
}
