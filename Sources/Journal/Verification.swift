// Reads every byte of a journal, also beside its writer, and lists damage. Changes nothing.
import Glibc
import HubSystem

/// The result.
public struct Verification: Sendable, Equatable {
  /// Damage in segments and snapshots, in the order of the files.
  public var damages: [Damage] = []
  /// Indexes that don't belong to their segment, and are made again automatically.
  public var brokenIndexes: [String] = []
  /// Bytes behind the last intact group of the newest segment: a write in progress, or one cut off by a crash.
  public var unfinished: RecoveryReport.Tail?
  public var segments = 0
  public var snapshots = 0
  public var groups: UInt64 = 0
  public var bytes = 0
}

/// Reads a journal from end to end.
@safe
public struct Verifier {
  private let files: any JournalFiles
  private let limits: JournalLimits
  private let keys: RecordKeys
  private var found = Verification()

  public init(files: any JournalFiles, limits: JournalLimits, keys: @escaping RecordKeys) {
    self.files = files
    self.limits = limits
    unsafe self.keys = keys
  }

  /// `check` validates the payload of each group and each part of a snapshot.
  public mutating func run(
    _ check: (UnsafeRawBufferPointer) throws(InvalidPayload) -> Void
  ) throws(JournalError) -> Verification {
    let names = try files.allNames()
    let snapshots = SegmentName.all(.snapshot, in: names)
    var wholeSnapshots: [UInt64] = []
    for snapshot in snapshots where try unsafe readSnapshot(snapshot, check) { wholeSnapshots.append(snapshot.first) }
    let segments = SegmentName.all(.segment, in: names)
    // The first group that must exist: behind the newest intact snapshot, or behind the segment before.
    var expected: UInt64? = 1
    for (index, segment) in segments.enumerated() {
      if let next = expected, segment.first > next,
        !(index == 0 && wholeSnapshots.contains { $0 >= segment.first - 1 })
      {
        let missing = Damage(kind: .missing(through: segment.first - 1), file: segment.name, offset: 0, group: next)
        found.damages.append(missing)
      }
      expected = try unsafe readSegment(segment, isLast: index + 1 == segments.count, check)
    }
    return found
  }

  /// Reads and checks a snapshot; true if it is intact.
  private mutating func readSnapshot(
    _ name: SegmentName, _ check: (UnsafeRawBufferPointer) throws(InvalidPayload) -> Void
  ) throws(JournalError) -> Bool {
    guard let facts = try about(name.name) else { return false }
    found.snapshots += 1
    if let foreign = try name.foreign(in: files) {
      found.damages.append(foreign)
      return false
    }
    found.bytes += facts.bytes
    switch try SnapshotFile.read(name, in: files, limits: limits) {
    case .otherVersion(let version): throw .otherVersion(version, file: name.name)
    case .broken:
      found.damages.append(Damage(kind: .snapshot, file: name.name, offset: 0, group: name.first))
      return false
    case .whole(let parts):
      for index in parts.ranges.indices {
        do throws(InvalidPayload) { try unsafe parts.withPart(index, check) } catch {
          found.damages.append(
            Damage(
              kind: .meaning(error.text), file: name.name, offset: parts.offset(ofPart: index), group: name.first))
          return false
        }
      }
      return true
    }
  }

  /// Reads and checks a segment; gives the number of the group that must follow it, nil if that is unknown.
  private mutating func readSegment(
    _ name: SegmentName, isLast: Bool, _ check: (UnsafeRawBufferPointer) throws(InvalidPayload) -> Void
  ) throws(JournalError) -> UInt64? {
    if let foreign = try name.foreign(in: files, atMost: limits.largestSegment) {
      found.segments += 1
      found.damages.append(foreign)
      return nil
    }
    guard let bytes = try bytes(of: name.name) else { return nil }
    found.segments += 1
    found.bytes += bytes.count
    var number = name.first
    var invalid: Damage?
    let scan = SegmentScan(limits: limits)
    let end = unsafe bytes.withBytes { bytes in
      unsafe scan.read(bytes, file: name.name, isLast: isLast, next: &number) { number, offset, payload in
        do throws(InvalidPayload) {
          try unsafe check(payload)
        } catch {
          guard invalid == nil else { return }
          invalid = Damage(kind: .meaning(error.text), file: name.name, offset: offset, group: number)
        }
      }
    }
    found.groups += number - name.first
    if let invalid { found.damages.append(invalid) }
    if !isLast { try checkIndex(of: name) }
    switch end {
    case .complete: return number
    case .otherVersion(let version): throw .otherVersion(version, file: name.name)
    case .torn(let offset):
      found.unfinished = .init(file: name.name, offset: offset, bytes: bytes.count - offset)
      return number
    case .damaged(let damage):
      found.damages.append(damage)
      return nil
    }
  }

