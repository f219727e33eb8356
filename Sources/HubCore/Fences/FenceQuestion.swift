// Questions about fences, and the answers.
public import HubMessages

/// Questions of ops over HTTP.
public enum FenceQuestion: Sendable {
  /// With the fence's covering, made before.
  case put(Fence, FenceCovering)
  case show(Identifier)
  /// A page of fences with lower numbers, newest first.
  case list(below: UInt64, limit: Int)
  case delete(Identifier)
}

/// The answer to a `FenceQuestion`.
public enum FenceAnswer: Sendable {
  /// `isNew` where the id was not there before.
  case fence(FenceReport, isNew: Bool)
  /// `next` is the number below which the list continues; nil at the end.
  case list([FenceReport], next: UInt64?)
  case deleted
  /// There is no such fence.
  case unknown
  case refused(ErrorReply)
}
