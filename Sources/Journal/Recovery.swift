// Reads a directory at a hub's start: the newest intact snapshot and the groups behind it, and where to continue
// writing.
import HubSystem

/// Why a reader rejects the payload of an intact group.
public struct InvalidPayload: Error, Equatable {
  public var text: String
  public init(_ text: String) { self.text = text }
}

/// What a start found and did.
public struct RecoveryReport: Equatable, Sendable {
  /// An incomplete write that was cut off.
  public struct Tail: Equatable, Sendable {
    public var file: String
    public var offset: Int
    public var bytes: Int
  }

  /// The last group that the snapshot covers; nil without one.
  public var snapshot: UInt64?
  /// Groups read behind the snapshot, and their bytes.
  public var groups = 0
  public var bytes = 0
  /// Broken snapshots that were skipped.
  public var brokenSnapshots: [String] = []
  public var tail: Tail?
  /// The damage that was accepted (`DamagePolicy.moveAside`).
  public var loss: Damage?
  /// Records were lost, at this start or at one after which nothing was written: the hub begins a new epoch.
  public var startsAnew = false
  /// The last group that there is; 0 for none.
  public var lastGroup: UInt64 = 0
}

/// A journal that was read, ready to be written.
public struct Recovered: ~Copyable {
  var writer: JournalWriter
  public let report: RecoveryReport

  /// Ends recovery and gives the writer.
  public consuming func takeWriter() -> JournalWriter { writer }
}

/// What happens with damage.
public enum DamagePolicy: Sendable {
  /// It is thrown, and no file is moved.
  case refuse
  /// What is behind it is moved aside, to files whose names begin with `damaged-`; the journal continues before it.
  case moveAside
}

/// Reads a journal's directory from the newest intact snapshot on. Segments covered by the snapshot are not read:
/// damage in them is found when history is read (`JournalHistory`).
public struct Recovery: ~Copyable {
  private let files: any JournalFiles
  private let limits: JournalLimits
  private let scan: SegmentScan
  private var report = RecoveryReport()

  public init(files: any JournalFiles, limits: JournalLimits) {
    self.files = files
    self.limits = limits
    scan = SegmentScan(limits: limits)
  }

  /// Gives the snapshot's parts to `snapshot` and then each group behind it to `group`, in order; cuts off an
  /// incomplete write, and deletes unfinished files; returns the writer that continues from there. O(bytes).
  public consuming func run(
    damage policy: DamagePolicy, snapshot: (UnsafeRawBufferPointer) throws(InvalidPayload) -> Void,
    group: (UInt64, UnsafeRawBufferPointer) throws(InvalidPayload) -> Void
  ) throws(JournalError) -> Recovered {
    report.startsAnew = try files.allNames().contains(LossMark.name)
    var next = try unsafe readSnapshot(snapshot) + 1
    let segments = try names(.segment).filter { $0.first >= next }
    var last: SegmentName?
    for (index, segment) in segments.enumerated() {
      let following = segments[(index + 1)...].map(\.name)
      if let damage = try unsafe read(segment, isLast: following.isEmpty, next: &next, group) {
        guard case .moveAside = policy else { throw .damaged(damage) }
        let isKept = try moveAside(damage, in: segment.name, following: following)
        if isKept { last = segment }
        break
      }
      last = segment
    }
    if let damage = brokenSnapshot(behind: next) {
      guard case .moveAside = policy else { throw .damaged(damage) }
      if report.loss == nil { _ = try moveAside(damage, in: nil, following: []) }
    }
    if let tail = report.tail {
      try cut(tail.file, to: tail.offset)
      // A torn header alone: the file is reused from its first byte.
      if tail.offset == 0 { last = nil }
    }
    try removeUnfinished()
    try synchronize(last?.name)
    let writer = try JournalWriter(
      files: files, limits: limits, next: next, segment: last?.name, hasLossMark: report.startsAnew)
    report.lastGroup = next - 1
    return Recovered(writer: writer, report: report)
  }

  /// Reads the newest snapshot and the groups behind it up to `last`, where a segment ends, without changes: for a
  /// reader beside the writer, which continues behind it.
  public consuming func read(
    through last: UInt64, snapshot: (UnsafeRawBufferPointer) throws(InvalidPayload) -> Void,
    group: (UInt64, UnsafeRawBufferPointer) throws(InvalidPayload) -> Void
  ) throws(JournalError) -> RecoveryReport {
    var next = try unsafe readSnapshot(snapshot) + 1
    for segment in try names(.segment) where segment.first >= next && segment.first <= last {
      if let damage = try unsafe read(segment, isLast: false, next: &next, group) { throw .damaged(damage) }
    }
    guard next > last else {
      let name = FileHeader.name(.segment, next)
      throw .damaged(Damage(kind: .missing(through: last), file: name, offset: 0, group: next))
    }
    return report
  }

  private func removeUnfinished() throws(JournalError) {
    for name in try files.allNames() where SnapshotFile.isUnfinished(name) || SegmentIndex.isUnfinished(name) {
      try inFile(name) { () throws(SystemError) in try files.remove(name) }
    }
  }

  // MARK: Snapshots

