// Refusals of messages.
import HubCore
import HubMessages

/// The answer to a message that is refused.
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

extension MessageRefusal {
  /// A warning: a session that continues above its rate, in units of work a second, will be closed.
  static func overRate(_ units: Double) -> MessageRefusal {
    MessageRefusal(.rateLimited, "more than \(units) units of work a second", replyTo: nil, retryAfter: 1)
  }

  /// The session's token was replaced while the hub was asked.
  static func grantEnded(replyTo messageID: MessageID?) -> MessageRefusal {
    MessageRefusal(.forbidden, "the session's token does not open this channel any more", replyTo: messageID)
  }

  /// A session is at its limit of subscriptions.
  static func tooManySubscriptions(_ limits: borrowing Limits, replyTo messageID: MessageID?) -> MessageRefusal {
    MessageRefusal(
      .rateLimited,
      "a session has at most \(limits.subscriptionsPerSession) subscriptions; each cell of an area is one",
      replyTo: messageID, retryAfter: 1, at: .subscriptions)
  }

  /// An identity is at its limit of watched cells.
  static func tooManyCells(of role: Role, _ limits: borrowing Limits, replyTo messageID: MessageID?) -> MessageRefusal {
    MessageRefusal(
      .rateLimited,
      "one \(role.name) watches at most \(limits.areasPerIdentity[role]) cells of areas, over all its sessions "
        + "(max-areas-per-\(role.name))",
      replyTo: messageID, retryAfter: 1, at: .areasPerIdentity)
  }
}
