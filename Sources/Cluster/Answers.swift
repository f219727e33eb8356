// Answers of other hubs as sessions here get them, and refusals where none can come.
import HubMessages

extension Reply {
  /// Restores why fixes of a batch could not be read, since the reasons are not sent to the driver's hub.
  mutating func explain(_ batch: LocationBatch) {
    guard case .ack(var ack) = self, let rejected = ack.batch?.rejected else { return }
    for (number, rejection) in rejected.enumerated() where batch.fixes.indices.contains(rejection.index) {
      if case .failure(let code) = batch.fixes[rejection.index] { ack.batch?.rejected[number].code = code }
    }
    self = .ack(ack)
  }

  /// This answer as one to the message of that id.
  func replying(to messageID: MessageID) -> Reply {
    switch self {
    case .ack(var ack):
      ack.replyTo = messageID
      return .ack(ack)
    case .error(var error):
      error.replyTo = messageID
      return .error(error)
    case .connected, .subscribed, .unsubscribed, .pong, .sampling, .result: return self
    }
  }
}

extension ErrorReply {
  static let overloaded = ErrorReply(
    code: .rateLimited, message: "the hub that has this channel is overloaded; try again", retryAfter: 2)
  static let unknownWhere = ErrorReply(
    code: .rateLimited,
    message: "it is not at this hub, and the cluster's engine cannot say now where it is; try again", retryAfter: 2)
  static let unreachable = ErrorReply(
    code: .rateLimited, message: "the hub that has this channel cannot be reached now; try again", retryAfter: 2)
}
