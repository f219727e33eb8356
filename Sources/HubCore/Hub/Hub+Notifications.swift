// Notifications that back ends and ops post to a channel: numbered events like the hub's own, stored before anybody is
// told.
import HubMessages

/// The answer to a notification that was posted.
public enum NotificationAnswer: Sendable {
  /// Its number on the channel. `isNew` is false where the same had been posted before.
  case published(Channel, sequence: UInt64, isNew: Bool)
  case refused(ErrorReply)
}

extension Hub {
  /// Publishes a notification. The same `messageId` again on the channel changes nothing, as long as the event is kept.
  mutating func notify(_ post: NotificationPost, for session: SessionRef) {
    guard storage.hasRoom else {
      counters.refusedForStorage += 1
      return refuse(session, .storageFull, "this hub cannot store events now; send it again", retryAfter: 5)
    }
    if let refusal = whyNotNotifiable(post.channel) {
      return emitStored(.notified(session, .refused(refusal)), to: session.loop)
    }
    guard let channel = channelForNotification(post.channel) else {
      return refuse(session, .storageFull, "this hub's channel table is full", retryAfter: 60)
    }
    if let id = post.messageID, let known = channels.notification(channel, posted: id) {
      return answer(session, post, repeating: known)
    }
    let bytes = post.title.utf8.count + post.body.utf8.count + (post.content?.utf8.count ?? 0)
    guard channels.contentBytes + bytes <= limits.eventContentBytes else {
      counters.count(full: .eventContents)
      return refuse(session, .storageFull, "this hub keeps no more texts in its events", retryAfter: 60)
    }
    publishEvent(on: channel) {
      .notification(
        Notification(
          kind: post.kind, title: post.title, body: post.body, driverID: post.driverID, content: post.content,
          messageID: post.messageID, sequence: $0))
    }
    counters.notificationsPosted += 1
    let answer = NotificationAnswer.published(post.channel, sequence: channels.sequence(channel), isNew: true)
    emitStored(.notified(session, answer), to: session.loop)
  }

  /// At once: that nothing can be stored must be heard just then.
  private mutating func refuse(
    _ session: SessionRef, _ code: ErrorCode, _ message: String, retryAfter: Double? = nil
  ) {
    let error = ErrorReply(code: code, message: message, retryAfter: retryAfter)
    emit(.notified(session, .refused(error)), to: session.loop)
  }

  private mutating func answer(_ session: SessionRef, _ post: NotificationPost, repeating known: Notification) {
    var asked = known
    (asked.kind, asked.title, asked.body) = (post.kind, post.title, post.body)
    (asked.driverID, asked.content) = (post.driverID, post.content)
    let message = "another notification was posted with this messageId, as number \(known.sequence)"
    let answer: NotificationAnswer =
      asked == known
      ? .published(post.channel, sequence: known.sequence, isNew: false)
      : .refused(ErrorReply(code: .invalidTransition, message: message))
    emitStored(.notified(session, answer), to: session.loop)
  }

  /// Nil where the channel's trip goes on, or its driver or fence is known.
  private func whyNotNotifiable(_ channel: Channel) -> ErrorReply? {
    switch channel {
    case .trip(let id):
      guard let trip = trips.find(id) else {
        return ErrorReply(code: .unknownTrip, message: "this hub knows no trip \(id)")
      }
      guard isOver(trip) else { return nil }
      return ErrorReply(
        code: .invalidTransition, message: "trip \(id) is over: nobody follows it any more",
        status: trips[trip].status)
    case .driver(let id):
      if drivers.find(id) != nil { return nil }
      return ErrorReply(code: .unknownChannel, message: "this hub knows no driver \(id)")
    case .fence(let id):
      if fences.find(id) != nil { return nil }
      return ErrorReply(code: .unknownChannel, message: "this hub has no fence \(id)")
    case .area, .nearby, .fleet:
      return ErrorReply(code: .unknownChannel, message: "this channel has no notifications")
    }
  }

  private mutating func channelForNotification(_ channel: Channel) -> Int? {
    switch channel {
    case .trip(let id):
      guard let trip = trips.find(id) else { return nil }
      return eventChannel(ofTrip: trip)
    case .driver(let id):
      guard let driver = drivers.find(id) else { return nil }
      return eventChannel(ofDriver: driver)
    case .fence(let id): return eventChannel(ofFence: id)
    case .area, .nearby, .fleet: return nil
    }
  }
}
