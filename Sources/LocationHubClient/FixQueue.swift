// The driver's queue: every fix and move from when the app hands it over until the hub has it, over the app's death.
//
// Segments of 64 KiB to which records are appended, each with a checksum; nothing is ever changed in place. An entry is
// written when it comes, so that the app's death loses nothing, and synced in batches, so that the power's loss costs
// one batch at most. What has arrived is a prefix: a mark says up to where, and a segment that lies before it is
// deleted. Entries are sent from the files: what the hub is told is what was kept.
//
// When the disk takes nothing (it is full), entries wait in memory, go out from there where the hub can be reached, and
// are written as soon as the disk takes them again.

/// The queue of one driver. It belongs to the thread that uses it.
final class FixQueue {
  struct Segment {
    /// The number of its first entry; its name.
    let first: UInt64
    var last: UInt64
    var bytes: Int
    var fixes = 0
    var isSynced = true

    var name: String { FixQueue.name(first) }
  }

  /// Where the next entry to be sent lies.
  struct Cursor {
    var number: UInt64
    var segment: UInt64
    var offset: Int
  }

  static let headBytes = 16
  private static let magic: [UInt8] = Array("LHQ1".utf8) + [0, 0, 0, 0]

  let files: any FixFiles
  var segments: [Segment] = []
  /// What the disk did not take.
  var unsaved: [(number: UInt64, record: FixRecord)] = []
  var cursor = Cursor(number: 0, segment: 0, offset: 0)
  /// All entries up to this number have arrived.
  private(set) var arrived: UInt64 = 0
  private var marked: UInt64 = 0
  private var next: UInt64 = 1
  /// Moves that have not arrived, by number.
  var moves: [UInt64] = []

  /// Fixes that gave way at a limit, since the queue was made.
  var dropped: UInt64 = 0
  /// What was found damaged at the start, in words; nil for nothing.
  var damage: String?
  /// Why the disk does not take what it should; nil while it does.
  private(set) var failure: FileFailure?
  /// Fixes that have not arrived.
  var fixes = 0

  init(_ files: any FixFiles) throws(FileFailure) {
    self.files = files
    try recover()
  }

  var bytes: Int { segments.reduce(0) { $0 + $1.bytes } }
  /// Entries that have not arrived.
  var isEmpty: Bool { arrived + 1 == next }
  /// Entries behind the cursor.
  var unsent: UInt64 { next - max(cursor.number, arrived + 1) }
  /// Moves behind the cursor.
  var hasUnsentMoves: Bool { moves.last.map { $0 >= cursor.number } ?? false }
  var isSynced: Bool { segments.allSatisfy(\.isSynced) && unsaved.isEmpty }

