// A journal's directory that is moved or deleted, and things in it that no hub has written.
import Glibc
import HubJournalSupport
import HubSystem
import HubTestSupport
import Testing

@testable import HubJournal

@Suite struct FolderTests {
  @Test("The specification names the format's version, and so does what operators go by before an upgrade")
  func version() throws {
    func text(_ file: String) throws -> String {
      let path = #filePath.replacing("Tests/JournalTests/FolderTests.swift", with: file)
      return String(decoding: try readFile(path), as: UTF8.self)
    }
    #expect(try text("protocol/journal.md").contains("version 4 (\(FileHeader.version)), sum 4"))
    #expect(try text("CHANGELOG.md").contains("format is version \(FileHeader.version):"))
  }

  private func expectGone(_ writer: inout JournalWriter, _ path: String) {
    do throws(JournalError) {
      _ = try writer.append([2])
      Issue.record("stored where no start would find it")
    } catch {
      #expect(error == .gone(path: path) && "\(error)".contains(path))
    }
  }

  @Test("Nothing is written into a directory that was moved away; the same group is stored when it is back")
  func movedAway() throws {
    let bench = Bench()
    try bench.open { writer in
      _ = try writer.append([1])
      bench.disk.isMovedAway = true
      let before = bench.disk.files.mapValues(\.bytes)
      expectGone(&writer, bench.disk.path)
      #expect(bench.disk.files.mapValues(\.bytes) == before)
      bench.disk.isMovedAway = false
      let number = try writer.append([2])
      #expect(number == 2)
    }
    #expect(try bench.open().groups == [1: [1], 2: [2]])
  }

  @Test(
    "What root writes into another user's directory is that user's, and follows no link",
    .enabled(if: geteuid() == 0, "only root may give files away"))
  func others() throws {
    let path = "/tmp/folder-\(UInt64.random(in: 0 ... .max))"
    let files = try DiskFiles(path: path)
    defer {
      for name in ["a", "link"] { unlink(path + "/" + name) }
      rmdir(path)
    }
    #expect(chown(path, 12_345, 12_346) == 0)
    _ = try files.open("a")
    var facts = stat()
    #expect(stat(path + "/a", &facts) == 0)
    #expect(facts.st_uid == 12_345 && facts.st_gid == 12_346 && facts.st_mode & 0o777 == 0o600)
    #expect(symlink("/tmp/elsewhere", path + "/link") == 0)
    #expect(throws: SystemError.self) { _ = try files.open("link") }
  }

  @Test("Nothing is written into a segment that was deleted")
  func deleted() throws {
    let bench = Bench()
    try bench.open { writer in
      _ = try writer.append([1])
      let name = try #require(bench.disk.files.keys.first)
      bench.disk.files[name] = nil
      expectGone(&writer, "\(bench.disk.path)/\(name)")
    }
  }

  @Test("A file that may not grow (ulimit -f) is a full disk")
  func fileSize() throws {
    let bench = Bench()
    bench.disk.fullError = EFBIG
    try bench.open { writer in
      _ = try writer.append([1])
      bench.disk.room = 0
      do throws(JournalError) {
        _ = try writer.append([2])
      } catch {
        guard case .full(let cause, _) = error else { throw error }
        #expect(cause.errno == EFBIG && "\(error)".contains("File too large"))
      }
      bench.disk.room = .max
      let number = try writer.append([2])
      #expect(number == 2)
    }
  }

  @Test("Without anything to write it is noticed too that the directory is gone, and that it is back")
  func idle() throws {
    let bench = Bench()
    let disk = bench.disk
    let commit = GroupCommit(
      limits: bench.limits, lazyMilliseconds: 1, fullRetryMilliseconds: 1, checkMilliseconds: 1)
    disk.isMovedAway = true
    var conditions: [JournalCondition] = []
    try bench.open { writer in
      try commit.run(&writer) {
        0
      } onChange: {
        conditions.append(commit.currentCondition)
        if commit.currentCondition == .full { disk.isMovedAway = false } else { commit.close() }
      }
    }
    #expect(conditions == [.full, .good] && commit.counters.timesFull == 1)
    #expect(commit.counters.lastFull == .gone(path: disk.path))
  }

  // MARK: On a real disk

  private func withDirectory(_ body: (_ path: String) throws -> Void) throws {
    let path = "/tmp/folder-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    #expect(mkdir(path, 0o700) == 0)
    defer { removeAll(path) }
    try body(path)
  }

