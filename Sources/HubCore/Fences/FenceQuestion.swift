// What can be asked about fences, and what is answered.
public import HubMessages

/// What ops ask about fences, over HTTP.
public enum FenceQuestion: Sendable {
  /// The covering is the fence's own, made before.
  case put(Fence, FenceCovering)
  case show(Identifier)
  /// A page of those whose number is below, the newest first.
  case list(below: UInt64, limit: Int)
  case delete(Identifier)
}

/// The answer to a `FenceQuestion`.
public enum FenceAnswer: Sendable {
  /// `isNew` where it was put and not there before.
  case fence(FenceReport, isNew: Bool)
  /// `next` is the number to go on below; nil where there are no more.
  case list([FenceReport], next: UInt64?)
  case deleted
  /// There is no such fence.
  case unknown
  case refused(ErrorReply)
}
