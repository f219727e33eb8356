// Reading the queue: for sending, a piece at a time; at the start, all that is whole.
import HubMessages

extension FixQueue {
  /// What a segment holds.
  struct Content {
    var entries: [(UInt64, FixRecord)] = []
    var mark: UInt64 = 0
    var dropped: UInt64 = 0
    /// Bytes that are no record, and where the last whole record ends.
    var unreadable = 0
    var wholeThrough = 0
  }

  /// All whole records of a segment. What is none is passed over byte by byte, until the next one.
  static func records(in bytes: [UInt8]) -> Content {
    var content = Content()
    var offset = min(headBytes, bytes.count)
    content.wholeThrough = offset
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
      content.wholeThrough = end
    }
    return content
  }

  /// The next entry to be sent is the oldest that has not arrived.
  func rewind() {
    cursor = Cursor(number: arrived + 1, segment: 0, offset: 0)
    forgetOnTheirWay()
  }

  /// What is numbered and cannot be read any more is not waited for.
  func skipRest() { cursor.number = Swift.max(cursor.number, arrived + 1) + unsent }

  /// All that a segment holds.
  func content(of segment: Segment) throws(FileFailure) -> Content {
    FixQueue.records(in: try files.read(segment.name, from: 0, count: segment.bytes))
  }

  /// Up to `limit` entries from the cursor on, in order, and puts the cursor behind them. At what the disk does not let
  /// it read it stops: `readFailure` says why, and the next call tries again.
  func take(_ limit: Int) -> [(number: UInt64, record: FixRecord)] {
    var taken: [(number: UInt64, record: FixRecord)] = []
    readFailure = nil
    while taken.count < limit, takeFromDisk(limit, &taken) {}
    guard readFailure == nil else { return taken }
    for entry in unsaved where taken.count < limit && entry.number >= cursor.number {
      taken.append(entry)
      cursor.number = entry.number + 1
    }
    return taken
  }

  /// One piece of a segment; false where the disk has nothing (more).
  private func takeFromDisk(_ limit: Int, _ taken: inout [(number: UInt64, record: FixRecord)]) -> Bool {
    guard let segment = segments.first(where: { $0.last >= cursor.number }) else { return false }
    if cursor.segment != segment.first || cursor.offset < FixQueue.headBytes {
      cursor.segment = segment.first
      cursor.offset = FixQueue.headBytes
    }
    do throws(FileFailure) {
      var bytes = try files.read(segment.name, from: cursor.offset, count: FixQueue.readBytes)
      if StoredRecord.read(bytes, at: 0) == nil {
        // A record longer than a piece (a move with its route), or one that is damaged.
        bytes = try files.read(segment.name, from: cursor.offset, count: segment.bytes)
      }
      return take(bytes, of: segment, limit, &taken)
    } catch {
      readFailure = error
      return false
    }
  }

  private func take(
    _ bytes: [UInt8], of segment: Segment, _ limit: Int, _ taken: inout [(number: UInt64, record: FixRecord)]
  ) -> Bool {
    var offset = 0
    while taken.count < limit, offset < bytes.count {
      guard let (record, end) = StoredRecord.read(bytes, at: offset) else {
        if offset > 0, bytes.count == FixQueue.readBytes { break }  // the rest of it is in the next piece
        offset += 1
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
    return true
  }

  /// What cannot be read of a segment is not waited for.
  private func pass(_ segment: Segment) -> Bool {
    cursor.number = max(cursor.number, segment.last + 1)
    return true
  }
}