  private func removeAll(_ path: String) {
    do {
      let files = try DiskFiles(beside: path)
      for name in try files.names() where unlink("\(path)/\(name)") != 0 { #expect(rmdir("\(path)/\(name)") == 0) }
      #expect(rmdir(path) == 0)
    } catch {
      Issue.record(error)
    }
  }

  @Test(
    "A directory knows whether its path still leads to it, a file whether it has a name, whatever has that name now")
  func identity() throws {
    try withDirectory { path in
      let inside = path + "/data"
      let files = try DiskFiles(path: inside)
      let file = try files.open("a")
      #expect(files.isAtPath && file.isLinked)
      #expect(rename(inside, path + "/away") == 0)
      #expect(!files.isAtPath && file.isLinked)
      #expect(mkdir(inside, 0o700) == 0)
      #expect(!files.isAtPath, "another directory")
      #expect(rmdir(inside) == 0 && rename(path + "/away", inside) == 0)
      #expect(files.isAtPath)
      try files.remove("a")
      _ = try files.open("a")
      #expect(files.isAtPath && !file.isLinked)
      try files.remove("a")
      #expect(rmdir(inside) == 0)
    }
  }

  @Test("A directory's lock ends with its owner here, whatever a forked child still has open")
  func lock() throws {
    try withDirectory { path in
      var copies: [Int32] = []
      defer { for copy in copies { close(copy) } }
      do {
        let files = try DiskFiles(path: path)
        copies = try copiedDescriptors(of: path)
        #expect(throws: JournalError.locked(directory: path)) { _ = try DiskFiles(path: path) }
        withExtendedLifetime(files) {}
      }
      #expect(!copies.isEmpty)
      _ = try DiskFiles(path: path)
    }
  }

  @Test("A directory and a FIFO are named as what they are, and opening them neither hangs nor gives a size")
  func odd() throws {
    try withDirectory { path in
      let files = try DiskFiles(path: path)
      #expect(mkdir(path + "/directory", 0o700) == 0 && mkfifo(path + "/fifo", 0o600) == 0)
      #expect(try files.about("directory")?.kind == .other("a directory"))
      #expect(try files.about("fifo")?.kind == .other("a FIFO"))
      #expect(try files.about("nothing") == nil)
      for name in ["directory", "fifo"] {
        #expect(throws: SystemError.self) { _ = try files.openForReading(name) }
        #expect(throws: SystemError.self) { _ = try files.read(name) }
        #expect(throws: SystemError.self) { _ = try files.open(name) }
      }
    }
  }
}

@Suite struct OddFileTests {
  private func foreign(_ name: String, _ text: String, group: UInt64 = 1) -> Damage {
    Damage(kind: .foreign(text), file: name, offset: 0, group: group)
  }

  @Test(
    "A segment that is a directory or larger than any is damage to all who read, and is moved aside on request"
  )
  func segments() throws {
    let name = FileHeader.name(.segment, 1)
    for isDirectory in [true, false] {
      var bench = Bench()
      bench.limits.segmentBytes = 200
      bench.limits.groupBytes = 100
      let damage: Damage
      if isDirectory {
        bench.disk.odd[name] = "a directory"
        damage = foreign(name, "is a directory, and no file that a hub writes")
      } else {
        let content = SimulatedDisk.Content()
        content.bytes = [UInt8](repeating: 0, count: 201)
        bench.disk.files[name] = content
        damage = foreign(name, "has 201 bytes, and a hub writes 200 at most")
      }
      #expect(throws: JournalError.damaged(damage)) { try bench.open() }
      #expect(try bench.verify().damages == [damage])
      let inventory = try JournalInventory(bench.disk, limits: bench.limits)
      #expect(inventory.foreign == [damage] && inventory.segments.isEmpty)
      #expect(throws: JournalError.damaged(damage)) {
        try forEachGroup(of: bench.disk, limits: bench.limits) { _, _ in true }
      }
      guard !isDirectory else { continue }  // the simulated disk does not rename them
      let found = try bench.open(damage: .moveAside) { writer in _ = try writer.append([1]) }
      #expect(found.report.loss == damage && bench.disk.files["damaged-1-" + name]?.bytes.count == 201)
    }
  }

  @Test("A snapshot that is no file is broken, and of one that is sparse no more is read than makes sense")
  func snapshots() throws {
    let bench = Bench()
    try bench.open { writer in _ = try writer.append([1]) }
    let name = FileHeader.name(.snapshot, 1)
    bench.disk.odd[name] = "a FIFO"
    #expect(try bench.open().report.brokenSnapshots == [name])
    #expect(try bench.verify().damages == [foreign(name, "is a FIFO, and no file that a hub writes")])
    bench.disk.odd[name] = nil
    let sparse = SparseFile(Array(FileHeader(kind: .snapshot, group: 1, created: 0).encoded(CRC32C())))
    guard case .broken = try SnapshotFile.read(sparse, group: 1, limits: bench.limits) else {
      Issue.record("a hole passes for a snapshot")
      return
    }
    #expect(sparse.bytesRead < 1 << 20)
  }

