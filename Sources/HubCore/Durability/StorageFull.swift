// Answers that wait for the disk when it becomes full, or the journal stops: they are refused, since there may be no
// room for hours.
//
// The record of such a message is in the journal's queue and cannot be withdrawn: later messages were handled on top of
// its change. So the change stays, its event waits, and both become valid when the record is stored. The sender gets
// `storage_full`, which promises neither: the same message with the same id gets `storage_full` again as long as it
// lasts, and then the ack, never before the record is stored. A hub that ends while the disk is full has neither acked
// the message nor published its event; a repetition is then handled anew.
import HubMessages

extension HubOutput {
  /// Whether a sender waits for this. All of these but `unsubscribed` have a `refusedForStorage`.
  var isAnswer: Bool {
    switch self {
    case .reply(_, let reply): reply.storedMessageID != nil
    case .trips, .fences, .notified, .credentials, .subscribed, .unsubscribed: true
    case .delivery, .watching, .areaSnapshot, .areaUpdate, .areaTickEnded, .shareEnded, .viewEnded,
      .subscriptionRefused, .channelEnded, .channelClaimed, .named, .admitted, .conflict, .full, .replaced,
      .queryResult, .channelRestarted, .cluster, .revoked:
      false
    }
  }

  /// The refusal that replaces an answer which would have to wait for the disk; nil for what is no answer.
  var refusedForStorage: HubOutput? {
    switch self {
    case .reply(let session, let reply):
      guard let messageID = reply.storedMessageID else { return nil }
      return .reply(session, .error(.notStored("send it again with the same messageId", replyTo: messageID)))
    case .trips(let session, let answer, let replyTo):
      return .trips(session, .refused(.notStored(answer.howToRepeat, replyTo: replyTo)), replyTo: replyTo)
    case .fences(let session, _):
      return .fences(session, .refused(.notStored("send the same again, which changes nothing then")))
    case .credentials(let session, .family(_, isNew: true)):
      let advice = "send it again with the same Idempotency-Key, or there are two families"
      return .credentials(session, .refused(.notStored(advice)))
    case .credentials(let session, _):
      return .credentials(session, .refused(.notStored("send the same again")))
    case .notified(let session, let answer):
      return .notified(session, .refused(.notStored(answer.howToRepeat)))
    case .subscribed(let session, _, let answer, _, _):
      return .subscriptionRefused(session, .notStored("subscribe again", replyTo: answer.replyTo))
    case .delivery, .watching, .areaSnapshot, .areaUpdate, .areaTickEnded, .shareEnded, .viewEnded,
      .subscriptionRefused, .unsubscribed, .channelEnded, .channelClaimed, .named, .admitted, .conflict, .full,
      .replaced, .queryResult, .channelRestarted, .cluster, .revoked:
      return nil
    }
  }
}

extension ErrorReply {
  /// `storage_full` for a change that was accepted and may be stored later.
  fileprivate static func notStored(_ advice: String, replyTo: MessageID? = nil) -> ErrorReply {
    ErrorReply(
      code: .storageFull, message: "not stored: this hub cannot store anything now, and may store it later; \(advice)",
      replyTo: replyTo, retryAfter: storageRetryAfter)
  }

  /// Seconds after which a refused message should be sent again.
  static var storageRetryAfter: Double { 5 }
}

extension Reply {
  /// The message that this answers, where the answer waits for the disk.
  fileprivate var storedMessageID: MessageID? {
    switch self {
    case .ack(let ack): ack.replyTo
    case .error(let error): error.replyTo
    case .connected, .subscribed, .unsubscribed, .pong, .sampling, .result: nil
    }
  }
}

extension TripAnswer {
  /// A trip that the hub named must be requested by that name: a repetition without it would begin another one.
  fileprivate var howToRepeat: String {
    switch self {
    case .trip(let report, isNew: true): "send it again for trip \(report.tripID) (tripId), which changes nothing then"
    case .trip, .list, .refused, .shares, .shared, .unshared, .offers, .offersStopped: "ask again"
    }
  }
}

extension NotificationAnswer {
  /// A refusal waits, too: it may show a change that is not stored yet.
  fileprivate var howToRepeat: String {
    switch self {
    case .published: "send it again with the same messageId, or it may come twice"
    case .refused: "send it again"
    }
  }
}
