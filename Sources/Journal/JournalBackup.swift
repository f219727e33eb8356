// A copy of a journal that a hub can start from, made while another hub writes it.
//
// Nothing is locked and nothing waits. All files are opened first, the newest snapshot before the segments: those that
// retention deletes afterwards stay readable. Segments that the snapshot covers are copied as they are, also with
// damaged groups: no start reads them (but one of another version, or that no hub can have written, ends the copy). Of
// those behind it the valid groups are copied, of the newest one up to its last complete group. So the copy has what
// was stored when it began, as a later crash would have left it, and a mark (LossMark.swift): a hub that starts from it
// begins a new epoch, since the original continues to use the numbers behind it.
import Glibc
import HubSystem

/// The content of a copy.
public struct JournalBackup: Sendable, Equatable {
  public var files = 0
  public var bytes = 0
  /// The last group in the copy; 0 where there is none.
  public var lastGroup: UInt64 = 0
  /// Damage in segments that the snapshot covers, and groups that are missing there: of the history, not of the state.
  public var damages: [Damage] = []

  /// The last group that the copied snapshot covers; 0 without one.
  private var snapshot: UInt64 = 0

  private struct Opened {
    var name: SegmentName
    var file: any ReadableJournalFile
  }

  /// Whether damage is in the history that the snapshot covers.
  private func covers(_ damage: Damage) -> Bool {
    switch damage.kind {
    case .missing(let through): through <= snapshot
    case .group, .header, .snapshot, .meaning, .foreign:
      FileHeader.group(ofName: damage.file, .segment).map { $0 <= snapshot } ?? false
    }
  }

  /// Copies the journal in `source` to a new directory at `path`, and reads the copy back: `check` validates each
  /// payload. The copy is made under another name beside it and renamed when it is on stable storage, so that no
  /// partial copy has the name. O(bytes), with a segment in memory.
  ///
  /// Throws `damaged` where a group that a start from the copy would read is broken or missing.
  public static func make(
    of source: DiskFiles, at path: String, limits: JournalLimits, keys: @escaping RecordKeys,
    _ check: (UnsafeRawBufferPointer) throws(InvalidPayload) -> Void
  ) throws(JournalError) -> JournalBackup {
    let path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    guard unsafe access(path, F_OK) != 0 else {
      throw .system(SystemError(call: "mkdir", errno: EEXIST), file: path)
    }
    let unfinished = "\(path).unfinished-backup"
    let target = try DiskFiles(path: unfinished)
    // Left by a run that was killed: the lock shows that no other run is under way.
    try inFile(unfinished) { () throws(SystemError) in try empty(target) }
    do throws(JournalError) {
      var backup = try make(of: source, in: target, limits: limits)
      var verifier = unsafe Verifier(files: target, limits: limits, keys: keys)
      let found = try unsafe verifier.run(check)
      if let damage = found.damages.first(where: { !backup.covers($0) }) { throw .damaged(damage) }
      backup.damages = found.damages
      try inFile(path) { () throws(SystemError) in try name(unfinished, path) }
      return backup
    } catch {
      remove(target)
      throw error
    }
  }

  /// Gives the finished copy its name, on stable storage.
  private static func name(_ unfinished: String, _ path: String) throws(SystemError) {
    guard unsafe rename(unfinished, path) == 0 else { throw SystemError(call: "rename", errno: errno) }
    try DiskFiles.synchronizeParent(of: path)
  }

  /// Removes a failed copy. If that fails, it stays, under its unfinished name: the first error is the one reported.
  private static func remove(_ target: DiskFiles) {
    do throws(SystemError) { try empty(target) } catch { return }
    _ = unsafe rmdir(target.path)
  }

  private static func empty(_ target: DiskFiles) throws(SystemError) {
    for name in try target.names() { try target.remove(name) }
  }

  /// Copies to an empty directory. After an error the partial copy is left to the caller.
  static func make(
    of source: any JournalFiles, in target: any JournalFiles, limits: JournalLimits
  ) throws(JournalError) -> JournalBackup {
    let (snapshot, segments) = try open(source, limits)
    var backup = JournalBackup()
    backup.snapshot = snapshot?.name.first ?? 0
    var next = backup.snapshot + 1
    if let snapshot { try backup.copyWhole(snapshot, to: target) }
    for (index, segment) in segments.enumerated() {
      if segment.name.first <= backup.snapshot {
        try backup.copyWhole(segment, to: target)
      } else {
        try backup.copy(segment, isLast: index + 1 == segments.count, next: &next, to: target, limits)
      }
    }
    backup.lastGroup = next - 1
    try inFile(target.path) { () throws(SystemError) in
      try LossMark.put(target)
      try target.synchronize()
    }
    return backup
  }

