// The journal's records of one trip or one driver, read beside its writer, oldest first, up to the present.
//
//     full segment      its index (a file beside it, made here where it is missing or broken) → groups → records
//     newest segment    an index in memory, which each question updates
//
// Nothing is locked. A segment that retention deletes meanwhile is skipped; a group is given only when its checksum is
// right.
import HubSystem
import Synchronization

/// Reports the keys of a group's records, each with the offset of the record's length (4 bytes, little-endian, of what
/// follows them). A record may have several keys. Invalid payloads have no keys.
public typealias RecordKeys =
  @Sendable (_ payload: UnsafeRawBufferPointer, _ note: (_ key: UInt64, _ offset: Int) -> Void) -> Void

/// A journal's directory, open for reading. For one thread at a time; may be used while a hub writes there, by the
/// hub's own process or another.
@safe
public final class JournalHistory {
  private let files: any JournalFiles
  private let limits: JournalLimits
  private let keys: RecordKeys
  private let keepsIndexes: Bool
  /// When segments began, by their first group: each header is read once.
  private var created: [UInt64: Int64] = [:]
  private var newest: SegmentIndexer?
  /// Index files that had no room on the disk.
  public private(set) var indexesNotStored = 0
  private static let unfinishedNames = Atomic<UInt64>(0)

  /// `keepsIndexes` writes index files for full segments, which only the process with the journal's lock should do;
  /// without, a full segment that has none is read entirely for each question.
  public convenience init(
    directory: String, limits: JournalLimits, keepsIndexes: Bool = true, keys: @escaping RecordKeys
  ) throws(JournalError) {
    unsafe self.init(files: try DiskFiles(beside: directory), limits: limits, keepsIndexes: keepsIndexes, keys: keys)
  }

  init(files: any JournalFiles, limits: JournalLimits, keepsIndexes: Bool, keys: @escaping RecordKeys) {
    self.files = files
    self.limits = limits
    self.keepsIndexes = keepsIndexes
    unsafe self.keys = keys
  }

  /// Gives each record with `key`, its length prefix included, to `body`, oldest first, until that returns false.
  ///
  /// `since` is in ms since 1970 by the hub's clock: segments that were written entirely before it are skipped, so
  /// older records may come. Newer ones are missing only where the clock was set back by more than a segment's time
  /// within that segment. Costs some 15 small reads for each segment since then, and one for each record, or run of
  /// adjacent records; memory is 256 KiB and the positions found.
  ///
  /// Throws `damaged` with the first damage that was met, after everything that can be read was given.
  public func forEachRecord(
    key: UInt64, since: Int64 = .min, _ body: (_ record: UnsafeRawBufferPointer) -> Bool
  ) throws(JournalError) {
    var damage: Damage?
    let segments = try segments()
    for (index, segment) in segments.enumerated() {
      let isLast = index + 1 == segments.count
      if !isLast, since != .min, let end = try created(segments[index + 1]), end < since,
        // After the clock was set back, the next segment's time says nothing about this one's end.
        try created(segment) ?? .min <= end
      {
        continue
      }
      guard let found = try entries(key, of: segment, isLast: isLast) else { continue }
      if damage == nil { damage = found.damage }
      guard try unsafe give(found.entries, of: segment, &damage, body) else { return }
    }
    if let damage { throw .damaged(damage) }
  }

  /// Makes the missing and broken index files but the newest segment's, while `shouldContinue`, and counts them.
  public func indexFullSegments(while shouldContinue: () -> Bool = { true }) throws(JournalError) -> Int {
    var made = 0
    for segment in try segments().dropLast() where shouldContinue() {
      guard let file = try open(segment) else { continue }
      let isThere = try inFile(segment.name) { () throws(SystemError) in try openIndex(of: segment, file) != nil }
      guard !isThere, let indexer = try index(segment, file) else { continue }
      try inFile(SegmentIndex.name(segment.first)) { () throws(SystemError) in try store(indexer) }
      made += 1
    }
    return made
  }

  // MARK: Segments

  private func segments() throws(JournalError) -> [SegmentName] {
    let segments = SegmentName.all(.segment, in: try files.allNames())
    if created.count > 2 * segments.count + 16 {
      let known = Set(segments.map(\.first))
      created = created.filter { known.contains($0.key) }
    }
    return segments
  }

  /// When a segment began; nil where its header can't be read (any more).
  private func created(_ segment: SegmentName) throws(JournalError) -> Int64? {
    if let known = created[segment.first] { return known }
    let found = try inFile(segment.name) { () throws(SystemError) -> Int64? in
      guard let file = try files.openForReading(segment.name) else { return nil }
      return try FileHeader(of: file)?.created
    }
    created[segment.first] = found
    return found
  }

  // MARK: Indexes

  private struct Found {
    var entries: [IndexEntry]
    var damage: Damage?
  }

