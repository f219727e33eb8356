import Glibc
import HubJournalSupport
import HubSystem
import HubTestSupport
import Testing

@testable import HubJournal

/// Records of these tests: a length of 4 bytes, a key, and bytes.
enum KeyedRecords {
  static func record(_ key: UInt8, _ rest: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(littleEndian: UInt32(rest.count + 1))
    return bytes + [key] + rest
  }

  /// A record has its key, and the key 1000 with all others.
  static let keys: RecordKeys = { payload, note in
    var offset = 0
    while offset + 5 <= payload.count {
      note(UInt64(payload[offset + 4]), offset)
      note(1000, offset)
      offset += 4 + Int(payload.number(at: offset, UInt32.self))
    }
  }
}

extension JournalHistory {
  func records(_ key: UInt64, since: Int64 = .min) throws(JournalError) -> [[UInt8]] {
    var found: [[UInt8]] = []
    try forEachRecord(key: key, since: since) {
      found.append(Array($0))
      return true
    }
    return found
  }
}

@Suite struct HistoryTests {
  private func history(_ bench: Bench, keepsIndexes: Bool = true) -> JournalHistory {
    JournalHistory(files: bench.disk, limits: bench.limits, keepsIndexes: keepsIndexes, keys: KeyedRecords.keys)
  }

  private func isIndex(_ name: String) -> Bool { FileHeader.group(ofName: name, .index) != nil }

