// Refusals: what a domain throws where it can't do what it is asked for, and how it is answered.
import HubMessages

extension ErrorReply {
  /// A trip's state, which is named, does not allow what was asked for.
  init(invalidIn status: TripStatus, _ message: String) {
    self.init(code: .invalidTransition, message: message, status: status)
  }

  /// To a session that does not speak for its driver any more.
  static func replaced(retryAfter seconds: Double) -> ErrorReply {
    ErrorReply(
      code: .rateLimited, message: "a newer session of this driver has taken over: send it there", retryAfter: seconds)
  }

  /// Whether it refuses a move or a change of a trip for what it is, and not for want of room.
  var refusesMove: Bool { code == .invalidTransition || code == .forbidden || code == .unknownTrip }

  func replying(to messageID: MessageID?) -> ErrorReply {
    var reply = self
    reply.replyTo = messageID
    return reply
  }
}

extension HubCounters {
  /// Counts and refuses a channel for which there is no room.
  mutating func refuseChannel() -> ErrorReply {
    count(full: .channels)
    return ErrorReply(code: .rateLimited, message: "this hub's channel table is full", retryAfter: 60)
  }
}
