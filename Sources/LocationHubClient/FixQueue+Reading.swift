// Reading the queue: in pieces for sending; at the start, all intact records.
import HubMessages

extension FixQueue {
  /// The content of a segment.
  struct Content {
    var entries: [(UInt64, FixRecord)] = []
    var mark: UInt64 = 0
    var dropped: UInt64 = 0
    /// Bytes outside records, and the end of the last intact record.
    var unreadable = 0
    var intactThrough = 0
  }

  /// All intact records of a segment. Other bytes are skipped until the next one.
  static func records(in bytes: [UInt8]) -> Content {
    var content = Content()
    var offset = min(headBytes, bytes.count)
    content.intactThrough = offset
    while offset < bytes.count {
      guard let (record, end) = StoredRecord.read(bytes, at: offset) else {
        content.unreadable += 1
        offset += 1
        continue
      }
      switch record {
      case .entry(let number, let entry): content.entries.append((number, entry))
      case .mark(let number, let dropped):
        content.mark = max(content.mark, number)
        content.dropped = max(content.dropped, dropped)
      }
      offset = end
      content.intactThrough = end
    }
    return content
  }

  /// Moves the cursor to the oldest unconfirmed entry.
  func rewind() {
    cursor = Cursor(number: confirmedThrough + 1, segment: 0, offset: 0)
    // At the end of a connection nothing is on its way any more.
    droppedInFlight = []
  }

  /// Moves the cursor to the end, past numbers whose entries are in no file any more.
  func skipRest() { cursor.number = Swift.max(cursor.number, confirmedThrough + 1) + unsent }

  /// The content of a segment.
  func content(of segment: Segment) throws(FileFailure) -> Content {
    FixQueue.records(in: try files.read(segment.name, from: 0, count: segment.bytes))
  }

  /// Up to `limit` entries from the cursor on, in order; moves the cursor behind them. Stops where the disk cannot be
  /// read: `readFailure` has the reason, and the next call tries again.
  func take(_ limit: Int) -> [(number: UInt64, record: FixRecord)] {
    var taken: [(number: UInt64, record: FixRecord)] = []
    readFailure = nil
    while taken.count < limit, takeFromDisk(limit, &taken) {}
    guard readFailure == nil else { return taken }
    for entry in unsaved where taken.count < limit && entry.number >= cursor.number {
      taken.append((entry.number, entry.record))
      cursor.number = entry.number + 1
    }
    return taken
  }

  /// Takes entries from one piece of a segment; false where the disk has no more.
  private func takeFromDisk(_ limit: Int, _ taken: inout [(number: UInt64, record: FixRecord)]) -> Bool {
    guard let segment = segments.first(where: { $0.last >= cursor.number }) else { return false }
    if cursor.segment != segment.first || cursor.offset < FixQueue.headBytes {
      cursor.segment = segment.first
      cursor.offset = FixQueue.headBytes
    }
    do throws(FileFailure) {
      var bytes = try files.read(segment.name, from: cursor.offset, count: FixQueue.readBytes)
      if StoredRecord.read(bytes, at: 0) == nil {
        // A record longer than a piece (a move with its route), or a damaged one.
        bytes = try files.read(segment.name, from: cursor.offset, count: segment.bytes)
      }
      return take(bytes, of: segment, limit, &taken)
    } catch {
      // A file that is gone does not return.
      if error.isMissing { return pass(segment) }
      readFailure = error
      return false
    }
  }

  private func take(
    _ bytes: [UInt8], of segment: Segment, _ limit: Int, _ taken: inout [(number: UInt64, record: FixRecord)]
  ) -> Bool {
    var offset = 0
    var isDamaged = false
    while taken.count < limit, offset < bytes.count {
      guard let (record, end) = StoredRecord.read(bytes, at: offset) else {
        if offset > 0, bytes.count == FixQueue.readBytes { break }  // the rest of it is in the next piece
        offset += 1
        isDamaged = true
        continue
      }
      offset = end
      guard case .entry(let number, let entry) = record, number >= cursor.number else { continue }
      taken.append((number, entry))
      cursor.number = number + 1
    }
    cursor.offset += offset
    if offset == 0 || cursor.number <= segment.last && offset >= bytes.count && bytes.count < FixQueue.readBytes {
      return pass(segment)
    }
    if isDamaged { countLost(of: segment) }
    return true
  }

  /// Skips what cannot be read of a segment, and counts it.
  private func pass(_ segment: Segment) -> Bool {
    cursor.number = max(cursor.number, segment.last + 1)
    countLost(of: segment)
    return true
  }

  /// Counts and reports what was written to a segment and is not in it any more, whatever happened to its file.
  private func countLost(of segment: Segment) {
    guard let index = segments.firstIndex(where: { $0.first == segment.first }), segment.last > confirmedThrough,
      segment.first <= segment.last  // else nothing was written behind its head
    else { return }
    let content: Content
    do throws(FileFailure) { content = try self.content(of: segment) } catch {
      guard error.isMissing else {
        readFailure = error
        return
      }
      content = Content()
    }
    let whole = Set(content.entries.map(\.0))
    let missing = (max(segment.first, confirmedThrough + 1)...segment.last).filter { !whole.contains($0) }
    let lost = moves.map(\.number).filter(missing.contains)
    // Some numbers never were in it: dropped before the disk took them.
    let left = content.entries.count { $0.1.isFix }
    let lostFixes = missing.filter { !lost.contains($0) }.prefix(max(0, segment.fixes - left))
    guard !lost.isEmpty || !lostFixes.isEmpty else { return }
    segments[index].fixes = left
    // Nothing is appended to it any more.
    segments[index].bytes = max(segment.bytes, FixQueue.segmentBytes)
    loseMoves(where: lost.contains)
    lose(Array(lostFixes))
    markDropped()
    report("\(segment.name): \(lostFixes.count) fixes and \(lost.count) moves cannot be read any more")
    guard fixes == 0, moves.isEmpty, unsaved.isEmpty else { return }
    confirmedThrough = next - 1
    deleteConfirmed()
  }

  /// Adds to what is damaged.
  func report(_ text: String) { damage = damage.map { "\($0); \(text)" } ?? text }
}
