// Reads records of one segment by the places that an index has of them. A driver's records lie in many groups, each
// among those of thousands of other drivers, so that reading whole groups reads hundreds of times as much as is wanted;
// records that lie close together come with one call of the kernel.
import HubSystem

@safe
struct RecordCursor: ~Copyable {
  private let file: any ReadableJournalFile
  private let crc = CRC32C()
  /// Written in `read` only; nobody outside keeps a pointer into it beyond the next call.
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
  /// What part of the file is in the buffer.
  private var window = 0..<0

  init(_ file: any ReadableJournalFile) { self.file = file }

  deinit { unsafe buffer.deallocate() }

  /// The record at `entries[index]`, from its length on, valid until the next call; nil where the file has other bytes
  /// there. `entries` ascend, and are asked for in order.
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

  /// Where the last record ends that is to be read with the one at `index`.
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
