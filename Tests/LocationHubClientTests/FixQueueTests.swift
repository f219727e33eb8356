// The driver's queue on a disk that does what disks do.
import Glibc
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import LocationHubClient

@Suite struct FixQueueTests {
  private let disk = QueueDisk()

  private func queue() throws -> FixQueue { try FixQueue(QueueFiles(disk)) }

  /// The fix of a second, where no two are alike.
  private func fix(_ second: Int) -> Fix {
    Fix(
      coordinate: Coordinate(latitude: 48 + Double(second) / 1e5, longitude: 11)!,
      timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(second) * 1000), accuracy: 5, heading: 90,
      speed: 12.5)
  }

  private func move(_ number: Int) -> FixRecord {
    let report = TripStatusReport(
      tripID: "T1", status: .accepted, timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(number)))
    return .move(report, MessageID("m-\(number)")!)
  }

  private func seconds(_ entries: [(number: UInt64, record: FixRecord)]) -> [Int] {
    entries.compactMap { entry in
      guard case .fix(let fix, _) = entry.record else { return nil }
      return Int((fix.timestamp.milliseconds - 1_763_680_000_000) / 1000)
    }
  }

  @Test("Fixes and moves come out as they went in, in order, and again after the app's death")
  func order() throws {
    let queue = try queue()
    for second in 0..<300 {
      _ = queue.append(.fix(fix(second), trip: second % 3 == 0 ? nil : "T1"))
      if second % 100 == 50 { _ = queue.append(move(second)) }
    }
    #expect(queue.fixes == 300 && queue.moves.count == 3)
    for source in [queue, try self.queue()] {
      #expect(source.fixes == 300 && source.moves.count == 3 && source.damage == nil)
      var taken: [(number: UInt64, record: FixRecord)] = []
      while source.unsent > 0 { taken += source.take(7) }
      #expect(seconds(taken) == Array(0..<300))
      #expect(taken.map(\.number) == Array(1...303))
      #expect(taken[51].record == move(50))
      #expect(taken[0].record == .fix(fix(0), trip: nil) && taken[1].record == .fix(fix(1), trip: "T1"))
      #expect(source.take(7).isEmpty)
    }
  }

  @Test("What has arrived is deleted by segments, and is not sent again after the app's death")
  func arrived() throws {
    let queue = try queue()
    for second in 0..<3000 { _ = queue.append(.fix(fix(second), trip: nil)) }
    let segments = disk.files.count
    #expect(segments >= 2 && queue.sync())
    queue.release(through: 2000, fixes: 2000)
    #expect(disk.files.count < segments && queue.fixes == 1000)
    #expect(queue.sync())
    let next = try self.queue()
    #expect(next.fixes == 1000)
    #expect(seconds(next.take(1)) == [2000])
    next.release(through: 3000, fixes: 1000)
    #expect(disk.files.isEmpty && next.isEmpty && next.fixes == 0)
    #expect(next.append(.fix(fix(1), trip: nil)) == 3001)
  }

  @Test("A torn tail is cut off, wherever the power went, and what is whole before it is sent")
  func torn() throws {
    let first = try queue()
    for second in 0..<10 { _ = first.append(.fix(fix(second), trip: nil)) }
    let name = try #require(disk.files.keys.first)
    let whole = try #require(disk.files[name])
    let record = (whole.count - FixQueue.headBytes) / 10
    for cut in 1..<record {
      disk.files = [name: Array(whole.dropLast(cut))]
      let queue = try self.queue()
      #expect(queue.damage == nil && queue.fixes == 9)
      _ = queue.append(.fix(fix(10), trip: nil))
      #expect(seconds(queue.take(100)) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10])
    }
  }

  @Test("A damaged byte is named, and every other fix is sent", arguments: [1, 2, 3] as [UInt64])
  func damaged(seed: UInt64) throws {
    let first = try queue()
    for second in 0..<50 { _ = first.append(.fix(fix(second), trip: nil)) }
    let name = try #require(disk.files.keys.first)
    let whole = try #require(disk.files[name])
    let record = (whole.count - FixQueue.headBytes) / 50
    var random = SplitMix64(seed: seed)
    for _ in 0..<50 {
      let at = FixQueue.headBytes + Int(random.next() % UInt64(49 * record))
      var bytes = whole
      bytes[at] ^= UInt8(1 + random.next() % 255)
      disk.files = [name: bytes]
      let queue = try self.queue()
      #expect(try #require(queue.damage).contains(name))
      let lost = (at - FixQueue.headBytes) / record
      #expect(queue.fixes == 49)
      #expect(seconds(queue.take(100)) == Array(0..<50).filter { $0 != lost })
      // What comes now goes into a segment of its own.
      _ = queue.append(.fix(fix(50), trip: nil))
      #expect(seconds(queue.take(100)) == [50])
    }
  }

  @Test("At 20,000 fixes the oldest segment's go and are counted, over the app's death; moves stay, in their order")
  func limit() throws {
    let queue = try queue()
    for second in 0..<25_000 {
      _ = queue.append(.fix(fix(second), trip: nil))
      if second % 1000 == 0 { _ = queue.append(move(second)) }
    }
    #expect(queue.fixes <= FixQueue.maximumFixes && queue.fixes > FixQueue.maximumFixes - 2000)
    #expect(queue.bytes <= FixQueue.maximumBytes)
    #expect(queue.dropped == UInt64(25_000 - queue.fixes) && queue.moves.count == 25)
    for source in [queue, try self.queue()] {
      #expect(source.dropped == queue.dropped && source.fixes == queue.fixes)
      var taken: [(number: UInt64, record: FixRecord)] = []
      while source.unsent > 0 {
        let entries = source.take(100)
        try #require(!entries.isEmpty)
        taken += entries
      }
      #expect(seconds(taken) == Array(Int(queue.dropped)..<25_000))
      let moves = taken.filter { !$0.record.isFix }.map(\.record)
      #expect(moves == (0..<25).map { move($0 * 1000) })
    }
  }

  @Test("A queue of moves alone has a limit, too, and says so")
  func moves() throws {
    let queue = try queue()
    for number in 0..<FixQueue.maximumMoves { #expect(queue.append(move(number)) != nil) }
    #expect(queue.append(move(-1)) == nil)
    #expect(queue.append(.fix(fix(0), trip: nil)) != nil)
  }

  @Test("On a full disk fixes wait in memory, are sent from there, and are written when there is room")
  func full() throws {
    let queue = try queue()
    for second in 0..<5 { _ = queue.append(.fix(fix(second), trip: nil)) }
    // Half a record fits.
    disk.room = 30
    for second in 5..<20 { _ = queue.append(.fix(fix(second), trip: nil)) }
    #expect(queue.failure?.errno == 28 && !queue.sync() && queue.fixes == 20)
    #expect(seconds(queue.take(12)) == Array(0..<12))
    #expect(try self.queue().fixes == 5, "the app's death loses what the disk did not take")
    queue.release(through: 12, fixes: 12)
    disk.room = nil
    #expect(queue.sync() && queue.failure == nil && queue.fixes == 8)
    #expect(seconds(queue.take(100)) == Array(12..<20))
    let next = try self.queue()
    #expect(next.fixes == 8 && next.damage == nil)
    #expect(seconds(next.take(100)) == Array(12..<20))
  }

  @Test("Where a segment's first record is torn and cannot be cut off, what is written in its place is kept")
  func tornFirst() throws {
    let queue = try queue()
    (disk.room, disk.failsTruncates) = (FixQueue.headBytes + 10, true)
    _ = queue.append(.fix(fix(0), trip: nil))
    #expect(queue.failure != nil)
    (disk.room, disk.failsTruncates) = (nil, false)
    for second in 1..<4 { _ = queue.append(.fix(fix(second), trip: nil)) }
    #expect(queue.failure == nil && disk.files.count == 1)
    #expect(seconds(queue.take(1)) == [0])
    queue.release(through: 1, fixes: 1)
    #expect(disk.files.count == 1)
    #expect(seconds(queue.take(100)) == [1, 2, 3])
    #expect(queue.dropped == 0 && queue.damage == nil)
  }

  @Test("What waits in memory has a limit: the oldest fix goes, and is counted")
  func unsaved() throws {
    let queue = try queue()
    disk.room = 0
    for second in 0..<FixQueue.maximumUnsaved + 10 { _ = queue.append(.fix(fix(second), trip: nil)) }
    #expect(queue.dropped == 10 && queue.fixes == FixQueue.maximumUnsaved)
    #expect(seconds(queue.take(1)) == [10])
  }

  @Test("The power's loss costs what was not synced, and nothing else")
  func power() throws {
    let queue = try queue()
    for second in 0..<10 { _ = queue.append(.fix(fix(second), trip: nil)) }
    #expect(queue.sync() && queue.isSynced)
    for second in 10..<15 { _ = queue.append(.fix(fix(second), trip: nil)) }
    #expect(!queue.isSynced)
    disk.cutPower()
    #expect(seconds(try self.queue().take(100)) == Array(0..<10))
  }

  @Test("Rewinding sends again what has not arrived")
  func rewind() throws {
    let queue = try queue()
    for second in 0..<30 { _ = queue.append(.fix(fix(second), trip: nil)) }
    _ = queue.take(20)
    queue.release(through: 5, fixes: 5)
    queue.rewind()
    #expect(queue.unsent == 25)
    #expect(seconds(queue.take(100)) == Array(5..<30))
  }

  @Test("Erasing leaves nothing, and nothing is kept after it")
  func erase() throws {
    let queue = try queue()
    for second in 0..<2000 { _ = queue.append(.fix(fix(second), trip: nil)) }
    queue.erase()
    #expect(disk.files.isEmpty && queue.isEmpty && queue.fixes == 0)
    #expect(queue.append(.fix(fix(2000), trip: nil)) == nil && queue.append(move(1)) == nil)
    queue.belongs(to: "D1")
    #expect(queue.sync() && disk.files.isEmpty)
  }

  @Test("What was erased does not touch the folder any more, whoever has it now")
  func erasedFolder() throws {
    let path = "/tmp/queue-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    let first = try FixQueue(FolderFiles(path))
    first.erase()
    let second = try FixQueue(FolderFiles(path))
    for number in 0..<5 { _ = second.append(.fix(fix(number), trip: nil)) }
    for number in 0..<2 { _ = first.append(.fix(fix(100 + number), trip: nil)) }
    first.erase()
    #expect(seconds(second.take(100)) == [0, 1, 2, 3, 4])
    second.erase()
    #expect(access(path, F_OK) != 0)
  }

  @Test("Fixes that give way while they are on their way are taken off once")
  func onTheirWay() throws {
    let queue = try queue()
    for second in 0..<20_000 { _ = queue.append(.fix(fix(second), trip: nil)) }
    let taken = queue.take(1000)
    for second in 20_000..<20_001 { _ = queue.append(.fix(fix(second), trip: nil)) }
    #expect(queue.dropped > 500 && queue.fixes == 20_001 - Int(queue.dropped))
    queue.release(through: try #require(taken.last).number, fixes: 1000)
    #expect(queue.fixes == 20_001 - max(1000, Int(queue.dropped)))
    var left: [Int] = []
    while queue.unsent > 0 { left += seconds(queue.take(1000)) }
    #expect(left.count == queue.fixes)
  }

  @Test("The count of fixes that gave way outlives the app, when all else has arrived, too")
  func dropped() throws {
    let first = try queue()
    disk.room = 0
    for second in 0..<FixQueue.maximumUnsaved + 10 { _ = first.append(.fix(fix(second), trip: nil)) }
    disk.room = nil
    #expect(first.sync())
    first.release(through: UInt64(FixQueue.maximumUnsaved) + 10, fixes: FixQueue.maximumUnsaved)
    #expect(first.isEmpty && first.dropped == 10)
    for _ in 0..<2 {
      let next = try queue()
      #expect(next.dropped == 10 && next.isEmpty && next.damage == nil)
    }
    let next = try queue()
    let number = try #require(next.append(.fix(fix(1), trip: nil)))
    #expect(disk.files.count == 1)
    next.release(through: number, fixes: 1)
    #expect(try queue().dropped == 10 && disk.files.count == 1)
  }

  @Test("The oldest fix that has not arrived is known, over the app's death, too")
  func oldest() throws {
    let queue = try queue()
    #expect(queue.oldest == nil)
    for second in 0..<2000 { _ = queue.append(.fix(fix(second), trip: nil)) }
    #expect(queue.oldest == fix(0).timestamp)
    queue.release(through: 700, fixes: 700)
    #expect(queue.oldest == fix(700).timestamp && queue.sync())
    let next = try self.queue()
    #expect(next.oldest == fix(700).timestamp)
    next.release(through: 2000, fixes: 1300)
    #expect(next.oldest == nil)
  }

  @Test("An entry that cannot be read is named, in words, and all else is kept and sent")
  func unreadable() throws {
    let path = "/tmp/queue-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    var kept: [Int] = []
    do {
      let queue = try FixQueue(FolderFiles(path))
      for second in 0..<5 { _ = queue.append(.fix(fix(second), trip: nil)) }
      kept = [0, 1, 2, 3, 4]
    }
    let blocked = FixQueue.name(2)
    #expect(mkdir("\(path)/\(blocked)", 0o700) == 0)
    do {
      let queue = try FixQueue(FolderFiles(path))
      let damage = try #require(queue.damage)
      #expect(damage.contains(blocked) && damage.contains("Is a directory"))
      for second in 5..<10 { #expect(queue.append(.fix(fix(second), trip: nil)) != nil) }
      #expect(queue.sync() && queue.failure == nil)
      #expect(seconds(queue.take(100)) == kept + [5, 6, 7, 8, 9])
    }
    #expect(rmdir("\(path)/\(blocked)") == 0)
    try FixQueue(FolderFiles(path)).erase()
  }

  @Test("A folder that others may read is closed to them, unless it holds more than a queue")
  func permissions() throws {
    let path = "/tmp/queue-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    func mode() -> UInt32 {
      var facts = stat()
      return stat(path, &facts) == 0 ? UInt32(facts.st_mode) & 0o777 : 0
    }
    #expect(mkdir(path, 0o755) == 0 && chmod(path, 0o755) == 0)
    #expect(mkdir(path + "/another", 0o755) == 0)
    try withExtendedLifetime(FolderFiles(path)) { #expect(mode() == 0o755) }
    #expect(rmdir(path + "/another") == 0)
    let files = try FolderFiles(path)
    #expect(mode() == 0o700)
    try files.erase()
  }

  @Test("A folder belongs to one queue at a time, and to the next at once, whatever a forked child still has open")
  func oneOwner() throws {
    let path = "/tmp/queue-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    var copies: [Int32] = []
    defer { for copy in copies { close(copy) } }
    do {
      let files = try FolderFiles(path)
      copies = try copiedDescriptors(of: path + "/lock")
      #expect(throws: FileFailure(call: "flock", errno: EWOULDBLOCK)) { _ = try FolderFiles(path) }
      withExtendedLifetime(files) {}
    }
    #expect(!copies.isEmpty)
    try FolderFiles(path).erase()
    #expect(access(path, F_OK) != 0)
  }
}
