// How much a driver's queue keeps, and when it goes to the disk.

extension FixQueue {
  /// Fixes kept. At it the oldest segment's go, and are counted.
  static let maximumFixes = 20_000
  /// Bytes of all segments, likewise.
  static let maximumBytes = 4 * 1024 * 1024
  /// Moves of trips kept; at it `move` fails with `full`.
  static let maximumMoves = 256
  /// Entries that the disk does not take, kept in memory until it does. At it the oldest fix goes, and is counted.
  static let maximumUnsaved = 2048
  /// Bytes of one record, which is a message: what claims to be longer is damaged.
  static let maximumRecordBytes = 256 * 1024
  /// A segment that has so many bytes is followed by the next one.
  static let segmentBytes = 64 * 1024
  /// Bytes of a segment at most: one record, and some marks, may follow the last that fits. A file that is longer is
  /// damaged, and cut off there.
  static let maximumSegmentBytes = segmentBytes + maximumRecordBytes + 4096
  /// Numbers of entries: at one a millisecond 146 million years. What claims a higher one is damaged.
  static let maximumNumber: UInt64 = 1 << 62
  /// More entries than a segment can have: each has 17 bytes and more.
  static let maximumEntriesOfSegment: UInt64 = 64 * 1024
  /// Read at once for sending.
  static let readBytes = 16 * 1024
}

extension DriverPart {
  /// Entries on their way to the hub. At it more stay in the queue until some are confirmed.
  static let maximumInFlight = 1000
  /// Fixes of one batch, where the hub takes as many.
  static let maximumBatch = 100
  /// What was kept goes to the disk (fsync) after so many fixes, or one of the power mode's batches, or this time.
  static let fixesPerSync = 10
  static let syncSeconds = 30.0
  /// Where the disk does not let the queue be read, it is tried again after so long.
  static let readAgainSeconds = 10.0
}
