// The driver's queue: every fix and move from when the app hands it over until the hub has it, over the app's death.
//
// Segments of 64 KiB to which records are appended, each with a checksum; nothing is ever changed in place. An entry is
// written when it comes, so that the app's death loses nothing, and synced in batches, so that the power's loss costs
// one batch at most. What has arrived is a prefix: a mark says up to where, and a segment that lies before it is
// deleted. Entries are sent from the files: what the hub is told is what was kept.
//
// When the disk takes nothing (it is full), entries wait in memory, go out from there where the hub can be reached, and
// are written as soon as the disk takes them again.

import HubMessages

/// The queue of one driver. It belongs to the thread that uses it.
final class FixQueue {
  struct Segment {
    /// The number of its first entry; its name.
    let first: UInt64
    var last: UInt64
    var bytes: Int
    var fixes = 0
    var isSynced = true
    /// Whose its entries are; nil where no hub has said so yet.
    var owner: Identifier?

    var name: String { FixQueue.name(first) }
  }

  /// Where the next entry to be sent lies.
  struct Cursor {
    var number: UInt64
    var segment: UInt64
    var offset: Int
  }

  static let headBytes = 16
  static let magic: [UInt8] = Array("LHQ1".utf8) + [0, 0, 0, 0]

  let files: any FixFiles
  var segments: [Segment] = []
  /// What the disk did not take.
  var unsaved: [(number: UInt64, record: FixRecord)] = []
  var cursor = Cursor(number: 0, segment: 0, offset: 0)
  /// All entries up to this number have arrived.
  var arrived: UInt64 = 0
  var marked: UInt64 = 0
  var next: UInt64 = 1
  /// Moves that have not arrived, by number.
  var moves: [UInt64] = []

  /// Fixes that gave way at a limit, since the queue was made.
  var dropped: UInt64 = 0
  /// What was found damaged at the start, in words; nil for nothing.
  var damage: String?
  /// Why the disk does not take what it should; nil while it does.
  var failure: FileFailure?
  /// Fixes that have not arrived.
  var fixes = 0
  /// Whose the entries are that come now: the driver of this run's connections, once there was one.
  var owner: Identifier?
  /// From which number on entries are the owner's and the disk does not say so yet; nil where it does.
  var unownedFrom: UInt64?
  /// Nothing is kept any more.
  private(set) var isErased = false
  /// Fixes that gave way while they were on their way: their arrival takes nothing off `fixes`.
  private var goneOnTheirWay: [UInt64] = []
  /// A file without entries, which keeps `dropped` until there is a segment.
  var emptyFile: String?
  private var oldestFix: (number: UInt64, time: Timestamp)?

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

  /// Keeps an entry and gives its number; nil for a move that has no room, and for anything after `erase`.
  func append(_ record: FixRecord) -> UInt64? {
    guard !isErased else { return nil }
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
    if let last = segments.last, last.bytes < FixQueue.segmentBytes, last.owner == owner { return }
    let head = head(from: number)
    // A name that is left of an attempt that failed begins anew.
    try files.replace(FixQueue.name(number), with: head)
    segments.append(Segment(first: number, last: number - 1, bytes: head.count, isSynced: false, owner: owner))
    if let emptyFile, emptyFile != FixQueue.name(number) { try files.remove(emptyFile) }
    emptyFile = nil
  }