  /// Compares a segment's index file with the index that the segment gives.
  private mutating func checkIndex(of segment: SegmentName) throws(JournalError) {
    let name = SegmentIndex.name(segment.first)
    guard let facts = try about(name), let right = try index(of: segment) else { return }
    found.bytes += facts.kind == .file ? facts.bytes : 0
    // A file of another size is not read.
    let stored = facts == JournalFileFacts(kind: .file, bytes: right.count) ? try bytes(of: name) : nil
    if stored != right { found.brokenIndexes.append(name) }
  }

  /// The correct index of a segment; nil if the segment's header is invalid, or it was deleted meanwhile.
  private func index(of segment: SegmentName) throws(JournalError) -> [UInt8]? {
    try inFile(segment.name) { () throws(SystemError) -> [UInt8]? in
      guard let file = try files.openForReading(segment.name),
        let indexer = try SegmentIndexer(file, segment, limits: limits)
      else { return nil }
      try unsafe indexer.extend(keys)
      return SegmentIndex.encoded(indexer.segment, indexer.entries.sorted(), CRC32C())
    }
  }

  /// The kind and size of a file; nil if it was deleted meanwhile.
  private func about(_ name: String) throws(JournalError) -> JournalFileFacts? {
    try inFile(name) { () throws(SystemError) in try files.about(name) }
  }

  /// A file's content; nil if it was deleted meanwhile.
  private func bytes(of name: String) throws(JournalError) -> [UInt8]? {
    do throws(SystemError) { return try files.read(name) } catch {
      if error.errno == ENOENT { return nil }
      throw .system(error, file: name)
    }
  }
}

/// Reads all groups of a journal, oldest first, while `body` returns true. Segments that were written entirely before
/// `since` (ms since 1970), and those deleted meanwhile, are skipped. Of a damaged segment the groups before the damage
/// are given, and then those of the segments behind it, likewise where one is missing or of another version; at the end
/// the first fault is thrown. An incomplete write at the end of the newest segment is no fault. A payload that is
/// invalid to `body` ends the reading.
public func forEachGroup(
  of files: any JournalFiles, limits: JournalLimits, since: Int64 = .min,
  _ body: (_ number: UInt64, _ payload: UnsafeRawBufferPointer) throws(InvalidPayload) -> Bool
) throws(JournalError) {
  let inventory = try JournalInventory(files, limits: limits)
  let segments = inventory.segments
  var fault = inventory.foreign.first.map { JournalError.damaged($0) }
  var invalid: Damage?
  // The next required group; nil where unknown, or deleted by retention meanwhile.
  var expected: UInt64?
  for (index, segment) in segments.enumerated() {
    let isLast = index + 1 == segments.count
    // After the clock was set back, the next segment's time says nothing about this one's end.
    if !isLast, let end = segments[index + 1].created, end < since, segment.created ?? .min <= end {
      expected = nil
      continue
    }
    let name = SegmentName(name: segment.name, first: segment.first)
    if fault == nil, let next = expected, segment.first > next {
      let missing = Damage.Kind.missing(through: segment.first - 1)
      fault = .damaged(Damage(kind: missing, file: segment.name, offset: 0, group: next))
    }
    expected = nil
    do throws(SystemError) {
      guard let file = try files.openForReading(segment.name) else { continue }
      var cursor = GroupCursor(file, first: segment.first, limits: limits)
      let hasHeader = try cursor.header() != nil
      while hasHeader, let (header, offset, payload) = try unsafe cursor.next() {
        do throws(InvalidPayload) {
          guard try unsafe body(header.number, payload) else { return }
        } catch {
          invalid = Damage(kind: .meaning(error.text), file: segment.name, offset: offset, group: header.number)
          break
        }
      }
      let end = hasHeader ? cursor.offset : nil
      if fault == nil, invalid == nil, try file.size() != end {
        fault = try faultAtEnd(of: name, file, isLast: isLast, limits)
      }
      if hasHeader { expected = cursor.number }
    } catch {
      throw .system(error, file: segment.name)
    }
    if let invalid { throw .damaged(invalid) }
  }
  if let fault { throw fault }
}

/// Why a segment's groups end before its bytes do; nil where a write is under way there, or was cut off.
private func faultAtEnd(
  of name: SegmentName, _ file: any ReadableJournalFile, isLast: Bool, _ limits: JournalLimits
) throws(SystemError) -> JournalError? {
  var bytes: [UInt8] = []
  _ = try file.read(at: 0, count: file.size(), into: &bytes)
  var number = name.first
  let end = unsafe bytes.withBytes { bytes in
    unsafe SegmentScan(limits: limits).read(bytes, file: name.name, isLast: isLast, next: &number) { _, _, _ in }
  }
  switch end {
  case .complete, .torn: return nil
  case .damaged(let damage): return .damaged(damage)
  case .otherVersion(let version): return .otherVersion(version, file: name.name)
  }
}
