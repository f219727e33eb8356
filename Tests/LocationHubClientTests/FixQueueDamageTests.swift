// The driver's queue on a disk that does not let it be read, or has damaged it.
import HubGeo
import HubMessages
import Testing

@testable import LocationHubClient

@Suite struct FixQueueDamageTests {
  private let disk = QueueDisk()

  private func queue() throws -> FixQueue { try FixQueue(QueueFiles(disk)) }

  private func fix(_ second: Int) -> Fix {
    Fix(
      coordinate: Coordinate(latitude: 48 + Double(second) / 1e5, longitude: 11)!,
      timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(second) * 1000), accuracy: 5, speed: 12.5)
  }

  private func seconds(_ entries: [(number: UInt64, record: FixRecord)]) -> [Int] {
    entries.map { Int(($0.record.time.milliseconds - 1_763_680_000_000) / 1000) }
  }

  /// A queue's file of ten fixes.
  private func tenFixes(of owner: Identifier? = nil) throws -> (name: String, bytes: [UInt8], record: Int) {
    let queue = try queue()
    if let owner { queue.belongs(to: owner) }
    for second in 0..<10 { _ = queue.append(.fix(fix(second), trip: nil)) }
    let name = try #require(disk.files.keys.first)
    let bytes = try #require(disk.files[name])
    return (name, bytes, (bytes.count - FixQueue.headBytes) / 10)
  }

  @Test("what the disk does not let be read is not passed over: it stays, and goes out before all else when it can be")
  func unread() throws {
    let queue = try queue()
    for second in 0..<3000 { _ = queue.append(.fix(fix(second), trip: nil)) }
    let files = disk.files.count
    #expect(seconds(queue.take(5)) == [0, 1, 2, 3, 4] && files > 1)
    disk.failsReads = true
    disk.room = 0
    _ = queue.append(.fix(fix(3000), trip: nil))
    #expect(queue.take(100).isEmpty && queue.readFailure == FileFailure(call: "pread", errno: 5))
    #expect(queue.oldest == nil && queue.unsent == 2996 && disk.files.count == files)
    queue.release(through: 5, fixes: 5)
    #expect(queue.fixes == 2996 && disk.files.count == files)
    disk.failsReads = false
    var taken: [Int] = []
    while queue.unsent > 0 { taken += seconds(queue.take(100)) }
    #expect(taken == Array(5...3000) && queue.readFailure == nil)
  }

  @Test("a file of which only the head could be written has lost nothing")
  func onlyHead() throws {
    disk.room = 0
    let queue = try queue()
    let count = FixQueue.maximumUnsaved + 10
    for second in 0..<count { _ = queue.append(.fix(fix(second), trip: nil)) }
    disk.room = FixQueue.headBytes
    _ = queue.append(.fix(fix(count), trip: nil))
    var taken = seconds(queue.take(1))
    disk.room = nil
    for _ in 0..<100 where queue.unsent > 0 { taken += seconds(queue.take(100)) }
    #expect(taken.last == count && taken.count + Int(queue.dropped) == count + 1)
  }

  @Test("where the oldest cannot be read, a full queue counts what gives way, and keeps moves")
  func fullAndUnread() throws {
    let queue = try queue()
    let move = TripStatusReport(tripID: "T1", status: .accepted, timestamp: fix(0).timestamp)
    _ = queue.append(.move(move, MessageID("m-1")!))
    disk.failsReads = true
    for second in 0..<25_000 { _ = queue.append(.fix(fix(second), trip: nil)) }
    #expect(queue.dropped > 0 && queue.fixes + Int(queue.dropped) == 25_000 && queue.moves.map(\.number) == [1])
    #expect(queue.fixes <= FixQueue.maximumFixes)
    disk.failsReads = false
    var fixes = 0
    while queue.unsent > 0 {
      let entries = queue.take(100)
      guard !entries.isEmpty else {
        queue.skipRest()
        break
      }
      if fixes == 0 { #expect(entries.first?.record.isFix == false) }
      fixes += entries.count { $0.record.isFix }
    }
    #expect(fixes == queue.fixes)
  }

  @Test("a whole record at the end with a wrong sum is damage, and so is what is no record's beginning")
  func tail() throws {
    let (name, whole, record) = try tenFixes()
    for offset in [whole.count - 1, whole.count - record + 4, whole.count - record + 20] {
      var bytes = whole
      bytes[offset] ^= 0x40
      disk.files = [name: bytes]
      let queue = try queue()
      #expect(try #require(queue.damage) == "\(name): \(record) bytes are unreadable")
      #expect(queue.fixes == 9 && seconds(queue.take(100)) == Array(0..<9))
    }
    disk.files = [name: whole + [UInt8](repeating: 0, count: 300)]
    #expect(try #require(try queue().damage).contains("300 bytes"))
    // The beginning of a record is what a cut leaves.
    disk.files = [name: whole + whole[FixQueue.headBytes..<FixQueue.headBytes + record - 1]]
    #expect(try queue().damage == nil && disk.files[name] == whole)
  }

  @Test("what is damaged while the app runs is counted and named, once, and all that is whole is sent")
  func whileRunning() throws {
    let queue = try queue()
    for second in 0..<10 { _ = queue.append(.fix(fix(second), trip: nil)) }
    let name = try #require(disk.files.keys.first)
    let record = (try #require(disk.files[name]).count - FixQueue.headBytes) / 10
    #expect(seconds(queue.take(3)) == [0, 1, 2])
    for number in [1, 5, 6] { disk.files[name]?[FixQueue.headBytes + number * record + record / 2] ^= 1 }
    #expect(seconds(queue.take(100)) == [3, 4, 7, 8, 9])
    // One of them had been sent already: it may have arrived.
    #expect(queue.dropped == 3 && queue.fixes == 7)
    #expect(queue.damage == "\(name): 3 fixes and 0 moves cannot be read any more")
    queue.rewind()
    #expect(seconds(queue.take(100)) == [0, 2, 3, 4, 7, 8, 9] && queue.dropped == 3)
    // Nothing is written any more into that file.
    _ = queue.append(.fix(fix(10), trip: nil))
    #expect(disk.files.count == 2 && seconds(queue.take(100)) == [10])
    queue.release(through: 11, fixes: 8)
    #expect(queue.isEmpty && queue.fixes == 0)
    #expect(try self.queue().dropped == 3)
  }

  @Test("a file that is cut off or gone while the app runs is counted and named, moves and all, and holds nobody up")
  func goneWhileRunning() throws {
    for isGone in [false, true] {
      disk.files = [:]
      let queue = try queue()
      for second in 0..<9 { _ = queue.append(.fix(fix(second), trip: nil)) }
      let move = TripStatusReport(tripID: "T1", status: .accepted, timestamp: fix(9).timestamp)
      _ = queue.append(.move(move, MessageID("m-1")!))
      let name = try #require(disk.files.keys.first)
      disk.files[name] = isGone ? nil : Array(try #require(disk.files[name]).prefix(FixQueue.headBytes + 20))
      #expect(queue.take(100).isEmpty && queue.readFailure == nil)
      #expect(queue.damage == "\(name): 9 fixes and 1 moves cannot be read any more")
      #expect(queue.dropped == 9 && queue.fixes == 0 && queue.moves.isEmpty && queue.isEmpty)
      _ = queue.append(.fix(fix(20), trip: nil))
      #expect(seconds(queue.take(100)) == [20] && queue.failure == nil)
    }
  }

  @Test("a damaged head is named, and numbers at the end of what 64 bits hold end nothing")
  func numbers() throws {
    let (name, whole, _) = try tenFixes()
    var bytes = whole
    bytes.replaceSubrange(8..<16, with: [UInt8](repeating: 0xFF, count: 8))
    disk.files = [name: bytes]
    let damaged = try queue()
    #expect(try #require(damaged.damage).contains("its head is damaged") && damaged.dropped == 0)
    #expect(damaged.fixes == 10)

    let head = SegmentHead(dropped: .max, owner: nil).bytes()
    disk.files = [name: head + whole.dropFirst(FixQueue.headBytes)]
    let full = try queue()
    disk.room = 0
    for second in 10..<20 + FixQueue.maximumUnsaved { _ = full.append(.fix(fix(second), trip: nil)) }
    #expect(full.damage == nil && full.dropped == .max)
    disk.room = nil

    disk.files = [
      "ffffffffffffffff.queue": whole, "fffffffffffffffe.queue": [],
      name: whole + StoredRecord.mark(.max - 1, dropped: 0).bytes(),
    ]
    let far = try queue()
    #expect(try #require(far.damage).contains("ffffffffffffffff.queue: no queue has so many entries"))
    #expect(far.fixes == 10 && far.append(.fix(fix(10), trip: nil)) == 11)
    #expect(seconds(far.take(100)) == Array(0...10))
  }

  @Test("a file longer than a queue's is named, read no further than one has bytes, and cut off there")
  func long() throws {
    let (name, whole, _) = try tenFixes()
    disk.files = [name: whole + [UInt8](repeating: 0, count: FixQueue.maximumBytes)]
    disk.maximumRead = 0
    let queue = try queue()
    #expect(try #require(queue.damage).contains("more than a file of a queue has") && queue.fixes == 10)
    #expect(seconds(queue.take(100)) == Array(0..<10) && queue.oldest == fix(0).timestamp)
    #expect(disk.maximumRead <= FixQueue.maximumSegmentBytes)
    #expect(disk.files[name]?.count == FixQueue.maximumSegmentBytes)
  }

  @Test("what damage has made nobody's is not the next driver's; what no hub has confirmed is")
  func owner() throws {
    let (name, whole, record) = try tenFixes(of: "D1")
    var bytes = whole
    bytes[17] ^= 1
    disk.files = [name: bytes]
    let unknown = try queue()
    #expect(unknown.fixes == 10)
    unknown.belongs(to: "D2")
    #expect(unknown.fixes == 0 && unknown.dropped == 10 && unknown.take(10).isEmpty)
    #expect(try #require(unknown.damage).contains("10 fixes and 0 moves of an unknown driver"))

    bytes = whole
    bytes[FixQueue.headBytes + record / 2] ^= 1
    disk.files = [name: bytes]
    let others = try queue()
    others.belongs(to: "D2")
    #expect(try #require(others.damage).contains("9 fixes and 0 moves of D1") && others.fixes == 0)
    disk.files = [name: bytes]
    let own = try queue()
    own.belongs(to: "D1")
    #expect(own.fixes == 9)

    disk.files = [:]
    let (fresh, free, _) = try tenFixes()
    bytes = free
    bytes[FixQueue.headBytes + record / 2] ^= 1
    disk.files = [fresh: bytes]
    let first = try queue()
    first.belongs(to: "D2")
    #expect(first.fixes == 9 && seconds(first.take(100)) == Array(1..<10))
    // That it is this driver's now is in the head.
    let next = try queue()
    next.belongs(to: "D3")
    #expect(next.fixes == 0 && next.dropped == 9)
  }

  @Test("of a time that no hub takes nothing is written")
  func times() throws {
    let queue = try queue()
    for time in [Int64.min, -1, 0, 946_684_799_999, 253_402_300_800_000, .max] {
      var early = fix(0)
      early.timestamp = Timestamp(milliseconds: time)
      #expect(queue.append(.fix(early, trip: nil)) == nil)
    }
    #expect(queue.isEmpty && disk.files.isEmpty)
  }

  @Test("a queue that was closed keeps what comes, and reads what another client has left meanwhile")
  func reopened() throws {
    let queue = try queue()
    for second in 0..<3 { _ = queue.append(.fix(fix(second), trip: nil)) }
    queue.close()
    let other = try self.queue()
    #expect(other.fixes == 3)
    _ = other.take(2)
    other.release(through: 2, fixes: 2)
    _ = other.append(.fix(fix(3), trip: nil))
    other.close()
    _ = queue.append(.fix(fix(4), trip: nil))
    #expect(queue.isOpen && queue.fixes == 3 && seconds(queue.take(10)) == [2, 3, 4])
  }
}
