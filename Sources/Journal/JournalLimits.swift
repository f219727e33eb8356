// The journal's limits.

/// Sizes of what the journal writes and keeps.
public struct JournalLimits: Sendable, Equatable {
  /// The size at which a segment is followed by a new one. Segments are deleted as a whole.
  public var segmentBytes = 64 << 20
  /// The largest payload of a group.
  public var groupBytes = 16 << 20
  /// Bytes of records that may wait for the disk, besides those being written. Past it the hub refuses changes.
  public var pendingBytes = 64 << 20
  /// Bytes of records after which a new snapshot is written while the hub runs; at least as many as the last snapshot
  /// has, so that snapshots cost no more than records. A start reads about twice as much behind the snapshot at most.
  public var snapshotBytes = 64 << 20
  /// Bytes of a snapshot that are written between two fdatasyncs: more would delay the journal's own.
  public var snapshotSyncBytes = 8 << 20
  /// Intact snapshots that are kept; where the newest is broken, a start reads the one before it, and the segments
  /// since.
  public var snapshots = 2
  /// The age in ms at which a segment that no snapshot covers makes a new one due: a quarter of
  /// `RetentionRule.milliseconds`, within these bounds. Retention deletes only what two snapshots cover. The upper
  /// bound is less than `RetentionClock.longestPause`.
  public var segmentAges: ClosedRange<Int64> = 3600 * 1000...24 * 3600 * 1000
  /// Seconds between two checks for old files, and before a failure is tried again.
  public var maintenanceSeconds = 60.0

  /// Bytes of the largest possible segment: full, or with a single group that is larger. A larger file is no segment,
  /// and is not read.
  public var largestSegment: Int { max(segmentBytes, FileHeader.size + GroupHeader.size + groupBytes) }

  public init() {}

  func validate() {
    precondition(groupBytes <= Int(UInt32.max) && segmentBytes > FileHeader.size)
    precondition(groupBytes <= pendingBytes)
    precondition(snapshots >= 1 && snapshotBytes >= 1 && snapshotSyncBytes >= 1 && maintenanceSeconds > 0)
    precondition(max(segmentBytes, groupBytes) + 1024 <= Int(UInt32.max), "offsets in a segment are 32 bits in indexes")
  }
}

// Sizes of reads.
extension JournalLimits {
  /// Bytes read ahead in a segment: fewer system calls for many small groups.
  static let readAhead = 256 * 1024
  /// Gaps up to this size between two records are read with them: the disk reads full pages anyway.
  static let gapBetweenRecords = 4096
  /// Bytes of one read of several records.
  static let recordsTogether = 256 * 1024
  /// How often a backup reads the directory again, because files it needs were deleted. Past it the backup fails.
  static let looksAtDirectory = 100
}