  /// A segment's entries with `key`; nil if it was deleted meanwhile.
  private func entries(_ key: UInt64, of segment: SegmentName, isLast: Bool) throws(JournalError) -> Found? {
    if isLast { return try newestEntries(key, of: segment) }
    if let found = try storedEntries(key, of: segment) { return found }
    guard let file = try open(segment) else { return nil }
    guard let indexer = try index(segment, file) else { return Found(entries: [], damage: segment.brokenHeader) }
    if keepsIndexes {
      // A full disk must not prevent the answer.
      do throws(SystemError) { try store(indexer) } catch { indexesNotStored += 1 }
    }
    return Found(entries: indexer.entries.filter { $0.key == key }, damage: indexer.segment.damage)
  }

  /// The entries in the index file; nil if it is missing, or is not valid for this segment.
  private func storedEntries(_ key: UInt64, of segment: SegmentName) throws(JournalError) -> Found? {
    try inFile(segment.name) { () throws(SystemError) in
      guard let file = try files.openForReading(segment.name), var index = try openIndex(of: segment, file),
        let entries = try index.entries(key)
      else { return nil }
      return Found(entries: entries, damage: index.segment.damage)
    }
  }

  /// The entries of the newest segment, in the index in memory, which is updated first.
  private func newestEntries(_ key: UInt64, of segment: SegmentName) throws(JournalError) -> Found? {
    if newest?.segment.first != segment.first {
      newest = nil
      guard let file = try open(segment) else { return nil }
      newest = try inFile(segment.name) { () throws(SystemError) in try SegmentIndexer(file, segment, limits: limits) }
    }
    guard let newest else { return nil }  // its header is being written
    try inFile(segment.name) { () throws(SystemError) in try unsafe newest.extend(keys) }
    return Found(entries: newest.entries.filter { $0.key == key }, damage: nil)
  }

  private func open(_ segment: SegmentName) throws(JournalError) -> (any ReadableJournalFile)? {
    try inFile(segment.name) { () throws(SystemError) in try files.openForReading(segment.name) }
  }

  private func openIndex(
    of segment: SegmentName, _ file: any ReadableJournalFile
  ) throws(SystemError) -> OpenSegmentIndex? {
    guard let indexFile = try files.openForReading(SegmentIndex.name(segment.first)),
      let index = try OpenSegmentIndex.open(indexFile, first: segment.first)
    else { return nil }
    // The index is valid if the segment's header, size and last group are those that it was made from.
    guard try file.size() == index.segment.bytes, try FileHeader(of: file) == index.segment.header else { return nil }
    guard index.segment.lastGroup > 0 else { return index }
    var header: [UInt8] = []
    guard try file.read(at: Int(index.segment.lastGroup), count: GroupHeader.size, into: &header) == GroupHeader.size,
      unsafe header.withUnsafeBytes({ unsafe GroupHeader($0, at: 0).sum }) == index.segment.lastSum
    else { return nil }
    return index
  }

  /// Reads a full segment; nil where its header is invalid.
  private func index(
    _ segment: SegmentName, _ file: any ReadableJournalFile
  ) throws(JournalError) -> SegmentIndexer? {
    try inFile(segment.name) { () throws(SystemError) in
      let indexer =
        newest?.segment.first == segment.first ? newest : try SegmentIndexer(file, segment, limits: limits)
      try unsafe indexer?.extend(keys)
      return indexer
    }
  }

  /// Writes an index file: under a name of its own first, since two threads may do the same at once, with the same
  /// result.
  private func store(_ indexer: SegmentIndexer) throws(SystemError) {
    let name = SegmentIndex.name(indexer.segment.first)
    let unfinished = "\(name)+\(Self.unfinishedNames.wrappingAdd(1, ordering: .relaxed).newValue)"
    let bytes = SegmentIndex.encoded(indexer.segment, indexer.entries.sorted(), CRC32C())
    let file = try files.open(unfinished)
    do throws(SystemError) {
      try file.truncate(to: 0)
      try unsafe bytes.withBytes { (bytes) throws(SystemError) in try unsafe file.append(bytes) }
      try files.rename(unfinished, to: name)
    } catch {
      try files.remove(unfinished)
      throw error
    }
  }

  // MARK: Records

  /// Gives the records at `entries`; false where `body` ends it.
  private func give(
    _ entries: [IndexEntry], of segment: SegmentName, _ damage: inout Damage?,
    _ body: (UnsafeRawBufferPointer) -> Bool
  ) throws(JournalError) -> Bool {
    guard !entries.isEmpty else { return true }
    return try inFile(segment.name) { () throws(SystemError) in
      guard let file = try files.openForReading(segment.name) else { return true }
      var cursor = RecordCursor(file)
      for (index, entry) in entries.enumerated() {
        if let record = try unsafe cursor.record(index, of: entries) {
          guard unsafe body(record) else { return false }
        } else if damage == nil {
          damage = Damage(kind: .group, file: segment.name, offset: Int(entry.group), group: segment.first)
        }
      }
      return true
    }
  }
}
