// What waits for the disk when the disk turns out to be full, or the journal stops: nobody is left without an answer
// until there is room, which may take hours.
//
// The record of such a message is in the journal's queue, and cannot be taken back: others were handled after it and
// built on what it changed. So the change stays, its event waits, and both count when the record is stored. The sender
// is told `storage_full`, which promises nothing in either direction: the same message again, with the same id, gets
// `storage_full` as long as it lasts, and then the ack. The ack is given once the record is stored, never before. A hub
// that ends while the disk is full has never acked the message, nor shown its event to anybody; what is sent again is
// then handled anew.
import HubMessages

extension HubOutput {
  /// Whether somebody waits for this, so that it has a `refusedForStorage`.
  var isAnswer: Bool {
    switch self {
    case .reply(_, let reply): reply.storedMessageID != nil
    case .trips, .fences, .notified, .credentials: true
    case .delivery, .subscribed, .watching, .areaSnapshot, .areaUpdate, .areaTickEnded, .shareEnded, .viewEnded,
      .subscriptionRefused,
      .unsubscribed, .channelEnded, .channelClaimed, .named, .admitted, .conflict, .full, .replaced, .queryResult,
      .channelRestarted, .cluster, .revoked:
      false
    }
  }

  /// What is said in the place of an answer that would have to wait for the disk; nil for what answers nobody.
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
    case .delivery, .subscribed, .watching, .areaSnapshot, .areaUpdate, .areaTickEnded, .shareEnded, .viewEnded,
      .subscriptionRefused,
      .unsubscribed, .channelEnded, .channelClaimed, .named, .admitted, .conflict, .full, .replaced, .queryResult,
      .channelRestarted, .cluster, .revoked:
      return nil
    }
  }
}

extension ErrorReply {
  /// `storage_full` for something that was taken in and is not stored: it may be later.
  fileprivate static func notStored(_ advice: String, replyTo: MessageID? = nil) -> ErrorReply {
    ErrorReply(
      code: .storageFull, message: "not stored: this hub cannot store anything now, and may store it later; \(advice)",
      replyTo: replyTo, retryAfter: storageRetryAfter)
  }

  /// Seconds after which what could not be stored should be sent again.
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
  /// A trip that the hub has named must be asked for by that name: without it a repetition would make another one.
  fileprivate var howToRepeat: String {
    switch self {
    case .trip(let report, isNew: true): "send it again for trip \(report.tripID) (tripId), which changes nothing then"
    case .trip, .list, .refused, .shares, .shared, .unshared, .offers, .offersStopped: "ask again"
    }
  }
}

extension NotificationAnswer {
  /// A refusal waits, too: it may tell of a change that is not stored yet.
  fileprivate var howToRepeat: String {
    switch self {
    case .published: "send it again with the same messageId, or it may come twice"
    case .refused: "send it again"
    }
  }
}
