// The journal's limits.

/// Sizes of what the journal writes and keeps.
public struct JournalLimits: Sendable, Equatable {
  /// A segment that has reached this is followed by a new one. Whole segments are what is deleted when it is old enough.
  public var segmentBytes = 64 << 20
  /// The payload of one group. More in one piece is never written.
  public var groupBytes = 16 << 20
  /// What may wait for the disk: at this the hub takes no more that has to be stored.
  public var pendingBytes = 64 << 20

  public init() {}

  func validate() {
    precondition(groupBytes <= Int(UInt32.max) && segmentBytes > FileHeader.size)
    precondition(groupBytes <= pendingBytes)
    precondition(max(segmentBytes, groupBytes) + 1024 <= Int(UInt32.max), "places in a segment are 32 bits in indexes")
  }
}
