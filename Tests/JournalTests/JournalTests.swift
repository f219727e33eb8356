import Glibc
import HubJournalSupport
import HubSystem
import HubTestSupport
import Testing

@testable import HubJournal

/// A journal on a disk of the test's own.
struct Bench {
  let disk = SimulatedDisk()
  var limits = JournalLimits()

  /// What a start finds: the snapshot's parts, the groups, the report.
  struct Found: Equatable {
    var parts: [[UInt8]] = []
    var groups: [UInt64: [UInt8]] = [:]
    var report = RecoveryReport()
    var next: UInt64 = 0
  }

  /// Opens the journal; the writer continues from there, in `use`.
  @discardableResult
  func open(
    damage: DamagePolicy = .refuse, _ use: (inout JournalWriter) throws -> Void = { _ in }
  ) throws -> Found {
    var found = Found()
    var order: [UInt64] = []
    var recovered = try Recovery(files: disk, limits: limits).run(damage: damage) { part in
      found.parts.append(Array(part))
    } group: { number, payload in
      order.append(number)
      found.groups[number] = Array(payload)
    }
    #expect(zip(order, order.dropFirst()).allSatisfy { $0 + 1 == $1 })
    found.report = recovered.report
    found.next = recovered.writer.next
    try use(&recovered.writer)
    return found
  }
}

extension JournalWriter {
  mutating func append(_ payload: [UInt8]) throws(JournalError) -> UInt64 {
    try payload.withBytes { (bytes) throws(JournalError) in try append(bytes, created: 1_763_680_000_000) }
  }
}

@Suite struct CRC32CTests {
  @Test("The sums of RFC 3720 B.4")
  func vectors() {
    let crc = CRC32C()
    func sum(_ bytes: [UInt8]) -> UInt32 { bytes.withBytes { crc($0) } }
    #expect(sum([]) == 0)
    #expect(sum(Array("123456789".utf8)) == 0xE306_9283)
    #expect(sum([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
    #expect(sum([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
    #expect(sum(Array(0..<32)) == 0x46DD_794E)
    #expect(sum(Array((0..<32).reversed())) == 0x113F_DB5C)
  }

  @Test("A checksum continues where another ended, at every offset")
  func extension_() {
    let crc = CRC32C()
    let bytes = [UInt8]("The quick brown fox jumps over the lazy dog".utf8)
    let whole = bytes.withBytes { crc($0) }
    for cut in 0...bytes.count {
      let front = Array(bytes[..<cut]).withBytes { crc($0) }
      #expect(Array(bytes[cut...]).withBytes { crc.extend(front, $0) } == whole)
    }
  }
}

