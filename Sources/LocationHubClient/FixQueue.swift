// The driver's queue: every fix and move until the hub has stored it, across the app's end.
//
// Segments of 64 KiB to which records are appended, each with a checksum; nothing is changed in place. An entry is
// written when it comes, so that the app's end loses nothing, and synced in batches, so that a power failure costs one
// batch at most. Confirmed entries are a prefix: a mark gives its end, and a segment before it is deleted. Entries are
// sent from the files, so the hub gets what was stored. Unreadable entries stay, and everything behind them waits.
//
// When the disk takes nothing (it is full), entries wait in memory, are sent from there if the hub can be reached, and
// are written as soon as the disk takes them again.

import HubMessages

/// The queue of one driver, for one thread.
final class FixQueue {
  /// The driver of a segment's entries.
  enum Owner: Equatable {
    /// No hub has identified it yet.
    case nobody
    case driver(Identifier)
    /// The segment's head is damaged.
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
    /// Whether the head of its file names the owner.
    var isOwnerStored = true

    var name: String { FixQueue.name(first) }
    func holds(_ number: UInt64) -> Bool { first <= number && number <= last }
  }

  /// An unconfirmed move: its entry's number, and its id.
  struct Move {
    let number: UInt64
    let id: MessageID
  }

  /// An entry that the disk did not take.
  struct Unsaved {
    let number: UInt64
    let record: FixRecord
    /// Its driver; nil while no hub has identified it.
    var owner: Identifier?
  }

  /// The position of the next entry to send.
  struct Cursor {
    var number: UInt64
    var segment: UInt64
    var offset: Int
  }

  static let headBytes = SegmentHead.count

  let files: any FixFiles
  var segments: [Segment] = []
  var unsaved: [Unsaved] = []
  var cursor = Cursor(number: 0, segment: 0, offset: 0)
  /// All entries up to this number are confirmed.
  var confirmedThrough: UInt64 = 0
  var markedThrough: UInt64 = 0
  var next: UInt64 = 1
  /// Unconfirmed moves.
  var moves: [Move] = []
  /// The ids of moves that were dropped, or cannot be read any more, for the caller to take.
  var lostMoves: [MessageID] = []

  /// Fixes dropped at a limit, since the queue was made.
  var dropped: UInt64 = 0
  /// A description of damage; nil for none.
  var damage: String?
  /// The present write error; nil without one.
  var failure: FileFailure?
  /// The present read error; nil without one, or when it is to be tried again.
  var readFailure: FileFailure?
  /// Unconfirmed fixes.
  var fixes = 0
  /// The driver of new entries: that of this run's connections, once there was one.
  var owner: Identifier?
  /// The folder is locked by this queue; see `close`.
  var isOpen = true
  /// Nothing is kept any more.
  private(set) var isErased = false
  /// Numbers of fixes that were dropped after they were sent: their confirmation is not subtracted from `fixes` again.
  var droppedInFlight: [UInt64] = []
  /// A file without entries, which keeps `dropped` until there is a segment.
  var emptyFile: String?
  var oldestFix: (number: UInt64, time: Timestamp)?

  init(_ files: any FixFiles) throws(FileFailure) {
    self.files = files
    try recover()
  }

  var bytes: Int { segments.reduce(0) { $0 + $1.bytes } }
  /// All entries are confirmed.
  var isEmpty: Bool { confirmedThrough + 1 == next }
  /// Entries behind the cursor.
  var unsent: UInt64 { next - max(cursor.number, confirmedThrough + 1) }
  /// Whether there are moves behind the cursor.
  var hasUnsentMoves: Bool { moves.last.map { $0.number >= cursor.number } ?? false }

