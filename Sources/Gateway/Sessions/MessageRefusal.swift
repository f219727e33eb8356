// Why what a message asks for is not done.
import HubMessages

/// What a session is told in place of what it asked for.
struct MessageRefusal: Error {
  let error: ErrorReply
  /// The limit that was reached, which is counted.
  let limit: LimitHit?

  init(
    _ code: ErrorCode, _ text: String, replyTo messageID: MessageID?, retryAfter: Double? = nil,
    at limit: LimitHit? = nil
  ) {
    error = ErrorReply(code: code, message: text, replyTo: messageID, retryAfter: retryAfter)
    self.limit = limit
  }
}
