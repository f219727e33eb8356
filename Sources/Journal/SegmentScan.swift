// Scans one segment to its last valid byte.

/// Where a segment's groups end, and why.
enum SegmentEnd: Equatable {
  /// Nothing follows the last group.
  case complete
  /// The write of a group, or of the header, was interrupted: the segment is to be cut here.
  case torn(at: Int)
  case damaged(Damage)
  case otherVersion(UInt32)
}

/// Scans a segment's bytes.
struct SegmentScan: ~Copyable {
  private let crc: CRC32C
  private let limits: JournalLimits

  init(limits: JournalLimits) {
    crc = CRC32C()
    self.limits = limits
  }

  /// Gives each intact group to `body`, in order. `number` is the first group's, and afterwards that of the next group.
  ///
  /// `isLast`: no other segment follows. Only the last one can have a torn tail, because a next one is created only
  /// when this one is completely on stable storage.
  func read<E: Error>(
    _ bytes: UnsafeRawBufferPointer, file: String, isLast: Bool, next number: inout UInt64,
    _ body: (UInt64, _ offset: Int, UnsafeRawBufferPointer) throws(E) -> Void
  ) throws(E) -> SegmentEnd {
    let seed: UInt32
    do throws(FileHeader.Fault) {
      let header = try unsafe FileHeader(bytes, crc)
      guard header.kind == .segment, header.group == number else { throw .foreign }
      seed = header.seed
    } catch {
      // Groups are written only behind a synced header, so the power failed while this header was being written.
      if isLast && bytes.count <= FileHeader.size { return .torn(at: 0) }
      if case .version(let version) = error { return .otherVersion(version) }
      return .damaged(Damage(kind: .header, file: file, offset: 0, group: number))
    }
    var offset = FileHeader.size
    while offset < bytes.count {
      guard let group = unsafe GroupHeader.payload(in: bytes, at: offset, maximum: limits.groupBytes, crc, seed: seed),
        unsafe group.header.number == number
      else {
        let isTorn = unsafe isLast && findGroup(in: bytes, from: offset, after: number &- 1, seed) == nil
        return isTorn ? .torn(at: offset) : .damaged(Damage(kind: .group, file: file, offset: offset, group: number))
      }
      try unsafe body(number, offset, group.payload)
      number += 1
      unsafe offset += GroupHeader.size + group.payload.count
    }
    return .complete
  }

  /// The offset of the next intact group with a number above `after`, at any byte. Only numbers that can have been
  /// reached are tried, so this costs about a nanosecond a byte.
  func findGroup(in bytes: UnsafeRawBufferPointer, from start: Int, after: UInt64, _ seed: UInt32) -> Int? {
    guard bytes.count >= GroupHeader.size, start <= bytes.count - GroupHeader.size else { return nil }
    // As many groups as the bytes could hold.
    let most = UInt64(bytes.count / GroupHeader.size) + 1
    for offset in start...(bytes.count - GroupHeader.size) {
      let distance = unsafe bytes.number(at: offset, UInt64.self) &- after
      guard distance >= 1, distance <= most else { continue }
      guard unsafe GroupHeader.payload(in: bytes, at: offset, maximum: limits.groupBytes, crc, seed: seed) == nil else {
        return offset
      }
    }
    return nil
  }
}
