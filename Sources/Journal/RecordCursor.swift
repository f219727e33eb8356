// Reads records of one segment by their positions in an index. A driver's records are in many groups, among those of
// thousands of other drivers, so reading complete groups would read hundreds of times as much; adjacent records are
// read with one system call.
import HubSystem

@safe
struct RecordCursor: ~Copyable {
  private let file: any ReadableJournalFile
  private let crc = CRC32C()
  /// Written only in `read`; callers keep no pointer into it beyond the next call.
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
  /// The part of the file in the buffer.
  private var window = 0..<0

  init(_ file: any ReadableJournalFile) { self.file = file }

  deinit { unsafe buffer.deallocate() }

  /// The record at `entries[index]` with its length prefix, valid until the next call; nil if the file does not have
  /// its bytes there. `entries` ascend, and are read in order.
  mutating func record(_ index: Int, of entries: [IndexEntry]) throws(SystemError) -> UnsafeRawBufferPointer? {
    let range = entries[index].range
    if range.lowerBound < window.lowerBound || range.upperBound > window.upperBound {
      try read(from: range.lowerBound, through: Self.end(ofRunFrom: index, of: entries))
      guard range.upperBound <= window.upperBound else { return nil }
    }
    let start = range.lowerBound - window.lowerBound
    let record = unsafe UnsafeRawBufferPointer(rebasing: buffer[start..<start + range.count])
    return unsafe crc(record) == entries[index].sum ? record : nil
  }

  /// The end of the last record that is read together with the one at `index`.
  private static func end(ofRunFrom index: Int, of entries: [IndexEntry]) -> Int {
    let start = entries[index].range.lowerBound
    var end = entries[index].range.upperBound
    for entry in entries[(index + 1)...] {
      guard entry.range.lowerBound - end <= JournalLimits.gapBetweenRecords,
        entry.range.upperBound - start <= JournalLimits.recordsTogether
      else { break }
      end = max(end, entry.range.upperBound)
    }
    return end
  }

  private mutating func read(from start: Int, through end: Int) throws(SystemError) {
    if unsafe end - start > buffer.count {
      unsafe buffer.deallocate()
      unsafe buffer = .allocate(byteCount: max(end - start, 2 * buffer.count), alignment: 16)
    }
    let count = try unsafe file.read(at: start, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<(end - start)]))
    window = start..<start + count
  }
}
