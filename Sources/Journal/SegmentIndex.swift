// Maps keys to the offsets of their records in a segment: a file beside each full segment, so that one trip's records
// are found without reading all trips'. It is a cache: made from the segment, and again where it is missing or broken.
//
//     header    36 bytes: magic, version, CRC-32C, and the segment's first group, "created" and seed
//     about     40 bytes: bytes of the segment 8, bytes of its whole groups 8, the group behind them 8, where its last
//               group begins 4, that group's CRC-32C 4, number of entries 4, CRC-32C of the 36 bytes before 4
//     blocks    4096 bytes each: 170 entries (key 8, where the group begins 4, where in its payload the record begins
//               4, bytes of the record 4, their CRC-32C 4), sorted; zeros; CRC-32C 4 over the block's number (8 bytes)
//               and all before it
//
// An entry has its record's own checksum, computed when the group's was checked: so a record can be validated without
// the rest of its group, which has most of the bytes.
//
// Entries are in blocks with checksums, so that a search reads and checks twelve blocks of a file of a million entries.
// It is not synced: checksums detect what a power failure tears.
import HubSystem

/// A record with a key.
struct IndexEntry: Comparable, Sendable {
  static let size = 24

  var key: UInt64
  /// The offset of its group, in bytes from the segment's start.
  var group: UInt32
  /// The record's offset in the group's payload, and its size in bytes, its length prefix included.
  var record: UInt32
  var length: UInt32
  /// CRC-32C of these bytes.
  var sum: UInt32

  /// Its range in the segment.
  var range: Range<Int> {
    let start = Int(group) + GroupHeader.size + Int(record)
    return start..<start + Int(length)
  }

  static func < (left: IndexEntry, right: IndexEntry) -> Bool {
    (left.key, left.group, left.record) < (right.key, right.group, right.record)
  }
}

/// The state of a segment when an index was made.
struct IndexedSegment: Equatable, Sendable {
  /// The segment's header.
  var header: FileHeader
  var bytes = 0
  /// Bytes up to the end of its last complete group. Fewer than `bytes` where it is damaged.
  var wholeBytes = FileHeader.size
  /// The number of the group behind its last complete one.
  var next: UInt64
  var lastGroup: UInt32 = 0
  var lastSum: UInt32 = 0

  var first: UInt64 { header.group }
}

enum SegmentIndex {
  static let aboutSize = 40
  static let blockSize = 4096
  static let entriesPerBlock = 170

  static func name(_ first: UInt64) -> String { FileHeader.name(.index, first) }

  /// Whether a name is that of an unfinished index.
  static func isUnfinished(_ name: String) -> Bool {
    guard let range = name.firstIndex(of: ".").flatMap({ name[$0...].firstIndex(of: "+") }) else { return false }
    return FileHeader.group(ofName: String(name[..<range]), .index) != nil
  }

  /// The bytes of an index file. `entries` must be sorted.
  static func encoded(_ segment: IndexedSegment, _ entries: [IndexEntry], _ crc: borrowing CRC32C) -> [UInt8] {
    var header = segment.header
    header.kind = .index
    var bytes = header.encoded(crc)
    let blocks = (entries.count + entriesPerBlock - 1) / entriesPerBlock
    bytes.reserveCapacity(bytes.count + aboutSize + blocks * blockSize)
    bytes.append(littleEndian: UInt64(segment.bytes))
    bytes.append(littleEndian: UInt64(segment.wholeBytes))
    bytes.append(littleEndian: segment.next)
    bytes.append(littleEndian: segment.lastGroup)
    bytes.append(littleEndian: segment.lastSum)
    bytes.append(littleEndian: UInt32(entries.count))
    bytes.append(littleEndian: sum(bytes, from: FileHeader.size, 0, crc))
    for block in 0..<blocks {
      let start = bytes.count
      for entry in entries[(block * entriesPerBlock)..<min(entries.count, (block + 1) * entriesPerBlock)] {
        bytes.append(littleEndian: entry.key)
        bytes.append(littleEndian: entry.group)
        bytes.append(littleEndian: entry.record)
        bytes.append(littleEndian: entry.length)
        bytes.append(littleEndian: entry.sum)
      }
      bytes.append(contentsOf: repeatElement(0, count: start + blockSize - 4 - bytes.count))
      bytes.append(littleEndian: sum(bytes, from: start, blockSum(block, crc), crc))
    }
    return bytes
  }

  private static func sum(_ bytes: [UInt8], from start: Int, _ sum: UInt32, _ crc: borrowing CRC32C) -> UInt32 {
    unsafe bytes.withUnsafeBytes { unsafe crc.extend(sum, UnsafeRawBufferPointer(rebasing: $0[start...])) }
  }

