// Refusals: what a domain throws for a request that it can't fulfil, and their answers.
import HubMessages

extension ErrorReply {
  /// The trip's present status does not allow the request.
  init(invalidIn status: TripStatus, _ message: String) {
    self.init(code: .invalidTransition, message: message, status: status)
  }

  /// The sender has reached a limit of its own. `retryAfter`: seconds; nil where waiting does not help.
  init(ownLimit message: String, retryAfter: Double? = 60) {
    self.init(code: .rateLimited, message: message, retryAfter: retryAfter)
    isOwnLimit = true
  }

  /// For a session that was replaced.
  static func replaced(retryAfter seconds: Double) -> ErrorReply {
    ErrorReply(
      code: .rateLimited, message: "a newer session of this driver has taken over: send it there", retryAfter: seconds)
  }

  /// Whether it refuses a trip's move or change as such, and not for lack of storage or because of a limit.
  var refusesMove: Bool { code == .invalidTransition || code == .forbidden || code == .unknownTrip }

  /// Whether it shows a trip's or share's state. `forbidden` may show that the trip has a driver.
  var showsState: Bool { code == .invalidTransition || code == .notFound || code == .forbidden }

  func replying(to messageID: MessageID?) -> ErrorReply {
    var reply = self
    reply.replyTo = messageID
    return reply
  }
}

extension HubCounters {
  /// Counts fixes that are refused for their trip: for good, or to be sent again since it can't begin now.
  mutating func noteRefused(_ fixes: Int, because code: ErrorCode) {
    if code == .forbidden { fixesForbidden += UInt64(fixes) } else { fixesPutOff += UInt64(fixes) }
  }

  /// Counts that the channel table was full, and returns the refusal.
  mutating func refuseChannel() -> ErrorReply {
    count(full: .channels)
    return ErrorReply(code: .rateLimited, message: "this hub's channel table is full", retryAfter: 60)
  }

  /// Counts and refuses cells at the limit of areas or channels.
  mutating func refuseAreas() -> ErrorReply {
    count(full: .areas)
    return ErrorReply(code: .rateLimited, message: "this hub's table of areas is full", retryAfter: 60)
  }

  /// Counts and refuses a subscription that resumes, where too many wait.
  mutating func refuseResume() -> ErrorReply {
    count(full: .waitingResumes)
    return ErrorReply(code: .rateLimited, message: "too many subscribers are returning at once", retryAfter: 2)
  }
}