  static func name(_ first: UInt64) -> String {
    let digits = String(first, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits + ".queue"
  }

  // MARK: Keeping

  /// Keeps an entry and gives its number; nil for a move at the limit, for a time that no hub accepts, and for anything
  /// after `erase`.
  func append(_ record: FixRecord) -> UInt64? {
    if !isOpen { reopen() }
    return append(record, of: owner)
  }

  /// Keeps an entry of this driver.
  func append(_ record: FixRecord, of owner: Identifier?) -> UInt64? {
    guard !isErased, record.time.isAcceptedFromClients else { return nil }
    switch record {
    case .move(_, let id):
      guard moves.count < FixQueue.maximumMoves else { return nil }
      moves.append(Move(number: next, id: id))
    case .fix: fixes += 1
    }
    let number = next
    next += 1
    unsaved.append(Unsaved(number: number, record: record, owner: owner))
    save()
    if unsaved.count > FixQueue.maximumUnsaved { dropOldestUnsaved() }
    makeRoom()
    return number
  }

  /// Writes what is not on disk yet.
  private func save() {
    guard isOpen else { return }
    while let entry = unsaved.first {
      let bytes = StoredRecord.entry(entry.number, entry.record).bytes()
      do throws(FileFailure) {
        try begin(segmentFor: entry)
        try write(bytes)
      } catch {
        failure = error
        return
      }
      segments[segments.count - 1].last = entry.number
      if entry.record.isFix { segments[segments.count - 1].fixes += 1 }
      unsaved.removeFirst()
    }
    failure = nil
  }

  private func begin(segmentFor entry: Unsaved) throws(FileFailure) {
    let (number, owner) = (entry.number, Owner(entry.owner))
    if let last = segments.last, last.bytes < FixQueue.segmentBytes, last.owner == owner { return }
    let head = head(of: entry.owner)
    // A file left by a failed attempt is replaced.
    try files.replace(FixQueue.name(number), with: head)
    // The last segment has no entry if its first record was torn: its file is the new segment's now.
    if segments.last?.first == number { segments.removeLast() }
    segments.append(Segment(first: number, last: number - 1, bytes: head.count, isSynced: false, owner: owner))
    if let emptyFile, emptyFile != FixQueue.name(number) { try files.remove(emptyFile) }
    emptyFile = nil
  }

  /// The head of this driver's segment as of now.
  private func head(of owner: Identifier?) -> [UInt8] { SegmentHead(dropped: dropped, owner: owner).bytes() }

  /// Writes this driver into a segment's head.
  private func storeOwner(of index: Int) throws(FileFailure) {
    let name = segments[index].name
    var bytes = try files.read(name, from: 0, count: FixQueue.maximumSegmentBytes)
    bytes.replaceSubrange(..<min(FixQueue.headBytes, bytes.count), with: head(of: owner))
    try files.replace(name, with: bytes)
    segments[index].isOwnerStored = true
    segments[index].isSynced = false
  }

  /// Appends to the last segment; after a failure the partial record is cut off.
  func write(_ bytes: [UInt8]) throws(FileFailure) {
    let segment = segments[segments.count - 1]
    do throws(FileFailure) {
      try files.append(bytes, to: segment.name)
    } catch {
      do throws(FileFailure) { try files.truncate(segment.name, to: segment.bytes) } catch {
        // A torn record stays: nothing may follow it in this segment.
        segments[segments.count - 1].bytes = FixQueue.segmentBytes + StoredRecord.headBytes
      }
      throw error
    }
    segments[segments.count - 1].bytes += bytes.count
    segments[segments.count - 1].isSynced = false
  }

  /// Syncs all entries; gives whether they are on disk.
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
      if markedThrough < confirmedThrough, let last = segments.last,
        last.bytes < FixQueue.segmentBytes + StoredRecord.headBytes
      {
        try write(StoredRecord.mark(confirmedThrough, dropped: dropped).bytes())
        markedThrough = confirmedThrough
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

  // MARK: Confirming

  /// All entries up to `number` are confirmed, including so many fixes: deletes segments that have no other entries.
  func release(through number: UInt64, fixes count: Int) {
    guard number > confirmedThrough else { return }
    confirmedThrough = min(number, next - 1)
    moves.removeAll { $0.number <= confirmedThrough }
    unsaved.removeAll { $0.number <= confirmedThrough }
    deleteConfirmed()
    let gone = droppedInFlight.count { $0 <= confirmedThrough }
    droppedInFlight.removeAll { $0 <= confirmedThrough }
    fixes = isEmpty ? 0 : max(0, fixes - max(0, count - gone))
  }

  /// Deletes the segments whose entries are all confirmed. One file stays without entries where it must keep `dropped`.
  func deleteConfirmed() {
    let done = segments.filter { $0.last <= confirmedThrough }
    segments.removeAll { $0.last <= confirmedThrough }
    for segment in done {
      // The next run sends a file again that cannot be deleted; the hub recognises its fixes and moves.
      do throws(FileFailure) {
        if dropped > 0, segments.isEmpty, segment.first == done.last?.first {
          try files.replace(segment.name, with: head(of: owner))
          emptyFile = segment.name
        } else {
          try files.remove(segment.name)
        }
      } catch { if !error.isMissing { failure = error } }
    }
  }

  /// When the oldest unconfirmed fix was measured; nil where none is left, or it cannot be read. Reads a segment when
  /// that has changed.
  var oldest: Timestamp? {
    guard fixes > 0 else { return nil }
    if let oldestFix, oldestFix.number > confirmedThrough { return oldestFix.time }
    guard isOpen, readFailure == nil else { return nil }
    oldestFix = findOldest()
    return oldestFix?.time
  }

  private func findOldest() -> (number: UInt64, time: Timestamp)? {
    do throws(FileFailure) {
      for segment in segments where segment.last > confirmedThrough && segment.fixes > 0 {
        for (number, record) in try content(of: segment).entries where number > confirmedThrough {
          if case .fix(let fix, _) = record { return (number, fix.timestamp) }
        }
      }
    } catch {
      readFailure = error
      return nil
    }
    for entry in unsaved { if case .fix(let fix, _) = entry.record { return (entry.number, fix.timestamp) } }
    return nil
  }

  /// Deletes the queue on disk, and keeps nothing any more; `failure` is the error, if any.
  func erase() {
    isErased = true
    segments = []
    unsaved = []
    moves = []
    fixes = 0
    confirmedThrough = next - 1
    do throws(FileFailure) {
      if !isOpen { try files.lock() }
      isOpen = true
      try files.erase()
    } catch { failure = error }
  }
}