  /// How a segment begins: what gave way until then, and whose it is.
  private func head(from number: UInt64) -> [UInt8] {
    var head = FixQueue.magic
    for shift in stride(from: UInt64(0), to: 64, by: 8) { head.append(UInt8(truncatingIfNeeded: dropped >> shift)) }
    if let owner { head += StoredRecord.owner(owner, from: number).bytes() }
    return head
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
      if let last = segments.last, last.bytes < FixQueue.segmentBytes + StoredRecord.headBytes {
        if let owner, let from = unownedFrom {
          try write(StoredRecord.owner(owner, from: from).bytes())
          unownedFrom = nil
        }
        if marked < arrived {
          try write(StoredRecord.mark(arrived, dropped: dropped).bytes())
          marked = arrived
        }
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
    deleteArrived()
    let gone = goneOnTheirWay.count { $0 <= arrived }
    goneOnTheirWay.removeAll { $0 <= arrived }
    fixes = isEmpty ? 0 : max(0, fixes - max(0, count - gone))
  }

  /// Deletes the segments whose entries have all arrived. The last one keeps `dropped`, if need be.
  func deleteArrived() {
    let done = segments.filter { $0.last <= arrived }
    segments.removeAll { $0.last <= arrived }
    for segment in done {
      // A file that cannot be deleted is sent again by the next run, and nobody counts it twice.
      do throws(FileFailure) {
        if dropped > 0, segments.isEmpty, segment.first == done.last?.first {
          try files.replace(segment.name, with: Array(head(from: next).prefix(FixQueue.headBytes)))
          emptyFile = segment.name
        } else {
          try files.remove(segment.name)
        }
      } catch { failure = error }
    }
  }

  /// When the oldest fix that has not arrived was measured. Reads a segment where that is another one than before.
  var oldest: Timestamp? {
    guard fixes > 0 else { return nil }
    if let oldestFix, oldestFix.number > arrived { return oldestFix.time }
    oldestFix = findOldest()
    return oldestFix?.time
  }

  private func findOldest() -> (number: UInt64, time: Timestamp)? {
    for segment in segments where segment.last > arrived && segment.fixes > 0 {
      do throws(FileFailure) {
        let bytes = try files.read(segment.name, from: 0, count: segment.bytes)
        for (number, record) in FixQueue.records(in: bytes).entries where number > arrived {
          if case .fix(let fix, _) = record { return (number, fix.timestamp) }
        }
      } catch { failure = error }
    }
    for case (let number, .fix(let fix, _)) in unsaved { return (number, fix.timestamp) }
    return nil
  }

  // MARK: Limits

  private func makeRoom() {
    while fixes > FixQueue.maximumFixes || bytes > FixQueue.maximumBytes {
      guard let index = segments.dropLast().firstIndex(where: { $0.fixes > 0 }) else { return }
      giveUp(segment: index)
    }
  }

  /// The fixes of a segment go, its moves, too, where it is not to keep them.
  func giveUp(segment index: Int, keepingMoves: Bool = true) {
    let segment = segments[index]
    var kept: [UInt8] = []
    var lost = 0
    var hasMoves = false
    do throws(FileFailure) {
      let bytes = try files.read(segment.name, from: 0, count: segment.bytes)
      kept = Array(bytes.prefix(FixQueue.headBytes))
      if let owner = segment.owner { kept += StoredRecord.owner(owner, from: segment.first).bytes() }
      for (number, record) in FixQueue.records(in: bytes).entries where number > arrived {
        if record.isFix {
          lost += 1
          noteGone(number)
        } else if keepingMoves {
          kept += StoredRecord.entry(number, record).bytes()
          hasMoves = true
        }
      }
      if hasMoves { try files.replace(segment.name, with: kept) } else { try files.remove(segment.name) }
    } catch {
      failure = error
      lost = segment.fixes
    }
    if !keepingMoves { moves.removeAll { (segment.first...segment.last).contains($0) } }
    dropped += UInt64(lost)
    fixes = max(0, fixes - lost)
    oldestFix = nil
    segments[index].fixes = 0
    segments[index].bytes = kept.count
    if !hasMoves { segments.remove(at: index) }
    if cursor.segment == segment.first { cursor.offset = 0 }
    guard let last = segments.last, last.bytes < FixQueue.segmentBytes + StoredRecord.headBytes else { return }
    // The count outlives the app, if the disk takes it.
    do throws(FileFailure) { try write(StoredRecord.mark(arrived, dropped: dropped).bytes()) } catch {
      failure = error
    }
  }

  private func noteGone(_ number: UInt64) { if number < cursor.number { goneOnTheirWay.append(number) } }

  private func dropOldestUnsaved() {
    guard let index = unsaved.firstIndex(where: { $0.record.isFix }) else { return }
    noteGone(unsaved.remove(at: index).number)
    dropped += 1
    fixes = max(0, fixes - 1)
    oldestFix = nil
  }

  /// What the disk has not taken goes, moves, too; fixes are counted.
  func dropUnsaved() {
    let lost = unsaved.count { $0.record.isFix }
    for entry in unsaved where !entry.record.isFix { moves.removeAll { $0 == entry.number } }
    unsaved = []
    dropped += UInt64(lost)
    fixes = max(0, fixes - lost)
    oldestFix = nil
  }

  /// What was on its way is not any more.
  func forgetOnTheirWay() { goneOnTheirWay = [] }

  /// Removes the queue from the disk, and keeps nothing any more; `failure` is what that has left.
  func erase() {
    isErased = true
    segments = []
    unsaved = []
    moves = []
    fixes = 0
    arrived = next - 1
    do throws(FileFailure) { try files.erase() } catch { failure = error }
  }
}