  fileprivate static func blockSum(_ block: Int, _ crc: borrowing CRC32C) -> UInt32 {
    unsafe withUnsafeBytes(of: UInt64(block).littleEndian) { unsafe crc($0) }
  }
}

/// An open index file that belongs to its segment.
struct OpenSegmentIndex: ~Copyable {
  let segment: IndexedSegment
  private let file: any ReadableJournalFile
  private let count: Int
  private let crc = CRC32C()
  private var block: [UInt8] = []

  private var blocks: Int { (count + SegmentIndex.entriesPerBlock - 1) / SegmentIndex.entriesPerBlock }

  private init(_ file: any ReadableJournalFile, _ segment: IndexedSegment, count: Int) {
    self.file = file
    self.segment = segment
    self.count = count
  }

  /// Nil where the file is no intact index of this version.
  static func open(_ file: any ReadableJournalFile, first: UInt64) throws(SystemError) -> OpenSegmentIndex? {
    let size = FileHeader.size + SegmentIndex.aboutSize
    var head: [UInt8] = []
    guard try file.read(at: 0, count: size, into: &head) == size,
      let (segment, count) = unsafe head.withUnsafeBytes({ unsafe about($0) }), segment.first == first
    else { return nil }
    let index = OpenSegmentIndex(file, segment, count: count)
    guard try file.size() == size + index.blocks * SegmentIndex.blockSize else { return nil }
    return index
  }

  private static func about(
    _ bytes: UnsafeRawBufferPointer
  ) -> (segment: IndexedSegment, entries: Int)? {
    let crc = CRC32C()
    var header: FileHeader
    do throws(FileHeader.Fault) { header = try unsafe FileHeader(bytes, crc) } catch { return nil }
    let start = FileHeader.size
    let end = start + SegmentIndex.aboutSize - 4
    guard header.kind == .index,
      unsafe crc(UnsafeRawBufferPointer(rebasing: bytes[start..<end])) == bytes.number(at: end, UInt32.self),
      let size = unsafe Int(exactly: bytes.number(at: start, UInt64.self)),
      let wholeBytes = unsafe Int(exactly: bytes.number(at: start + 8, UInt64.self))
    else { return nil }
    header.kind = .segment
    let segment = unsafe IndexedSegment(
      header: header, bytes: size, wholeBytes: wholeBytes, next: bytes.number(at: start + 16, UInt64.self),
      lastGroup: bytes.number(at: start + 24, UInt32.self), lastSum: bytes.number(at: start + 28, UInt32.self))
    return unsafe (segment, Int(bytes.number(at: start + 32, UInt32.self)))
  }

  /// The entries with `key`, in order; nil where a block is broken.
  mutating func entries(_ key: UInt64) throws(SystemError) -> [IndexEntry]? {
    // The first block whose last entry is not below the key.
    var low = 0
    var high = blocks
    while low < high {
      let middle = (low + high) / 2
      guard try load(middle) else { return nil }
      if entry(entries(in: middle) - 1).key < key { low = middle + 1 } else { high = middle }
    }
    var found: [IndexEntry] = []
    while low < blocks {
      guard try load(low) else { return nil }
      for index in 0..<entries(in: low) {
        let entry = entry(index)
        if entry.key > key { return found }
        if entry.key == key { found.append(entry) }
      }
      low += 1
    }
    return found
  }

  private func entries(in block: Int) -> Int {
    min(SegmentIndex.entriesPerBlock, count - block * SegmentIndex.entriesPerBlock)
  }

  private func entry(_ index: Int) -> IndexEntry {
    let start = index * IndexEntry.size
    return unsafe block.withUnsafeBytes {
      unsafe IndexEntry(
        key: $0.number(at: start, UInt64.self), group: $0.number(at: start + 8, UInt32.self),
        record: $0.number(at: start + 12, UInt32.self), length: $0.number(at: start + 16, UInt32.self),
        sum: $0.number(at: start + 20, UInt32.self))
    }
  }

  private mutating func load(_ number: Int) throws(SystemError) -> Bool {
    let offset = FileHeader.size + SegmentIndex.aboutSize + number * SegmentIndex.blockSize
    guard try file.read(at: offset, count: SegmentIndex.blockSize, into: &block) == SegmentIndex.blockSize else {
      return false
    }
    let end = SegmentIndex.blockSize - 4
    return unsafe block.withUnsafeBytes { bytes in
      let sum = unsafe crc.extend(SegmentIndex.blockSum(number, crc), UnsafeRawBufferPointer(rebasing: bytes[..<end]))
      return unsafe sum == bytes.number(at: end, UInt32.self)
    }
  }
}
