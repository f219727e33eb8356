// Why what a message asks for is not done.
import HubCore
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

extension MessageRefusal {
  /// A warning: a session that goes on at more than its rate, in units of work a second, will be closed.
  static func overRate(_ units: Double) -> MessageRefusal {
    MessageRefusal(.rateLimited, "more than \(units) units of work a second", replyTo: nil, retryAfter: 1)
  }

  /// A session has all the subscriptions that it may.
  static func tooManyCells(_ limits: borrowing Limits, replyTo messageID: MessageID?) -> MessageRefusal {
    MessageRefusal(
      .rateLimited,
      "a session has at most \(limits.subscriptionsPerSession) subscriptions; each cell of an area is one",
      replyTo: messageID, retryAfter: 1, at: .subscriptions)
  }

  /// An identity watches all the cells that it may.
  static func tooManyCells(of role: Role, _ limits: borrowing Limits, replyTo messageID: MessageID?) -> MessageRefusal {
    MessageRefusal(
      .rateLimited,
      "one \(role.name) watches at most \(limits.areasPerIdentity[role]) cells of areas, over all its sessions "
        + "(max-areas-per-\(role.name))",
      replyTo: messageID, retryAfter: 1, at: .areasPerIdentity)
  }
}