@Suite struct JournalTests {
  @Test("What was appended is found again, in order, over many segments")
  func roundTrip() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 300
    var written: [UInt64: [UInt8]] = [:]
    for round in 0..<5 {
      let found = try bench.open { writer in
        for step in 0..<10 {
          let payload = [UInt8](repeating: UInt8(round * 16 + step), count: step * 7)
          written[try writer.append(payload)] = payload
        }
      }
      #expect(found.next == UInt64(round * 10 + 1))
      #expect(found.report.tail == nil)
    }
    #expect(try bench.open().groups == written)
    #expect(bench.disk.files.count > 5)
  }

  @Test("A group larger than a segment gets one of its own")
  func largeGroup() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 100
    let large = [UInt8](repeating: 7, count: 1000)
    try bench.open { writer in for _ in 0..<3 { _ = try writer.append(large) } }
    #expect(try bench.open().groups == [1: large, 2: large, 3: large])
    #expect(bench.disk.files.count == 3)
  }

  @Test("A file cut at any byte loses the group that was cut, says so, and continues")
  func everyCut() throws {
    let whole = Bench()
    try whole.open { writer in for step in 1...4 { _ = try writer.append([UInt8](repeating: UInt8(step), count: 9)) } }
    let name = try #require(whole.disk.files.keys.first)
    let bytes = try whole.disk.read(name)
    let groupSize = GroupHeader.size + 9
    for cut in 0...bytes.count {
      let bench = Bench()
      let content = SimulatedDisk.Content()
      content.bytes = Array(bytes[..<cut])
      bench.disk.files[name] = content
      let kept = max(0, cut - FileHeader.size) / groupSize
      let found = try bench.open { writer in _ = try writer.append([99]) }
      #expect(found.groups.keys.sorted() == (0..<kept).map { UInt64($0 + 1) })
      let isClean = cut >= FileHeader.size && (cut - FileHeader.size) % groupSize == 0
      #expect((found.report.tail == nil) == isClean, "cut at \(cut)")
      let again = try bench.open()
      #expect(again.groups[UInt64(kept + 1)] == [99])
      #expect(again.report.tail == nil)
    }
  }

  /// The groups of a journal whose only group, with another one in its payload, was cut off.
  private func openCut(seed: (FileHeader) -> UInt32) throws -> Bench.Found {
    let bench = Bench()
    try bench.open { writer in _ = try writer.append([1]) }
    let name = try #require(bench.disk.files.keys.first)
    let header = try unsafe bench.disk.read(name).withUnsafeBytes { try unsafe FileHeader($0, CRC32C()) }
    var payload: [UInt8] = [7, 7, 7]
    unsafe [9].withUnsafeBytes { unsafe GroupHeader.encode(3, $0, CRC32C(), seed: seed(header), into: &payload) }
    try bench.open { writer in _ = try writer.append(payload + [7]) }
    bench.disk.files[name]?.bytes.removeLast()
    return try bench.open()
  }

  @Test("What a client sends does not pass for a group behind a write that was cut off")
  func forgedGroup() throws {
    let found = try openCut { _ in 0 }
    #expect(found.groups == [1: [1]])
    #expect(found.report.tail != nil)
    // Whoever knew the seed could do it.
    #expect(throws: JournalError.self) { try openCut(seed: \.seed) }
  }

  @Test("One flipped bit anywhere is refused as damage, or was in the last group; never a wrong record")
  func everyBit() throws {
    let whole = Bench()
    var payloads: [UInt64: [UInt8]] = [:]
    try whole.open { writer in
      for step in 1...3 {
        let payload = [UInt8](repeating: UInt8(step * 3), count: 5)
        payloads[try writer.append(payload)] = payload
      }
    }
    let name = try #require(whole.disk.files.keys.first)
    let bytes = try whole.disk.read(name)
    let lastGroup = bytes.count - GroupHeader.size - 5
    for bit in 0..<bytes.count * 8 {
      let bench = Bench()
      let content = SimulatedDisk.Content()
      content.bytes = bytes
      content.bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      bench.disk.files[name] = content
      do {
        let found = try bench.open()
        #expect(bit / 8 >= lastGroup, "bit \(bit) was not noticed")
        #expect(found.groups == payloads.filter { $0.key < 3 })
        #expect(found.report.tail?.offset == lastGroup)
      } catch JournalError.damaged(let damage) {
        #expect(bit / 8 < lastGroup, "bit \(bit)")
        #expect(damage.file == name)
      }
    }
  }

  @Test("A journal of an older format is refused, and says so")
  func olderFormat() throws {
    let bench = Bench()
    try bench.open { writer in _ = try writer.append([1, 2, 3]) }
    let name = try #require(bench.disk.files.keys.first)
    let header = FileHeader(kind: .segment, group: 1, created: 0).encoded(CRC32C(), version: FileHeader.version - 1)
    bench.disk.files[name]?.bytes.replaceSubrange(..<FileHeader.size, with: header)
    do {
      try bench.open()
      Issue.record("it was read")
    } catch JournalError.otherVersion(let version, let file) {
      #expect(version == FileHeader.version - 1 && file == name)
      let text = "\(JournalError.otherVersion(version, file: file))"
      #expect(text.contains("an older program wrote it, and this one reads only \(FileHeader.version)"))
    }
  }

  @Test("Damage in the middle is refused with its file and offset; accepted, what precedes it stays, the rest is moved")
  func damage() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 200
    try bench.open { writer in for step in 1...20 { _ = try writer.append([UInt8](repeating: UInt8(step), count: 20)) }
    }
    let names = bench.disk.files.keys.sorted()
    let second = try #require(names.dropFirst().first)
    let first = try #require(FileHeader.group(ofName: second, .segment))
    let content = try #require(bench.disk.files[second])
    let offset = FileHeader.size + GroupHeader.size + 20
    content.bytes[offset + GroupHeader.size + 3] ^= 0x10
    let before = bench.disk.files.mapValues(\.bytes)
    let expected = Damage(kind: .group, file: second, offset: offset, group: first + 1)
    #expect(throws: JournalError.damaged(expected)) { try bench.open() }
    #expect(bench.disk.files.mapValues(\.bytes) == before)

    let found = try bench.open(damage: .moveAside) { writer in _ = try writer.append([1, 2, 3]) }
    #expect(found.report.loss == expected)
    #expect(found.groups.keys.max() == first)
    #expect(found.next == first + 1)
    let again = try bench.open()
    #expect(again.groups[first + 1] == [1, 2, 3])
    // Nothing was deleted: each file that was there is there, under its name or aside.
    let aside = bench.disk.files.filter { $0.key.hasPrefix("damaged-") }.map(\.value.bytes)
    for (name, bytes) in before where name >= second { #expect(aside.contains(bytes)) }
  }

  @Test("A segment that is missing is damage, and so is one whose header is broken while groups stand in it")
  func missingSegment() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 200
    try bench.open { writer in for step in 1...20 { _ = try writer.append([UInt8](repeating: UInt8(step), count: 20)) }
    }
    let names = bench.disk.files.keys.sorted()
    let kept = bench.disk.files
    bench.disk.files[names[1]] = nil
    let lost = try #require(FileHeader.group(ofName: names[1], .segment))
    let next = try #require(FileHeader.group(ofName: names[2], .segment))
    #expect(
      throws: JournalError.damaged(
        Damage(kind: .missing(through: next - 1), file: names[2], offset: 0, group: lost))
    ) { try bench.open() }
    bench.disk.files = kept
    let last = try #require(bench.disk.files[names.last!])
    last.bytes[3] ^= 1
    #expect(throws: JournalError.self) { try bench.open() }
  }

  @Test("A full disk takes the group back, and the same group is stored when there is room")
  func fullDisk() throws {
    let bench = Bench()
    let payload = [UInt8](repeating: 5, count: 100)
    try bench.open { writer in
      let first = try writer.append(payload)
      #expect(first == 1)
      for room in 0..<100 {
        bench.disk.room = room
        do throws(JournalError) {
          _ = try writer.append(payload)
          Issue.record("stored without room")
        } catch {
          let file = "\(bench.disk.path)/\(bench.disk.files.keys.first!)"
          #expect(error == .full(SystemError(call: "write", errno: ENOSPC), file: file))
        }
      }
      bench.disk.room = .max
      let number = try writer.append(payload)
      #expect(number == 2)
    }
    let found = try bench.open()
    #expect(found.groups == [1: payload, 2: payload])
    #expect(found.report.tail == nil)
  }

  @Test("A full disk when a segment is begun is passing trouble too")
  func fullDiskAtRotation() throws {
    let payload = [UInt8](repeating: 5, count: 100)
    for room in 0..<(FileHeader.size + GroupHeader.size + 100) {
      var bench = Bench()
      bench.limits.segmentBytes = 150
      try bench.open { writer in
        _ = try writer.append(payload)
        bench.disk.room = room
        do throws(JournalError) {
          _ = try writer.append(payload)
          Issue.record("stored without room")
        } catch {
          guard case .full = error else { throw error }
        }
        bench.disk.room = .max
        let number = try writer.append(payload)
        #expect(number == 2)
      }
      #expect(try bench.open().groups == [1: payload, 2: payload])
    }
  }

  @Test(
    "Where no file can be opened for a new segment, the same group is stored once one can",
    arguments: [EMFILE, ENFILE, ENOMEM])
  func noDescriptors(error: Int32) throws {
    var bench = Bench()
    bench.limits.segmentBytes = 150
    let payload = [UInt8](repeating: 5, count: 100)
    try bench.open { writer in
      _ = try writer.append(payload)
      bench.disk.openError = error
      let full = JournalError.full(
        SystemError(call: "openat", errno: error), file: "\(bench.disk.path)/\(FileHeader.name(.segment, 2))")
      for _ in 0..<2 { #expect(throws: full) { _ = try writer.append(payload) } }
      bench.disk.openError = nil
      let number = try writer.append(payload)
      #expect(number == 2)
    }
    #expect(try bench.open().groups == [1: payload, 2: payload])
  }

  @Test("After an fdatasync that failed nothing is written any more")
  func failedSync() throws {
    let bench = Bench()
    try bench.open { writer in
      _ = try writer.append([1])
      bench.disk.syncsUntilFailure = 0
      #expect(throws: JournalError.self) { _ = try writer.append([2]) }
      bench.disk.syncsUntilFailure = nil
      let before = bench.disk.files.mapValues(\.bytes)
      #expect(throws: JournalError.stopped) { _ = try writer.append([3]) }
      #expect(bench.disk.files.mapValues(\.bytes) == before)
    }
  }

  @Test("Whatever a power cut leaves, each group that was reported as stored is there, and at most one more")
  func powerCuts() throws {
    for seed in 0..<2000 {
      var random = SplitMix64(seed: UInt64(seed))
      var bench = Bench()
      bench.limits.segmentBytes = Int.random(in: 64...400, using: &random)
      // What was acknowledged, and what was being written when the power failed.
      var stored: [[UInt8]] = []
      var attempted: [UInt8]?
      for _ in 0..<Int.random(in: 2...4, using: &random) {
        let steps = Int.random(in: 0...12, using: &random)
        var written: [[UInt8]] = []
        var failed: [UInt8]?
        let found = try bench.open { writer in
          for step in 0..<steps {
            let count = Int.random(in: 0...60, using: &random)
            let payload = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            if step == steps - 1 { bench.disk.syncsUntilFailure = Int.random(in: 0...2, using: &random) }
            do {
              _ = try writer.append(payload)
              written.append(payload)
            } catch {
              failed = payload
              return
            }
          }
        }
        let groups = found.groups.sorted { $0.key < $1.key }.map(\.value)
        #expect(groups == stored || groups == stored + [attempted].compactMap(\.self), "seed \(seed)")
        stored = groups + written
        attempted = failed
        bench.disk.syncsUntilFailure = nil
        bench.disk.cutPower(&random)
      }
    }
  }

  @Test("A payload that makes no sense to its reader is damage")
  func invalidPayload() throws {
    let bench = Bench()
    try bench.open { writer in for step in 1...3 { _ = try writer.append([UInt8(step)]) } }
    let name = bench.disk.files.keys.first!
    let offset = FileHeader.size + GroupHeader.size + 1
    #expect(
      throws: JournalError.damaged(Damage(kind: .meaning("two"), file: name, offset: offset, group: 2))
    ) {
      _ = try Recovery(files: bench.disk, limits: bench.limits).run(damage: .refuse) { _ in
      } group: { (number, _) throws(InvalidPayload) in
        if number == 2 { throw InvalidPayload("two") }
      }
    }
  }

  @Test("Random bytes instead of a segment never crash, and never give a group")
  func noise() throws {
    var random = SplitMix64(seed: 11)
    for _ in 0..<2000 {
      let bench = Bench()
      let content = SimulatedDisk.Content()
      content.bytes = (0..<Int.random(in: 0...200, using: &random)).map { _ in
        .random(in: .min ... .max, using: &random)
      }
      bench.disk.files[FileHeader.name(.segment, 1)] = content
      do { #expect(try bench.open().groups.isEmpty) } catch is JournalError {}
    }
  }
}
