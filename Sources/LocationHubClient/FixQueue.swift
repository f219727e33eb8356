// The driver's queue: every fix and move from when the app hands it over until the hub has it, over the app's death.
//
// Segments of 64 KiB to which records are appended, each with a checksum; nothing is ever changed in place. An entry is
// written when it comes, so that the app's death loses nothing, and synced in batches, so that the power's loss costs
// one batch at most. What has arrived is a prefix: a mark says up to where, and a segment that lies before it is
// deleted. Entries are sent from the files: what the hub is told is what was kept. What the disk does not let be read
// stays, and all behind it waits.
//
// When the disk takes nothing (it is full), entries wait in memory, go out from there where the hub can be reached, and
// are written as soon as the disk takes them again.

import HubMessages

/// The queue of one driver. It belongs to the thread that uses it.
final class FixQueue {
  /// Whose the entries of a segment are.
  enum Owner: Equatable {
    /// No hub has said so yet.
    case nobody
    case driver(Identifier)
    /// The segment said so once, and is damaged there.
    case unknown

    init(_ id: Identifier?) { if let id { self = .driver(id) } else { self = .nobody } }

    var id: Identifier? { if case .driver(let id) = self { id } else { nil } }
  }

  struct Segment {
    /// The number of its first entry; its name.
    let first: UInt64
    var last: UInt64
    var bytes: Int
    var fixes = 0
    var isSynced = true
    var owner = Owner.nobody
    /// Its head says so.
    var isOwnerStored = true

    var name: String { FixQueue.name(first) }
    func holds(_ number: UInt64) -> Bool { first <= number && number <= last }
  }

  /// Where the next entry to be sent lies.
  struct Cursor {
    var number: UInt64
    var segment: UInt64
    var offset: Int
  }

  static let headBytes = SegmentHead.count

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
  /// What was found damaged, in words; nil for nothing.
  var damage: String?
  /// Why the disk does not take what it should; nil while it does.
  var failure: FileFailure?
  /// Why the disk does not let what is next be read; nil while it does, or is to be asked again.
  var readFailure: FileFailure?
  /// Fixes that have not arrived.
  var fixes = 0
  /// Whose the entries are that come now: the driver of this run's connections, once there was one.
  var owner: Identifier?
  /// The folder is this queue's; see `close`.
  var isOpen = true
  /// Nothing is kept any more.
  private(set) var isErased = false
  /// Fixes that gave way while they were on their way: their arrival takes nothing off `fixes`.
  var goneOnTheirWay: [UInt64] = []
  /// A file without entries, which keeps `dropped` until there is a segment.
  var emptyFile: String?
  var oldestFix: (number: UInt64, time: Timestamp)?

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

  /// Keeps an entry and gives its number; nil for a move that has no room, for a time that no hub takes, and for
  /// anything after `erase`.
  func append(_ record: FixRecord) -> UInt64? {
    if !isOpen { reopen() }
    guard !isErased, record.time.isTaken else { return nil }
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
    guard isOpen else { return }
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
    let owner = Owner(owner)
    if let last = segments.last, last.bytes < FixQueue.segmentBytes, last.owner == owner { return }
    let head = head()
    // A name that is left of an attempt that failed begins anew.
    try files.replace(FixQueue.name(number), with: head)
    segments.append(Segment(first: number, last: number - 1, bytes: head.count, isSynced: false, owner: owner))
    if let emptyFile, emptyFile != FixQueue.name(number) { try files.remove(emptyFile) }
    emptyFile = nil
  }

  /// How a segment of this driver's begins now.
  private func head() -> [UInt8] { SegmentHead(dropped: dropped, owner: owner).bytes() }

  /// Says in a segment's head that it is this driver's.
  private func storeOwner(of index: Int) throws(FileFailure) {
    let name = segments[index].name
    var bytes = try files.read(name, from: 0, count: FixQueue.maximumSegmentBytes)
    bytes.replaceSubrange(..<min(FixQueue.headBytes, bytes.count), with: head())
    try files.replace(name, with: bytes)
    segments[index].isOwnerStored = true
    segments[index].isSynced = false
  }

  /// Appends to the last segment; where that fails, what was written of it is cut off again.
  func write(_ bytes: [UInt8]) throws(FileFailure) {
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
    guard isOpen else { return unsaved.isEmpty }
    save()
    var isDone = unsaved.isEmpty
    do throws(FileFailure) {
      for index in segments.indices where !segments[index].isOwnerStored { try storeOwner(of: index) }
    } catch {
      failure = error
      isDone = false
    }
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
    return isDone
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
          try files.replace(segment.name, with: head())
          emptyFile = segment.name
        } else {
          try files.remove(segment.name)
        }
      } catch { if !error.isMissing { failure = error } }
    }
  }

  /// When the oldest fix that has not arrived was measured; nil where none is left, or it cannot be read. Reads a
  /// segment where that is another one than before.
  var oldest: Timestamp? {
    guard fixes > 0 else { return nil }
    if let oldestFix, oldestFix.number > arrived { return oldestFix.time }
    guard isOpen, readFailure == nil else { return nil }
    oldestFix = findOldest()
    return oldestFix?.time
  }

  private func findOldest() -> (number: UInt64, time: Timestamp)? {
    do throws(FileFailure) {
      for segment in segments where segment.last > arrived && segment.fixes > 0 {
        for (number, record) in try content(of: segment).entries where number > arrived {
          if case .fix(let fix, _) = record { return (number, fix.timestamp) }
        }
      }
    } catch {
      readFailure = error
      return nil
    }
    for case (let number, .fix(let fix, _)) in unsaved { return (number, fix.timestamp) }
    return nil
  }

  /// Removes the queue from the disk, and keeps nothing any more; `failure` is what that has left.
  func erase() {
    isErased = true
    segments = []
    unsaved = []
    moves = []
    fixes = 0
    arrived = next - 1
    do throws(FileFailure) {
      if !isOpen { try files.lock() }
      isOpen = true
      try files.erase()
    } catch { failure = error }
  }
}
