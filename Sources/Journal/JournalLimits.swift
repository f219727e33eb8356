// The journal's limits.

/// Sizes of what the journal writes and keeps.
public struct JournalLimits: Sendable, Equatable {
  /// A segment that has reached this is followed by a new one. Whole segments are what is deleted when it is old
  /// enough.
  public var segmentBytes = 64 << 20
  /// The payload of one group. More in one piece is never written.
  public var groupBytes = 16 << 20
  /// What may wait for the disk: at this the hub takes no more that has to be stored.
  public var pendingBytes = 64 << 20
  /// Bytes of records after which a new snapshot is written while the hub runs; and at least as many as the last
  /// snapshot has, so that snapshots cost no more than the records do. A start reads about twice as much behind the
  /// snapshot at most.
  public var snapshotBytes = 64 << 20
  /// Bytes of a snapshot that are written between two fdatasyncs: more at once would have the journal's own wait behind
  /// it.
  public var snapshotSyncBytes = 8 << 20
  /// Whole snapshots that are kept; where the newest is broken, a start reads the one before it, and the segments
  /// since.
  public var snapshots = 2
  /// Seconds between two looks at what is too old, and before something is tried again that failed.
  public var maintenanceSeconds = 60.0

  /// Bytes of the largest segment that these limits allow: full, or with a single group that is larger. A larger file
  /// is no segment, and is not read.
  public var largestSegment: Int { max(segmentBytes, FileHeader.size + GroupHeader.size + groupBytes) }

  public init() {}

  func validate() {
    precondition(groupBytes <= Int(UInt32.max) && segmentBytes > FileHeader.size)
    precondition(groupBytes <= pendingBytes)
    precondition(snapshots >= 1 && snapshotBytes >= 1 && snapshotSyncBytes >= 1 && maintenanceSeconds > 0)
    precondition(max(segmentBytes, groupBytes) + 1024 <= Int(UInt32.max), "places in a segment are 32 bits in indexes")
  }
}

// What is read at once.
extension JournalLimits {
  /// Bytes of a segment that is read group by group: fewer calls of the kernel for many small groups.
  static let readAhead = 256 * 1024
  /// Up to so many bytes between two records are read with them: a page comes from the disk as a whole.
  static let gapBetweenRecords = 4096
  /// Bytes of one read of several records.
  static let recordsTogether = 256 * 1024
}
