// A snapshot: the state after a group, in any number of parts, so that a start need not read every group since the
// beginning. It counts only when it is complete, which its last, empty group marks.
import HubSystem

enum SnapshotFile {
  static let unfinishedSuffix = ".new"

  /// Whether a name is that of an unfinished snapshot.
  static func isUnfinished(_ name: String) -> Bool {
    name.hasSuffix(unfinishedSuffix)
      && FileHeader.group(ofName: String(name.dropLast(unfinishedSuffix.count)), .snapshot) != nil
  }

  enum Content {
    /// The snapshot is complete: its parts in sequence.
    case whole(Parts)
    case broken
    case otherVersion(UInt32)
  }

  struct Parts {
    var bytes: [UInt8] = []
    var ranges: [Range<Int>] = []

    /// Where a part begins in the file.
    func offset(ofPart index: Int) -> Int {
      FileHeader.size + ranges[index].lowerBound + (index + 1) * GroupHeader.size
    }

    func withPart<E: Error>(_ index: Int, _ body: (UnsafeRawBufferPointer) throws(E) -> Void) throws(E) {
      try unsafe bytes.withBytes { (bytes) throws(E) in
        try unsafe body(UnsafeRawBufferPointer(rebasing: bytes[ranges[index]]))
      }
    }
  }

  /// Reads the snapshot of this name. Anything but a file, or a missing one, counts as broken.
  static func read(
    _ name: SegmentName, in files: any JournalFiles, limits: JournalLimits
  ) throws(JournalError) -> Content {
    try inFile(name.name) { () throws(SystemError) -> Content in
      guard try files.oddity(of: name.name) == nil, let file = try files.openForReading(name.name) else {
        return .broken
      }
      return try read(file, group: name.first, limits: limits)
    }
  }

  /// Reads a snapshot up to its end or the first broken part. A wrong length costs the memory of one group at most.
  static func read(
    _ file: any ReadableJournalFile, group: UInt64, limits: JournalLimits
  ) throws(SystemError) -> Content {
    var bytes: [UInt8] = []
    _ = try file.read(at: 0, count: FileHeader.size, into: &bytes)
    if let fault = unsafe bytes.withBytes({ unsafe headerFault($0, group) }) { return fault }
    var parts = Parts()
    var cursor = GroupCursor(file, first: 1, limits: limits)
    while let (_, _, payload) = try unsafe cursor.next() {
      if unsafe payload.isEmpty { return try cursor.offset == file.size() ? .whole(parts) : .broken }
      let start = parts.bytes.count
      unsafe parts.bytes.append(contentsOf: payload)
      parts.ranges.append(start..<parts.bytes.count)
    }
    return .broken
  }

  /// Why bytes are not the header of this snapshot; nil if they are.
  private static func headerFault(_ bytes: UnsafeRawBufferPointer, _ group: UInt64) -> Content? {
    do throws(FileHeader.Fault) {
      let header = try unsafe FileHeader(bytes, CRC32C())
      return header.kind == .snapshot && header.group == group ? nil : .broken
    } catch {
      if case .version(let version) = error { return .otherVersion(version) }
      return .broken
    }
  }
}

/// Writes a snapshot, part by part.
public struct SnapshotWriter: ~Copyable {
  private let files: any JournalFiles
  private let limits: JournalLimits
  private let crc: CRC32C
  private let header: FileHeader
  private let file: any JournalFile
  private var parts: UInt64 = 0
  private var unsynchronized = 0

  /// Bytes written so far.
  public var bytes: Int { file.size }

  private var temporaryName: String { header.name + SnapshotFile.unfinishedSuffix }

  /// Begins a snapshot of the state after `group`.
  public init(
    files: any JournalFiles, limits: JournalLimits, through group: UInt64, created: Int64
  ) throws(JournalError) {
    let header = FileHeader(kind: .snapshot, group: group, created: created)
    let sums = CRC32C()
    let bytes = header.encoded(sums)
    let file: any JournalFile
    do throws(SystemError) {
      file = try files.open(header.name + SnapshotFile.unfinishedSuffix)
      try file.truncate(to: 0)
      try unsafe bytes.withBytes { (bytes) throws(SystemError) in try unsafe file.append(bytes) }
    } catch {
      throw .system(error, file: header.name)
    }
    self.files = files
    self.limits = limits
    self.header = header
    self.file = file
    crc = sums
  }

  /// Deletes unfinished snapshots.
  public static func removeUnfinished(_ files: any JournalFiles) throws(JournalError) {
    try inFile(files.path) { () throws(SystemError) in
      for name in try files.names() where SnapshotFile.isUnfinished(name) { try files.remove(name) }
    }
  }

  /// Adds a part of 1 byte up to `JournalLimits.groupBytes`.
  public mutating func write(_ part: UnsafeRawBufferPointer) throws(JournalError) {
    unsafe precondition(!part.isEmpty && part.count <= limits.groupBytes)
    try unsafe writeGroup(part)
  }

  /// Completes the snapshot: returns when it is on stable storage under its final name.
  public consuming func finish() throws(JournalError) {
    try unsafe writeGroup(UnsafeRawBufferPointer(start: nil, count: 0))
    do throws(SystemError) {
      try file.synchronize()
      try files.rename(temporaryName, to: header.name)
      try files.synchronize()
    } catch {
      throw .system(error, file: header.name)
    }
  }

  private mutating func writeGroup(_ payload: UnsafeRawBufferPointer) throws(JournalError) {
    parts += 1
    var bytes: [UInt8] = []
    unsafe GroupHeader.encode(parts, payload, crc, seed: header.seed, into: &bytes)
    do throws(SystemError) {
      try unsafe bytes.withBytes { (bytes) throws(SystemError) in try unsafe file.append(bytes) }
      unsynchronized += bytes.count
      if unsynchronized >= limits.snapshotSyncBytes {
        try file.synchronize()
        unsynchronized = 0
      }
    } catch {
      throw .system(error, file: header.name)
    }
  }
}
