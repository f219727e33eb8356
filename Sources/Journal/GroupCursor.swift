// Reads a segment group by group, with one group and a read-ahead in memory: for readers beside the writer, where a
// complete segment would be too large, or still grows.
import HubSystem

/// A position in a segment, and the groups from there on.
@safe
struct GroupCursor: ~Copyable {
  let file: any ReadableJournalFile
  private let limits: JournalLimits
  private let crc = CRC32C()
  /// Written only in `fill`; callers keep no pointer into it beyond the next call.
  private var buffer: UnsafeMutableRawBufferPointer
  /// The part of the file in the buffer.
  private var start = 0
  private var filled = 0
  /// Where the next group begins.
  private(set) var offset: Int
  /// The next group's number.
  private(set) var number: UInt64
  /// The file's header; nil until it was read.
  private var knownHeader: FileHeader?

  /// Begins at the group `first`, behind the header or at a known offset.
  init(_ file: any ReadableJournalFile, first: UInt64, at offset: Int = FileHeader.size, limits: JournalLimits) {
    self.file = file
    self.offset = offset
    number = first
    self.limits = limits
    unsafe buffer = .allocate(byteCount: JournalLimits.readAhead, alignment: 16)
  }

  deinit { unsafe buffer.deallocate() }

  /// The file's header; nil where it is missing or of an unknown version.
  mutating func header() throws(SystemError) -> FileHeader? {
    if knownHeader == nil { knownHeader = try FileHeader(of: file) }
    return knownHeader
  }

  /// The next complete group, whose payload is valid until the next call. Nil if there is none yet: the cursor then
  /// stays where it is, and the next call reads the file again.
  mutating func next() throws(SystemError) -> (header: GroupHeader, offset: Int, payload: UnsafeRawBufferPointer)? {
    guard let group = try unsafe wholeGroup() else {
      filled = 0  // its content may be truncated and written differently
      return nil
    }
    let at = offset
    unsafe offset += GroupHeader.size + group.payload.count
    number = unsafe group.header.number + 1
    return unsafe (group.header, at, group.payload)
  }

  /// Whether bytes follow, though `next` gave nil: a write in progress, or damage.
  func hasMore() throws(SystemError) -> Bool { try file.size() > offset }

  /// Moves to the next intact group, at any byte, unless its number is above `last`; false where there is none. Reads
  /// the rest of the segment into memory.
  mutating func skipDamage(through last: UInt64) throws(SystemError) -> Bool {
    guard let seed = try header()?.seed else { return false }
    var bytes: [UInt8] = []
    let rest = max(0, min(try file.size(), limits.largestSegment) - offset)
    _ = try file.read(at: offset, count: rest, into: &bytes)
    let found = unsafe bytes.withBytes { bytes -> (offset: Int, number: UInt64)? in
      let scan = SegmentScan(limits: limits)
      let offset = unsafe scan.findGroup(in: bytes, from: 0, after: number &- 1, seed)
      return offset.map { unsafe ($0, GroupHeader(bytes, at: $0).number) }
    }
    guard let found, found.number <= last else { return false }
    (offset, number) = (offset + found.offset, found.number)
    return true
  }

  private mutating func wholeGroup() throws(SystemError) -> (header: GroupHeader, payload: UnsafeRawBufferPointer)? {
    guard let seed = try header()?.seed, try fill(GroupHeader.size) else { return nil }
    let length = unsafe GroupHeader(window, at: 0).length
    guard length <= limits.groupBytes, try fill(GroupHeader.size + length) else { return nil }
    guard let group = unsafe GroupHeader.payload(in: window, at: 0, maximum: limits.groupBytes, crc, seed: seed),
      unsafe group.header.number == number
    else { return nil }
    return unsafe group
  }

  /// The buffer from `offset` on.
  private var window: UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(rebasing: buffer[(offset - start)..<filled])
  }

  /// Loads `count` bytes from `offset` on into the buffer; false where the file has fewer.
  private mutating func fill(_ count: Int) throws(SystemError) -> Bool {
    let isInside = offset >= start && offset + count <= start + filled
    if isInside { return true }
    if unsafe count > buffer.count {
      unsafe buffer.deallocate()
      unsafe buffer = .allocate(byteCount: max(count, 2 * buffer.count), alignment: 16)
    }
    start = offset
    filled = 0
    filled = try unsafe file.read(at: offset, into: buffer)
    return filled >= count
  }
}

extension ReadableJournalFile {
  /// Replaces the content of `bytes` with up to `count` bytes from `offset` on; gives their number.
  func read(at offset: Int, count: Int, into bytes: inout [UInt8]) throws(SystemError) -> Int {
    var failure: SystemError?
    bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      do throws(SystemError) {
        filled = try unsafe read(at: offset, into: UnsafeMutableRawBufferPointer(buffer))
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes.count
  }
}