  /// The last group of the newest intact snapshot; 0 without one. Its parts were given to `body`.
  private mutating func readSnapshot(
    _ body: (UnsafeRawBufferPointer) throws(InvalidPayload) -> Void
  ) throws(JournalError) -> UInt64 {
    for name in try names(.snapshot).reversed() {
      switch try SnapshotFile.read(name, in: files, limits: limits) {
      case .broken: report.brokenSnapshots.append(name.name)
      case .otherVersion(let version): throw .otherVersion(version, file: name.name)
      case .whole(let parts):
        for index in parts.ranges.indices {
          do throws(InvalidPayload) { try unsafe parts.withPart(index, body) } catch {
            throw .damaged(
              Damage(
                kind: .meaning(error.text), file: name.name, offset: parts.offset(ofPart: index), group: name.first))
          }
        }
        report.snapshot = name.first
        return name.first
      }
    }
    return 0
  }

  /// The damage of a broken snapshot that covers unreadable groups: it was complete once, as its final name shows.
  private func brokenSnapshot(behind next: UInt64) -> Damage? {
    guard let name = report.brokenSnapshots.first, let group = FileHeader.group(ofName: name, .snapshot), group >= next
    else { return nil }
    return Damage(kind: .missing(through: group), file: name, offset: 0, group: next)
  }

  // MARK: Segments

  private func names(_ kind: FileHeader.Kind) throws(JournalError) -> [SegmentName] {
    SegmentName.all(kind, in: try files.allNames())
  }

  /// Reads one segment; gives its damage, or that groups before it are missing; nil if there is neither.
  private mutating func read(
    _ segment: SegmentName, isLast: Bool, next: inout UInt64,
    _ body: (UInt64, UnsafeRawBufferPointer) throws(InvalidPayload) -> Void
  ) throws(JournalError) -> Damage? {
    if segment.first > next {
      return Damage(kind: .missing(through: segment.first - 1), file: segment.name, offset: 0, group: next)
    }
    if let foreign = try segment.foreign(in: files, atMost: limits.largestSegment) {
      next = segment.first
      return foreign
    }
    let bytes = try inFile(segment.name) { () throws(SystemError) in try files.read(segment.name) }
    var number = segment.first
    var invalid: Damage?
    var groups = 0
    var size = 0
    let end = unsafe bytes.withUnsafeBytes { bytes in
      unsafe scan.read(bytes, file: segment.name, isLast: isLast, next: &number) { number, offset, payload in
        guard invalid == nil else { return }
        do throws(InvalidPayload) {
          try unsafe body(number, payload)
          groups += 1
          size += payload.count
        } catch {
          invalid = Damage(kind: .meaning(error.text), file: segment.name, offset: offset, group: number)
        }
      }
    }
    report.groups += groups
    report.bytes += size
    if let invalid {
      next = invalid.group
      return invalid
    }
    next = number
    switch end {
    case .complete: return nil
    case .damaged(let damage): return damage
    case .otherVersion(let version): throw .otherVersion(version, file: segment.name)
    case .torn(let offset):
      report.tail = RecoveryReport.Tail(file: segment.name, offset: offset, bytes: bytes.count - offset)
      return nil
    }
  }

  private func cut(_ name: String, to size: Int) throws(JournalError) {
    try inFile(name) { () throws(SystemError) in
      let file = try files.open(name)
      try file.truncate(to: size)
      try file.synchronize()
    }
  }

  /// Returns when what was read is on stable storage, since clients will be shown it now. A killed hub may have left a
  /// group that was written and not synced, or a segment whose name was not.
  private func synchronize(_ segment: String?) throws(JournalError) {
    try inFile(segment ?? files.path) { () throws(SystemError) in
      if let segment { try files.open(segment).synchronize() }
      try files.synchronize()
    }
  }

  // MARK: Loss that was accepted

  /// Copies the damaged segment aside, renames the segments behind it and broken snapshots, and cuts at the damage. An
  /// interruption at any moment leaves all bytes under one name or the other. Gives whether a part of the segment stays
  /// in use.
  private mutating func moveAside(
    _ damage: Damage, in segment: String?, following: [String]
  ) throws(JournalError) -> Bool {
    report.loss = damage
    report.startsAnew = true
    let (name, names) = (segment ?? damage.file, try files.allNames())
    // An earlier loss at this group, or one that was interrupted, keeps its files.
    var (prefix, number) = ("damaged-\(damage.group)-", 1)
    while names.contains(where: { $0.hasPrefix(prefix) }) {
      number += 1
      prefix = "damaged-\(damage.group)-\(number)-"
    }
    do throws(SystemError) {
      try LossMark.put(files)
      for name in report.brokenSnapshots { try files.rename(name, to: prefix + name) }
      guard segment != nil else {
        try files.synchronize()
        return false
      }
      let keeps = damage.offset > 0
      if keeps {
        // An unfinished copy that an earlier attempt left is overwritten.
        let unfinished = "damaged-.new"
        let copy = try files.open(unfinished)
        try copy.truncate(to: 0)
        let bytes = try files.read(name)
        try unsafe bytes.withBytes { (bytes) throws(SystemError) in try unsafe copy.append(bytes) }
        try copy.synchronize()
        try files.rename(unfinished, to: prefix + name)
        try files.synchronize()
      }
      for name in (keeps ? [] : [name]) + following { try files.rename(name, to: prefix + name) }
      try files.synchronize()
      guard keeps else { return false }
    } catch {
      throw .system(error, file: name)
    }
    try cut(name, to: damage.offset)
    return true
  }
}
