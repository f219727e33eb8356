// Makes a segment's index in memory, and extends it as the segment grows.
import HubSystem

/// The name of a segment's file, or of another file of a journal.
struct SegmentName: Equatable, Sendable {
  var name: String
  /// The number in the name: the first group of a segment or index, the last group of a snapshot.
  var first: UInt64

  /// The files of a kind among a directory's, oldest first.
  static func all(_ kind: FileHeader.Kind, in names: [String]) -> [SegmentName] {
    names.compactMap { name in FileHeader.group(ofName: name, kind).map { SegmentName(name: name, first: $0) } }
      .sorted { $0.first < $1.first }
  }

  /// The damage of a file that no hub can have written, found without reading it.
  func foreign(in files: any JournalFiles, atMost limit: Int = .max) throws(JournalError) -> Damage? {
    try inFile(name) { () throws(SystemError) in try files.oddity(of: name, atMost: limit) }.map {
      Damage(kind: .foreign($0), file: name, offset: 0, group: first)
    }
  }

  /// The damage of an invalid header.
  var brokenHeader: Damage { Damage(kind: .header, file: name, offset: 0, group: first) }
}

extension IndexedSegment {
  /// The damage of a full segment.
  var damage: Damage? {
    guard wholeBytes < bytes else { return nil }
    return Damage(kind: .group, file: FileHeader.name(.segment, first), offset: wholeBytes, group: next)
  }
}

final class SegmentIndexer {
  private(set) var segment: IndexedSegment
  /// The entries, in the order of their records in the segment.
  private(set) var entries: [IndexEntry] = []
  private var cursor: GroupCursor
  private let crc = CRC32C()

  /// Nil where the segment's header is incomplete or invalid.
  init?(_ file: any ReadableJournalFile, _ name: SegmentName, limits: JournalLimits) throws(SystemError) {
    var cursor = GroupCursor(file, first: name.first, limits: limits)
    guard let header = try cursor.header(), header.kind == .segment, header.group == name.first else { return nil }
    segment = IndexedSegment(header: header, next: name.first)
    self.cursor = cursor
  }

  /// Adds the groups that have come since.
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

  /// The index entry of the record at an offset of a payload; nil if no complete record is there.
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
