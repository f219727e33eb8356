// `POST /v1/notifications`: back ends and ops notify the followers of a trip, a driver or a fence.
import HubCore
import HubHTTP
import HubMessages

enum NotificationEndpoint {
  /// Answered once the notification is stored.
  static func post(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let key = try call.idempotencyKey()
    var post = try unsafe call.read { (reader, bytes) throws(MessageError) in try unsafe reader.readNotification(bytes)
    }
    guard key == nil || post.messageID == nil else {
      throw Refusal(.badMessage, "give messageId or Idempotency-Key, not both")
    }
    post.messageID = key ?? post.messageID
    return .ask([.notify(call.context.session, post)])
  }

  static func answer(_ answer: NotificationAnswer) throws(Refusal) -> Outcome {
    switch answer {
    case .published(let channel, let sequence, let isNew):
      return .respond(
        .json(isNew ? .created : .ok) { JSONWriter.writeNotified(channel, sequence: sequence, into: &$0) })
    case .refused(let error) where error.code == .unknownChannel:
      throw Refusal(error.code, error.message, status: .notFound)
    case .refused(let error): throw Refusal(error)
    }
  }
}
