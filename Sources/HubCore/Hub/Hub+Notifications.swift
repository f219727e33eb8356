// Notifications that back ends and ops post to a channel: numbered events like the hub's own, stored before they are
// sent.
public import HubMessages

/// The answer to a notification that was posted.
public enum NotificationAnswer: Sendable {
  /// Its number on the channel. `isNew` is false for a repetition.
  case published(Channel, sequence: UInt64, isNew: Bool)
  case refused(ErrorReply)
}

extension Hub {
  /// Publishes a notification. A repetition (same `messageId`, same channel) changes nothing while it is kept.
  mutating func notify(_ post: NotificationPost, for session: SessionRef) {
    do throws(ErrorReply) { emitStored(.notified(session, try publish(post)), to: session.outlet) } catch {
      let refused = HubOutput.notified(session, .refused(error))
      // A refusal for want of storage must not wait for it; other refusals show state that must be stored.
      emit(refused, to: session.outlet, awaitsStorage: error.code != .storageFull)
    }
  }

  private mutating func publish(_ post: NotificationPost) throws(ErrorReply) -> NotificationAnswer {
    try requireRoom("this hub cannot store events now; send it again")
    let channel = try channelForNotification(post.channel)
    if let known = try channels.sequence(ofRepeated: post, on: channel) {
      return .published(post.channel, sequence: known, isNew: false)
    }
    publishEvent(on: channel) { .notification(Notification(post, sequence: $0)) }
    counters.notificationsPosted += 1
    return .published(post.channel, sequence: channels.sequence(channel), isNew: true)
  }

  /// The channel of an active trip, or of a known driver or fence.
  private mutating func channelForNotification(_ name: Channel) throws(ErrorReply) -> Int {
    let channel: Int?
    switch name {
    case .trip(let id): channel = eventChannel(ofTrip: try trips.findFollowed(id, at: now.uptime))
    case .driver(let id):
      guard let driver = drivers.find(id) else { throw .unknownChannel("this hub knows no driver \(id)") }
      if drivers[driver].isElsewhere { throw .hasMoved }
      channel = eventChannel(ofDriver: driver)
    case .fence(let id):
      if fences.find(id) == nil { throw .unknownChannel("this hub has no fence \(id)") }
      channel = eventChannel(ofFence: id)
    case .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats:
      throw .unknownChannel("this channel has no notifications")
    }
    if let channel { return channel }
    throw ErrorReply(code: .storageFull, message: "this hub's channel table is full", retryAfter: 60)
  }
}

extension ErrorReply {
  /// For a request that was sent here while the driver left.
  fileprivate static var hasMoved: ErrorReply {
    ErrorReply(code: .rateLimited, message: "the driver has just moved to another hub; send it again", retryAfter: 1)
  }

  fileprivate static func unknownChannel(_ message: String) -> ErrorReply {
    ErrorReply(code: .unknownChannel, message: message)
  }
}

extension Channels {
  /// The number of the kept notification that this one repeats; nil where it is new. Throws where another one has its
  /// `messageId`. O(kept events of the channel).
  fileprivate func sequence(ofRepeated post: NotificationPost, on channel: Int) throws(ErrorReply) -> UInt64? {
    guard let id = post.messageID, let known = notification(channel, posted: id) else { return nil }
    if post.isSame(as: known) { return known.sequence }
    throw ErrorReply(
      code: .invalidTransition,
      message: "another notification was posted with this messageId, as number \(known.sequence)")
  }
}

extension Notification {
  fileprivate init(_ post: NotificationPost, sequence: UInt64) {
    self.init(
      kind: post.kind, title: post.title, body: post.body, driverID: post.driverID, content: post.content,
      messageID: post.messageID, sequence: sequence)
  }
}

extension NotificationPost {
  fileprivate func isSame(as known: Notification) -> Bool {
    kind == known.kind && title == known.title && body == known.body && driverID == known.driverID
      && content == known.content
  }
}