  /// A group of random records; each is added to `model` under its key.
  private func group(_ random: inout SplitMix64, _ model: inout [UInt64: [[UInt8]]]) -> [UInt8] {
    var payload: [UInt8] = []
    for _ in 0..<Int.random(in: 0...6, using: &random) {
      let key = UInt8.random(in: 0...12, using: &random)
      let rest = (0..<Int.random(in: 0...20, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      let record = KeyedRecords.record(key, rest)
      model[UInt64(key), default: []].append(record)
      model[1000, default: []].append(record)
      payload += record
    }
    return payload
  }

  @Test("Each key gives its records, oldest first, as a model has them, while the journal grows")
  func bruteForce() throws {
    for seed in 0..<40 {
      var random = SplitMix64(seed: UInt64(seed))
      var bench = Bench()
      bench.limits.segmentBytes = Int.random(in: 100...60_000, using: &random)
      var model: [UInt64: [[UInt8]]] = [:]
      let history = history(bench, keepsIndexes: seed % 4 != 0)
      try bench.open { writer in
        for step in 0..<300 {
          _ = try writer.append(group(&random, &model))
          guard step % 37 == 0 || step == 299 else { continue }
          for key in Array(0...13) + [1000] {
            #expect(try history.records(UInt64(key)) == model[UInt64(key)] ?? [], "seed \(seed) key \(key)")
          }
        }
      }
      // A reader that comes later finds the same.
      let late = self.history(bench)
      for key in Array(0...13) + [1000] { #expect(try late.records(UInt64(key)) == model[UInt64(key)] ?? []) }
      let segments = bench.disk.files.keys.filter { FileHeader.group(ofName: $0, .segment) != nil }
      #expect(bench.disk.files.keys.filter(isIndex).count == segments.count - 1)
      #expect(bench.disk.files.keys.allSatisfy { !$0.contains("+") })
    }
  }

  @Test("Nothing is asked for after the body has had enough")
  func stopping() throws {
    let bench = Bench()
    try bench.open { writer in for step in UInt8(0)..<9 { _ = try writer.append(KeyedRecords.record(1, [step])) } }
    var found: [UInt8] = []
    try history(bench).forEachRecord(key: 1) {
      found.append($0[5])
      return found.count < 3
    }
    #expect(found == [0, 1, 2])
  }

  @Test("Segments that were wholly written before the time asked for are passed over, and no newer record is missed")
  func since() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 120
    try bench.open { writer in
      for time in 0..<60 {
        _ = try KeyedRecords.record(1, [UInt8(time)]).withBytes { (bytes) throws(JournalError) in
          try writer.append(bytes, created: Int64(time) * 1000)
        }
      }
    }
    let history = history(bench)
    for time in 0..<60 {
      let found = try history.records(1, since: Int64(time) * 1000).map { Int($0[5]) }
      #expect(found.last == 59 && found.first! <= time)
      #expect(found.first! >= time - 5, "segments of 4 records")
    }
    #expect(try history.records(1, since: 1_000_000).count < 5)
  }

  @Test("A clock that ran ahead and was set back hides nothing that was written meanwhile")
  func sinceSetBackClock() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 120
    // Ahead for 30 records.
    let times = (0..<60).map { Int64($0 < 30 ? 1000 + $0 : $0) * 1000 }
    try bench.open { writer in
      for (number, time) in times.enumerated() {
        _ = try KeyedRecords.record(1, [UInt8(number)]).withBytes { (bytes) throws(JournalError) in
          try writer.append(bytes, created: time)
        }
      }
    }
    let history = history(bench)
    for number in 0..<30 {
      let found = try history.records(1, since: times[number]).map { Int($0[5]) }
      #expect(Set(found).isSuperset(of: number..<30))
      var groups: [UInt8] = []
      try forEachGroup(of: bench.disk, limits: bench.limits, since: times[number]) { _, payload in
        groups.append(payload[5])
        return true
      }
      #expect(groups.map(Int.init) == found)
    }
  }

  @Test("An index that is missing, cut, changed in any bit, or of another segment is made again and never believed")
  func brokenIndexes() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 9000
    var random = SplitMix64(seed: 3)
    var model: [UInt64: [[UInt8]]] = [:]
    try bench.open { writer in for _ in 0..<400 { _ = try writer.append(group(&random, &model)) } }
    let first = history(bench)
    #expect(try first.indexFullSegments() > 0)
    #expect(try first.indexFullSegments() == 0)
    let indexes = bench.disk.files.keys.filter(isIndex).sorted()
    let other = bench.disk.files[indexes[1]]!.bytes
    let good = bench.disk.files[indexes[0]]!.bytes
    let size = FileHeader.size + SegmentIndex.aboutSize
    #expect(good.count > size + SegmentIndex.blockSize)
    var broken: [[UInt8]] = [[], other, Array(good.dropLast()), good + [0]]
    for offset in Array(0..<size + 40) + [size + 4092, good.count - 1] {
      var bytes = good
      bytes[offset] ^= 1 << UInt8(offset % 8)
      broken.append(bytes)
    }
    // Two blocks are swapped.
    let one = size..<size + SegmentIndex.blockSize
    let two = one.upperBound..<one.upperBound + SegmentIndex.blockSize
    broken.append(Array(good[..<size] + good[two] + good[one] + good[two.upperBound...]))
    for bytes in broken {
      bench.disk.files[indexes[0]]!.bytes = bytes
      let history = history(bench)
      for key in [UInt64(1), 12, 1000] { #expect(try history.records(key) == model[key]!) }
    }
    bench.disk.files[indexes[0]] = nil
    #expect(try history(bench).records(5) == model[5]!)
    #expect(bench.disk.files[indexes[0]]!.bytes == good)
  }

  @Test("Of a damaged segment all that is whole before it is given, and all of the others; then the damage is thrown")
  func damage() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 200
    try bench.open { writer in for step in UInt8(0)..<40 { _ = try writer.append(KeyedRecords.record(1, [step])) } }
    let names = bench.disk.files.keys.sorted()
    let name = names[1]
    let first = Int(try #require(FileHeader.group(ofName: name, .segment)))
    let groupSize = GroupHeader.size + 6
    for keepsIndexes in [true, false] {
      let whole = bench.disk.files[name]!.bytes
      defer { bench.disk.files[name]!.bytes = whole }
      bench.disk.files[name]!.bytes[FileHeader.size + 2 * groupSize + 18] ^= 1
      let history = history(bench, keepsIndexes: keepsIndexes)
      for _ in 0..<2 {
        var found: [Int] = []
        let expected = Damage(
          kind: .group, file: name, offset: FileHeader.size + 2 * groupSize, group: UInt64(first + 2))
        #expect(throws: JournalError.damaged(expected)) {
          try history.forEachRecord(key: 1) {
            found.append(Int($0[5]))
            return true
          }
        }
        let after = Int(try #require(FileHeader.group(ofName: names[2], .segment)))
        #expect(found == Array(0..<first + 1) + Array(after - 1..<40))
      }
    }
    // Damage that comes after the index was made.
    let late = history(bench)
    _ = try late.indexFullSegments()
    bench.disk.files[names[0]]!.bytes[FileHeader.size + groupSize + 18] ^= 1
    #expect(throws: JournalError.self) { _ = try late.records(1) }
    // A header that makes no sense.
    bench.disk.files[names[0]]!.bytes[3] ^= 1
    #expect(throws: JournalError.damaged(Damage(kind: .header, file: names[0], offset: 0, group: 1))) {
      _ = try late.records(1)
    }
  }

  @Test("Segments that go meanwhile are passed over; a write that is under way is not read, and is when it is whole")
  func moving() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 200
    try bench.open { writer in for step in UInt8(0)..<40 { _ = try writer.append(KeyedRecords.record(1, [step])) } }
    let names = bench.disk.files.keys.sorted()
    let history = history(bench)
    #expect(try history.records(1).count == 40)
    bench.disk.files[names[0]] = nil
    let left = 40 - Int(try #require(FileHeader.group(ofName: names[1], .segment))) + 1
    #expect(try history.records(1).count == left)
    let last = bench.disk.files[names.last!]!
    let whole = last.bytes
    for cut in [1, 7, 21] {
      last.bytes = Array(whole.dropLast(cut))
      let reader = self.history(bench)
      #expect(try reader.records(1).count == left - 1)
      last.bytes = whole
      #expect(try reader.records(1).count == left)
    }
  }

  @Test("A disk without room for an index is answered from all the same")
  func noRoom() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 200
    try bench.open { writer in for step in UInt8(0)..<40 { _ = try writer.append(KeyedRecords.record(1, [step])) } }
    bench.disk.room = 30
    let history = history(bench)
    #expect(try history.records(1).count == 40 && history.indexesNotStored > 0)
    #expect(bench.disk.files.keys.allSatisfy { FileHeader.group(ofName: $0, .segment) != nil })
  }
}
