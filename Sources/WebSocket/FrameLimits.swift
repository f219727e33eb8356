// Limits of a frame reader.

/// The bounds of one message.
public struct FrameLimits: Sendable, Equatable {
  /// Bytes of a message, over all its fragments. Enforced at the frame's header, before anything is buffered.
  public var messageBytes: Int
  /// Frames of a message. Bounds the work of a message whose fragments are empty.
  public var fragments: Int

  /// 256 KiB is the protocol's message limit.
  public init(messageBytes: Int = 256 * 1024, fragments: Int = 1024) {
    precondition(messageBytes >= 0 && fragments >= 1)
    self.messageBytes = messageBytes
    self.fragments = fragments
  }
}
