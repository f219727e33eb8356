// Counters of a journal's writer.
public import HubBytes
public import Synchronization

/// The state of the journal.
public enum JournalCondition: UInt8, Sendable, AtomicRepresentable {
  case good
  /// The disk is full, or the directory is gone. Writing is retried until it succeeds.
  case full
  /// A write failed; nothing is stored any more before a restart.
  case stopped
}

/// What was written so far.
public struct JournalCounters: Sendable, Equatable {
  public var groups: UInt64 = 0
  /// Submissions in these groups.
  public var submissions: UInt64 = 0
  public var bytes: UInt64 = 0
  /// Time spent in write and fdatasync.
  public var busyNanoseconds: UInt64 = 0
  /// How long each group took, write and fdatasync.
  public var commitTimes = LatencyHistogram()
  public var timesFull: UInt64 = 0
  /// Free bytes on the journal's disk, some seconds old; nil while unknown.
  public var freeBytes: UInt64?
  /// The last reason why nothing could be stored.
  public var lastFull: JournalError?
}
