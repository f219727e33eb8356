// Makes a segment's index in memory, and goes on where the segment has grown.
import HubSystem

/// A segment's file, or another one of a journal, from its name.
struct SegmentName: Equatable, Sendable {
  var name: String
  /// Its first group, or what else stands in the name.
  var first: UInt64

  /// The files of a kind among a directory's, oldest first.
  static func all(_ kind: FileHeader.Kind, in names: [String]) -> [SegmentName] {
    names.compactMap { name in FileHeader.group(ofName: name, kind).map { SegmentName(name: name, first: $0) } }
      .sorted { $0.first < $1.first }
  }

  /// What is said of a file that no hub can have written, before a byte of it is read.
  func foreign(in files: any JournalFiles, atMost limit: Int = .max) throws(JournalError) -> Damage? {
    try inFile(name) { () throws(SystemError) in try files.oddity(of: name, atMost: limit) }.map {
      Damage(kind: .foreign($0), file: name, offset: 0, group: first)
    }
  }

  /// What is said where not even the header makes sense.
  var brokenHeader: Damage { Damage(kind: .header, file: name, offset: 0, group: first) }
}

extension IndexedSegment {
  /// What is broken in a segment that is full.
  var damage: Damage? {
    guard wholeBytes < bytes else { return nil }
    return Damage(kind: .group, file: FileHeader.name(.segment, first), offset: wholeBytes, group: next)
  }
}

final class SegmentIndexer {
  private(set) var segment: IndexedSegment
  /// In the order in which they lie.
  private(set) var entries: [IndexEntry] = []
  private var cursor: GroupCursor
  private let crc = CRC32C()

  /// Nil where the header is not whole (yet).
  init?(_ file: any ReadableJournalFile, _ name: SegmentName, limits: JournalLimits) throws(SystemError) {
    var cursor = GroupCursor(file, first: name.first, limits: limits)
    guard let header = try cursor.header(), header.kind == .segment, header.group == name.first else { return nil }
    segment = IndexedSegment(first: name.first, created: header.created, next: name.first)
    self.cursor = cursor
  }

  /// Takes in the groups that are there by now.
  func extend(_ keys: RecordKeys) throws(SystemError) {
    while let (header, offset, payload) = try unsafe cursor.next() {
      var last: IndexEntry?  // a record may have several keys
      unsafe keys(payload) { key, record in
        if var entry = last, Int(entry.record) == record {
          entry.key = key
          entries.append(entry)
        } else if let entry = unsafe entry(key, of: payload, at: record, group: offset) {
          entries.append(entry)
          last = entry
        }
      }
      segment.next = header.number + 1
      segment.wholeBytes = cursor.offset
      segment.lastGroup = UInt32(offset)
      segment.lastSum = header.sum
    }
    segment.bytes = try cursor.file.size()
  }

  /// Nil where no whole record is.
  private func entry(
    _ key: UInt64, of payload: UnsafeRawBufferPointer, at record: Int, group: Int
  ) -> IndexEntry? {
    guard record + 4 <= payload.count else { return nil }
    let end = unsafe record + 4 + Int(payload.number(at: record, UInt32.self))
    guard end <= payload.count else { return nil }
    return unsafe IndexEntry(
      key: key, group: UInt32(group), record: UInt32(record), length: UInt32(end - record),
      sum: crc(UnsafeRawBufferPointer(rebasing: payload[record..<end])))
  }
}
