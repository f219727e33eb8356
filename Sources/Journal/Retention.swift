// Selects old files of a journal by a rule, among those covered by a snapshot.
import HubSystem

/// How long history is kept. The hub's own state does not depend on it: that is in the snapshots.
public struct RetentionRule: Sendable, Equatable {
  /// Segments whose newest group was written before this are deleted.
  public var milliseconds: Int64 = 30 * 24 * 3600 * 1000
  /// The oldest segments are deleted until all files together are within this.
  public var bytes = 64 << 30

  public init() {}
}

/// The files of a journal's directory, without other files and those moved aside.
public struct JournalInventory: Sendable, Equatable {
  /// A file of groups, and its index.
  public struct Segment: Sendable, Equatable {
    public var name: String
    public var first: UInt64
    /// When it was begun, in ms since 1970; nil where its header is invalid.
    public var created: Int64?
    public var bytes: Int
    /// Nil without an index.
    public var indexBytes: Int?
  }

  /// A file with the hub's state after a group.
  public struct Snapshot: Sendable, Equatable {
    public var name: String
    /// The last group that it covers.
    public var group: UInt64
    public var created: Int64?
    public var bytes: Int
  }

  /// Oldest first.
  public var segments: [Segment] = []
  public var snapshots: [Snapshot] = []
  /// Entries with the name of a segment or a snapshot that no hub can have written.
  public var foreign: [Damage] = []

  /// Bytes of all files: segments with their indexes, and snapshots.
  public var bytes: Int {
    segments.reduce(0) { $0 + $1.bytes + ($1.indexBytes ?? 0) } + snapshots.reduce(0) { $0 + $1.bytes }
  }

  /// Reads the directory and its files' headers. Files that are deleted meanwhile are left out.
  public init(_ files: any JournalFiles, limits: JournalLimits) throws(JournalError) {
    let names = try files.allNames()
    for file in SegmentName.all(.segment, in: names) {
      if let odd = try file.foreign(in: files, atMost: limits.largestSegment) {
        foreign.append(odd)
        continue
      }
      guard let about = try Self.about(file.name, .segment, file.first, files) else { continue }
      let index = try Self.about(SegmentIndex.name(file.first), .index, file.first, files)
      segments.append(
        Segment(
          name: file.name, first: file.first, created: about.created, bytes: about.bytes, indexBytes: index?.bytes))
    }
    for file in SegmentName.all(.snapshot, in: names) {
      if let odd = try file.foreign(in: files) {
        foreign.append(odd)
        continue
      }
      guard let about = try Self.about(file.name, .snapshot, file.first, files) else { continue }
      snapshots.append(
        Snapshot(name: file.name, group: file.first, created: about.created, bytes: about.bytes))
    }
  }

  /// When the newest segment with a plausible time was begun, in ms since 1970. A snapshot adds nothing: a segment
  /// begins beside it.
  public var newestCreated: Int64? { RetentionClock.newestBelieved(segments.compactMap(\.created)) }

  init(segments: [Segment], snapshots: [Snapshot]) {
    self.segments = segments
    self.snapshots = snapshots
  }

  /// Whether a directory has a segment or a snapshot: without either no hub ever wrote there, or the files are gone.
  public static func isThere(in files: any JournalFiles) throws(JournalError) -> Bool {
    try files.allNames().contains { name in
      [.segment, .snapshot].contains { FileHeader.group(ofName: name, $0) != nil }
    }
  }

  private static func about(
    _ name: String, _ kind: FileHeader.Kind, _ number: UInt64, _ files: any JournalFiles
  ) throws(JournalError) -> (bytes: Int, created: Int64?)? {
    try inFile(name) { () throws(SystemError) -> (bytes: Int, created: Int64?)? in
      guard let file = try files.openForReading(name) else { return nil }
      let created = try FileHeader(of: file).flatMap { $0.kind == kind && $0.group == number ? $0.created : nil }
      return (try file.size(), created)
    }
  }

  /// Whether a segment with groups behind the newest snapshot is so old that a new snapshot is due: without one the
  /// rule could not delete the segment in time. `now` is in ms since 1970.
  public func needsSnapshot(_ rule: RetentionRule, limits: JournalLimits, now: Int64) -> Bool {
    let covered = snapshots.last?.group ?? 0
    let behind = zip(segments, segments.dropFirst()).first { $1.first > covered + 1 }?.0 ?? segments.last
    guard let created = behind?.created else { return false }
    let age = min(max(rule.milliseconds / 4, limits.segmentAges.lowerBound), limits.segmentAges.upperBound)
    return now - created >= age
  }

  // MARK: What goes

  /// Files to delete: snapshots first, then segments, oldest first.
  struct Surplus: Equatable {
    var snapshots: [Snapshot] = []
    var segments: [Segment] = []
  }

  /// `broken` names snapshots known to be broken, which don't count. `now` is in ms since 1970.
  ///
  /// The newest segment always stays, and so does every one with a group behind the oldest kept snapshot.
  func surplus(_ rule: RetentionRule, keeping count: Int, broken: Set<String> = [], now: Int64) -> Surplus {
    let whole = snapshots.filter { !broken.contains($0.name) }
    guard let oldestKept = whole.suffix(count).first else { return Surplus() }
    var surplus = Surplus(snapshots: snapshots.filter { $0.group < oldestKept.group })
    // A broken snapshot may have any size, and intact history must not be deleted for it.
    let uncounted = snapshots.filter { $0.group < oldestKept.group || broken.contains($0.name) }
    var left = bytes - uncounted.reduce(0) { $0 + $1.bytes }
    for (segment, next) in zip(segments, segments.dropFirst()) {
      // Its last group precedes the next segment's first, and was written before that was begun.
      guard next.first <= oldestKept.group + 1 else { break }
      // After the clock was set back, the next segment's time says nothing about this one's end.
      let isOld = next.created.map { max($0, segment.created ?? .min) < now - rule.milliseconds } ?? false
      guard isOld || left > rule.bytes else { break }
      surplus.segments.append(segment)
      left -= segment.bytes + (segment.indexBytes ?? 0)
    }
    return surplus
  }

  /// Deletes files by the rule; gives the number of segments. A power failure at any moment leaves a journal without a
  /// gap.
  public func apply(
    _ rule: RetentionRule, limits: JournalLimits, broken: Set<String> = [], now: Int64, in files: any JournalFiles
  ) throws(JournalError) -> Int {
    let surplus = surplus(rule, keeping: limits.snapshots, broken: broken, now: now)
    do throws(SystemError) {
      for snapshot in surplus.snapshots { try files.remove(snapshot.name) }
      for segment in surplus.segments {
        if segment.indexBytes != nil { try files.remove(SegmentIndex.name(segment.first)) }
        try files.remove(segment.name)
        // Synced before the next deletion, so that after a power failure only the newest deleted one can reappear.
        try files.synchronize()
      }
      if !surplus.snapshots.isEmpty { try files.synchronize() }
      try removeStrayIndexes(in: files)
    } catch {
      throw .system(error, file: files.path)
    }
    return surplus.segments.count
  }

  /// A reader may have stored the index of a segment that was deleted meanwhile.
  private func removeStrayIndexes(in files: any JournalFiles) throws(SystemError) {
    let names = try files.names()
    let segments = Set(names.compactMap { FileHeader.group(ofName: $0, .segment) })
    for name in names {
      if let first = FileHeader.group(ofName: name, .index), !segments.contains(first) { try files.remove(name) }
    }
  }
}
