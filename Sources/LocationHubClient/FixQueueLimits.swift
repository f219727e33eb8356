// Limits of a driver's queue, and when it is synced.

extension FixQueue {
  /// Fixes kept. At it the oldest segment's are dropped and counted.
  static let maximumFixes = 20_000
  /// Bytes of all segments. At it the oldest segment's fixes are dropped and counted.
  static let maximumBytes = 4 * 1024 * 1024
  /// Moves kept; at it `move` fails with `full`.
  static let maximumMoves = 256
  /// Entries in memory that the disk does not take. At it the oldest fix is dropped and counted.
  static let maximumUnsaved = 2048
  /// Bytes of one record, which is a message: a longer one is damaged.
  static let maximumRecordBytes = 256 * 1024
  /// The size at which a segment is followed by the next one.
  static let segmentBytes = 64 * 1024
  /// Bytes of a segment: one record, and some marks, may follow the last that fits. A longer file is damaged, and cut
  /// off there.
  static let maximumSegmentBytes = segmentBytes + maximumRecordBytes + 4096
  /// Numbers of entries: at one a millisecond 146 million years. A higher one is damaged.
  static let maximumNumber: UInt64 = 1 << 62
  /// More entries than fit a segment: each has 17 bytes or more.
  static let maximumEntriesOfSegment: UInt64 = 64 * 1024
  /// Bytes read at once for sending.
  static let readBytes = 16 * 1024
}

extension DriverPart {
  /// Unconfirmed entries. At it more stay in the queue until some are confirmed.
  static let maximumInFlight = 1000
  /// Fixes of one batch, if the hub allows as many.
  static let maximumBatch = 100
  /// Entries are synced (fsync) after so many fixes, or one of the power mode's batches, or this time.
  static let fixesPerSync = 10
  static let syncSeconds = 30.0
  /// Seconds after which a failed read is tried again.
  static let readAgainSeconds = 10.0
}
