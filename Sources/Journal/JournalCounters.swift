// What a journal says of itself while it is written.
public import HubBytes
public import Synchronization

/// How the journal is.
public enum JournalCondition: UInt8, Sendable, AtomicRepresentable {
  case good
  /// No room on the disk, or the directory is gone; it is tried again, and goes on by itself.
  case full
  /// A write failed; nothing is stored any more before a restart.
  case stopped
}

/// What was written so far.
public struct JournalCounters: Sendable, Equatable {
  public var groups: UInt64 = 0
  /// Submissions that these groups held.
  public var submissions: UInt64 = 0
  public var bytes: UInt64 = 0
  /// Time spent in write and fdatasync.
  public var busyNanoseconds: UInt64 = 0
  /// How long each group took, write and fdatasync.
  public var commitTimes = LatencyHistogram()
  public var timesFull: UInt64 = 0
  /// Bytes that are free on the journal's disk, some seconds old; nil while nobody knows.
  public var freeBytes: UInt64?
  /// Why nothing could be stored the last time.
  public var lastFull: JournalError?
}