  static func name(_ first: UInt64) -> String {
    let digits = String(first, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits + ".queue"
  }

  // MARK: Keeping

  /// Keeps an entry and gives its number; nil for a move that has no room.
  func append(_ record: FixRecord) -> UInt64? {
    if !record.isFix {
      guard moves.count < FixQueue.maximumMoves else { return nil }
      moves.append(next)
    } else {
      fixes += 1
    }
    let number = next
    next += 1
    unsaved.append((number, record))
    save()
    if unsaved.count > FixQueue.maximumUnsaved { dropOldestUnsaved() }
    makeRoom()
    return number
  }

  /// Writes what the disk has not yet.
  private func save() {
    while let (number, record) = unsaved.first {
      let bytes = StoredRecord.entry(number, record).bytes()
      do throws(FileFailure) {
        try begin(segmentFor: number)
        try write(bytes)
      } catch {
        failure = error
        return
      }
      segments[segments.count - 1].last = number
      if record.isFix { segments[segments.count - 1].fixes += 1 }
      unsaved.removeFirst()
    }
    failure = nil
  }

  private func begin(segmentFor number: UInt64) throws(FileFailure) {
    if let last = segments.last, last.bytes < FixQueue.segmentBytes { return }
    var head = FixQueue.magic
    for shift in stride(from: UInt64(0), to: 64, by: 8) { head.append(UInt8(truncatingIfNeeded: dropped >> shift)) }
    // A name that is left of an attempt that failed begins anew.
    try files.replace(FixQueue.name(number), with: head)
    segments.append(Segment(first: number, last: number - 1, bytes: head.count, isSynced: false))
  }

  /// Appends to the last segment; where that fails, what was written of it is cut off again.
  private func write(_ bytes: [UInt8]) throws(FileFailure) {
    let segment = segments[segments.count - 1]
    do throws(FileFailure) {
      try files.append(bytes, to: segment.name)
    } catch {
      do throws(FileFailure) { try files.truncate(segment.name, to: segment.bytes) } catch {
        // A torn record stays: nothing may follow it in this segment.
        segments[segments.count - 1].bytes = FixQueue.segmentBytes
      }
      throw error
    }
    segments[segments.count - 1].bytes += bytes.count
    segments[segments.count - 1].isSynced = false
  }

  /// Has all that was kept on the disk before it returns; says whether it is.
  @discardableResult
  func sync() -> Bool {
    save()
    do throws(FileFailure) {
      if marked < arrived, let last = segments.last, last.bytes < FixQueue.segmentBytes + StoredRecord.headBytes {
        try write(StoredRecord.mark(arrived, dropped: dropped).bytes())
        marked = arrived
      }
      for index in segments.indices where !segments[index].isSynced {
        try files.sync(segments[index].name)
        segments[index].isSynced = true
      }
    } catch {
      failure = error
      return false
    }
    return unsaved.isEmpty
  }

  // MARK: Arriving

  /// All entries up to `number` have arrived, so many fixes among them: segments that have no others are deleted.
  func release(through number: UInt64, fixes count: Int) {
    guard number > arrived else { return }
    arrived = min(number, next - 1)
    moves.removeAll { $0 <= arrived }
    unsaved.removeAll { $0.number <= arrived }
    let done = segments.filter { $0.last <= arrived }
    segments.removeAll { $0.last <= arrived }
    for segment in done { delete(segment) }
    // Those that gave way while they were on their way are counted already.
    fixes = isEmpty ? 0 : max(0, fixes - count)
  }

  /// A file that cannot be deleted is sent again by the next run, and nobody counts it twice.
  private func delete(_ segment: Segment) {
    do throws(FileFailure) { try files.remove(segment.name) } catch { failure = error }
  }

  // MARK: Limits

  private func makeRoom() {
    while fixes > FixQueue.maximumFixes || bytes > FixQueue.maximumBytes {
      guard let index = segments.dropLast().firstIndex(where: { $0.fixes > 0 }) else { return }
      giveUp(segment: index)
    }
  }

  /// The fixes of a segment go; the moves in it stay.
  private func giveUp(segment index: Int) {
    let segment = segments[index]
    var kept: [UInt8] = []
    var lost = 0
    do throws(FileFailure) {
      let bytes = try files.read(segment.name, from: 0, count: segment.bytes)
      kept = Array(bytes.prefix(FixQueue.headBytes))
      for (number, record) in FixQueue.records(in: bytes).entries where number > arrived {
        if record.isFix { lost += 1 } else { kept += StoredRecord.entry(number, record).bytes() }
      }
      if kept.count > FixQueue.headBytes {
        try files.replace(segment.name, with: kept)
      } else {
        try files.remove(segment.name)
      }
    } catch {
      failure = error
      lost = segment.fixes
    }
    dropped += UInt64(lost)
    fixes = max(0, fixes - lost)
    segments[index].fixes = 0
    segments[index].bytes = kept.count
    if kept.count <= FixQueue.headBytes { segments.remove(at: index) }
    if cursor.segment == segment.first { cursor.offset = 0 }
    // The count outlives the app, if the disk takes it.
    do throws(FileFailure) { try write(StoredRecord.mark(arrived, dropped: dropped).bytes()) } catch {
      failure = error
    }
  }

  private func dropOldestUnsaved() {
    guard let index = unsaved.firstIndex(where: { $0.record.isFix }) else { return }
    unsaved.remove(at: index)
    dropped += 1
    fixes = max(0, fixes - 1)
  }

  /// Removes the queue from the disk; `failure` is what that has left.
  func erase() {
    segments = []
    unsaved = []
    moves = []
    fixes = 0
    arrived = next - 1
    do throws(FileFailure) { try files.erase() } catch { failure = error }
  }

  // MARK: Recovering

  private func recover() throws(FileFailure) {
    for name in try files.names() where name.hasSuffix(".draft") { try files.remove(name) }
    let names = try files.names().filter { $0.hasSuffix(".queue") && UInt64($0.dropLast(6), radix: 16) != nil }.sorted()
    var found: [(Segment, [(UInt64, FixRecord)])] = []
    var reports: [String] = []
    for name in names {
      let size = try files.size(name)
      let bytes = try files.read(name, from: 0, count: min(size, FixQueue.maximumBytes))
      let content = FixQueue.records(in: bytes)
      if bytes.starts(with: FixQueue.magic), bytes.count >= FixQueue.headBytes {
        dropped = max(dropped, bytes[8..<16].reversed().reduce(0) { $0 << 8 | UInt64($1) })
      }
      arrived = max(arrived, content.mark)
      dropped = max(dropped, content.dropped)
      let entries = content.entries
      guard let first = UInt64(name.dropLast(6), radix: 16), let last = entries.map(\.0).max() else {
        if size > FixQueue.headBytes, content.mark == 0 { reports.append("\(name): nothing in it is whole") }
        try files.remove(name)
        continue
      }
      // What a cut left of the very last record is no damage, and is cut off.
      let isTorn =
        name == names.last && content.wholeThrough < size && content.wholeThrough + content.unreadable == size
      if isTorn { try files.truncate(name, to: content.wholeThrough) }
      if content.unreadable > 0, !isTorn { reports.append("\(name): \(content.unreadable) bytes are unreadable") }
      // Nothing is written any more into a segment that has damage within.
      let end = isTorn || content.unreadable == 0 ? content.wholeThrough : max(size, FixQueue.segmentBytes)
      found.append((Segment(first: first, last: last, bytes: end, fixes: entries.count { $0.1.isFix }), entries))
    }
    damage = reports.isEmpty ? nil : reports.joined(separator: "; ")
    marked = arrived
    next = max(arrived, found.map { $0.0.last }.max() ?? 0) + 1
    for (segment, entries) in found {
      segments.append(segment)
      for (number, record) in entries where number > arrived {
        if record.isFix { fixes += 1 } else { moves.append(number) }
      }
    }
    let done = segments.filter { $0.last <= arrived }
    segments.removeAll { $0.last <= arrived }
    for segment in done { delete(segment) }
    rewind()
  }
}