  // MARK: Opening

  private static func open(
    _ source: any JournalFiles, _ limits: JournalLimits
  ) throws(JournalError) -> (snapshot: Opened?, segments: [Opened]) {
    for _ in 0..<JournalLimits.looksAtDirectory {
      let names = try source.allNames()
      let newest = try newestSnapshot(SegmentName.all(.snapshot, in: names), source, limits)
      let snapshot = try newest.flatMap { (name) throws(JournalError) in try open(name, in: source) }
      if newest != nil, snapshot == nil { continue }
      var segments: [Opened] = []
      var isOneGone = false
      for name in SegmentName.all(.segment, in: names) {
        if let foreign = try name.foreign(in: source, atMost: limits.largestSegment) { throw .damaged(foreign) }
        if let opened = try open(name, in: source) {
          segments.append(opened)
        } else {
          segments.removeAll()
          isOneGone = true
        }
      }
      // Retention deletes only what a snapshot covers: a newer snapshot than the opened one exists now.
      if isOneGone, segments.first.map({ $0.name.first > (newest?.first ?? 0) + 1 }) ?? true { continue }
      return (snapshot, segments)
    }
    throw .system(SystemError(call: "openat", errno: ENOENT), file: source.path)
  }

  /// The newest intact one; nil without one. A newer, broken one would prevent a start from the copy.
  private static func newestSnapshot(
    _ names: [SegmentName], _ source: any JournalFiles, _ limits: JournalLimits
  ) throws(JournalError) -> SegmentName? {
    for name in names.reversed() {
      switch try SnapshotFile.read(name, in: source, limits: limits) {
      case .whole: return name
      case .otherVersion(let version): throw .otherVersion(version, file: name.name)
      case .broken: continue
      }
    }
    return nil
  }

  private static func open(_ name: SegmentName, in source: any JournalFiles) throws(JournalError) -> Opened? {
    let file = try inFile(name.name) { () throws(SystemError) in try source.openForReading(name.name) }
    return file.map { Opened(name: name, file: $0) }
  }

  /// Copies a segment's complete groups, beginning with `next`, which is then the group behind them. In the newest
  /// segment one may be incomplete behind these.
  private mutating func copy(
    _ segment: Opened, isLast: Bool, next: inout UInt64, to target: any JournalFiles, _ limits: JournalLimits
  ) throws(JournalError) {
    let name = segment.name
    if name.first > next {
      throw .damaged(Damage(kind: .missing(through: name.first - 1), file: name.name, offset: 0, group: next))
    }
    var bytes: [UInt8] = []
    try inFile(name.name) { () throws(SystemError) in
      _ = try segment.file.read(at: 0, count: segment.file.size(), into: &bytes)
    }
    next = name.first
    let end = unsafe bytes.withBytes { bytes in
      unsafe SegmentScan(limits: limits).read(bytes, file: name.name, isLast: isLast, next: &next) { _, _, _ in }
    }
    switch end {
    case .complete: try copy(segment, to: target, bytes: bytes.count)
    case .torn(at: 0): break  // its header is being written: it is empty
    case .torn(let offset): try copy(segment, to: target, bytes: offset)
    case .damaged(let damage): throw .damaged(damage)
    case .otherVersion(let version): throw .otherVersion(version, file: name.name)
    }
  }

  /// Copies a snapshot, or a segment that it covers: these no longer grow.
  private mutating func copyWhole(_ source: Opened, to target: any JournalFiles) throws(JournalError) {
    let size = try inFile(source.name.name) { () throws(SystemError) in try source.file.size() }
    try copy(source, to: target, bytes: size)
  }

  private mutating func copy(_ source: Opened, to target: any JournalFiles, bytes: Int) throws(JournalError) {
    try inFile(source.name.name) { () throws(SystemError) in
      let copy = try target.open(source.name.name)
      var part: [UInt8] = []
      var offset = 0
      while offset < bytes {
        part.removeAll(keepingCapacity: true)
        let count = try source.file.read(at: offset, count: min(1 << 20, bytes - offset), into: &part)
        // It can't shrink: only a start truncates a crash's incomplete write.
        guard count > 0 else { throw SystemError(call: "pread", errno: ENODATA) }
        try unsafe part.withBytes { (bytes) throws(SystemError) in try unsafe copy.append(bytes) }
        offset += count
      }
      try copy.synchronize()
    }
    files += 1
    self.bytes += bytes
  }
}