  /// A terabyte of zeros behind a few bytes.
  private final class SparseFile: ReadableJournalFile {
    private let front: [UInt8]
    private(set) var bytesRead = 0

    init(_ front: [UInt8]) { self.front = front }

    func size() -> Int { 1 << 40 }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
      for index in buffer.indices { buffer[index] = offset + index < front.count ? front[offset + index] : 0 }
      bytesRead += buffer.count
      return buffer.count
    }
  }

  @Test("Who reads all groups gets those on both sides of a missing segment, and hears which are missing")
  func gap() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 100
    try bench.open { writer in for step in UInt8(1)...9 { _ = try writer.append([UInt8](repeating: step, count: 30)) } }
    let names = bench.disk.files.keys.sorted()
    try #require(names.count >= 4)
    bench.disk.files[names[1]] = nil
    let next = try #require(FileHeader.group(ofName: names[2], .segment))
    let first = try #require(FileHeader.group(ofName: names[1], .segment))
    let damage = Damage(kind: .missing(through: next - 1), file: names[2], offset: 0, group: first)
    var numbers: [UInt64] = []
    #expect(throws: JournalError.damaged(damage)) {
      try forEachGroup(of: bench.disk, limits: bench.limits) { number, _ in
        numbers.append(number)
        return true
      }
    }
    #expect(numbers == Array(1..<first) + Array(next...9))
    // One that is gone from the front was deleted by retention.
    bench.disk.files[names[0]] = nil
    try forEachGroup(of: bench.disk, limits: bench.limits) { _, _ in true }
  }

  @Test("Who reads all groups hears of damage and of another version in the newest segment; a torn write is neither")
  func newest() throws {
    let bench = Bench()
    try bench.open { writer in for step in UInt8(1)...4 { _ = try writer.append([UInt8](repeating: step, count: 30)) } }
    let name = try #require(bench.disk.files.keys.first)
    let whole = try #require(bench.disk.files[name]).bytes
    let (second, fourth) = (FileHeader.size + GroupHeader.size + 30, whole.count - GroupHeader.size - 30)
    func expect(_ bytes: [UInt8], _ numbers: ClosedRange<UInt64>?, _ fault: JournalError?) {
      bench.disk.files[name]?.bytes = bytes
      var found: [UInt64] = []
      var thrown: JournalError?
      do throws(JournalError) {
        try forEachGroup(of: bench.disk, limits: bench.limits) { number, _ in
          found.append(number)
          return true
        }
      } catch { thrown = error }
      #expect(found == numbers.map(Array.init) ?? [] && thrown == fault)
    }
    func changed(_ offset: Int, to byte: UInt8) -> [UInt8] {
      var bytes = whole
      bytes[offset] = byte
      return bytes
    }
    expect(whole, 1...4, nil)
    let damage = Damage(kind: .group, file: name, offset: second, group: 2)
    expect(changed(second + 20, to: 0xFF), 1...1, .damaged(damage))
    let header = Damage(kind: .header, file: name, offset: 0, group: 1)
    expect(changed(13, to: whole[13] ^ 1), nil, .damaged(header))
    for version in [FileHeader.version - 1, FileHeader.version + 1] {
      let other = FileHeader(kind: .segment, group: 1, created: 0).encoded(CRC32C(), version: version)
      expect(other + whole[FileHeader.size...], nil, .otherVersion(version, file: name))
      expect(changed(8, to: UInt8(version)), nil, .damaged(header))
    }
    expect(changed(fourth + 20, to: 0xFF), 1...3, nil)
    expect(Array(whole.dropLast()), 1...3, nil)
    expect(Array(whole.prefix(FileHeader.size - 1)), nil, nil)
  }

  @Test("An index of another size than its segment's is broken, and is not read")
  func index() throws {
    var bench = Bench()
    bench.limits.segmentBytes = 100
    try bench.open { writer in for step in UInt8(1)...5 { _ = try writer.append(KeyedRecords.record(step, [step])) } }
    let history = JournalHistory(files: bench.disk, limits: bench.limits, keepsIndexes: true, keys: KeyedRecords.keys)
    _ = try history.indexFullSegments()
    let name = FileHeader.name(.index, 1)
    let content = try #require(bench.disk.files[name])
    content.bytes += [0]
    #expect(try bench.verify().brokenIndexes == [name])
    bench.disk.files[name] = nil
    bench.disk.odd[name] = "a directory"
    #expect(try bench.verify().brokenIndexes == [name])
  }
}
