// A client's subscriptions and its position on each channel, so that over any break it gets every event once and in
// order (protocol/subscriptions.md, "Two kinds of message").
import HubBytes
import HubMessages

/// The subscriptions of one client. They are few, so a list that is searched from the last hit on beats a table.
struct SubscriptionList {
  struct Subscription {
    var channel: Channel
    /// The client's name for a part of the map; nil for everything else.
    var viewID: InlineText?
    /// Where the next request resumes: the last event seen, and its epoch.
    var resume: ResumePoint?
    /// The channel's newest event when the last request was answered. An event up to it that is missing when the next
    /// one comes is no gap: it was unreadable, as one in binary of a newer hub's type, and does not come again.
    var through: UInt64 = 0
    var isEventsOnly = false
    var request = Request.due(notBefore: .min)
    /// The number of consecutive refusals.
    var failures = 0
  }

  enum Request: Equatable {
    /// To be sent from that time on.
    case due(notBefore: Int64)
    /// Sent with this number, not answered yet.
    case asked(number: UInt64)
    /// Answered at this time.
    case standing(since: Int64)
  }

  /// What to do with a publication.
  enum Verdict {
    case deliver
    /// It was seen before, or will come again in order.
    case drop
  }

  private(set) var list: [Subscription] = []
  private var lastHit = 0

  /// Subscribes; false at the limit. An existing subscription is requested again.
  mutating func add(_ channel: Channel, resume: ResumePoint?, isEventsOnly: Bool, limit: Int) -> Bool {
    if let index = find(channel) {
      if let resume { list[index].resume = resume }
      list[index].isEventsOnly = isEventsOnly
      list[index].request = .due(notBefore: .min)
      return true
    }
    guard list.count < limit else { return false }
    list.append(Subscription(channel: channel, resume: resume, isEventsOnly: isEventsOnly))
    return true
  }

  /// Shows another part of the map under a name, or the first one; false at the limit. Several moves before the request
  /// is sent become one.
  mutating func show(_ viewID: InlineText, _ channel: Channel, limit: Int) -> Bool {
    if let index = list.firstIndex(where: { $0.viewID == viewID }) {
      list[index].channel = channel
      list[index].request = .due(notBefore: .min)
      return true
    }
    guard list.count < limit else { return false }
    list.append(Subscription(channel: channel, viewID: viewID))
    return true
  }

  /// Ends a view; false where there is none.
  mutating func removeView(_ viewID: InlineText) -> Bool {
    guard let index = list.firstIndex(where: { $0.viewID == viewID }) else { return false }
    list.remove(at: index)
    return true
  }

  /// False without a subscription.
  mutating func remove(_ channel: Channel) -> Bool {
    guard let index = find(channel) else { return false }
    list.remove(at: index)
    return true
  }

  /// A new connection has no subscriptions yet.
  mutating func beginConnection() {
    for index in list.indices { list[index].request = .due(notBefore: .min) }
  }

  /// The next request that is due, by its index.
  func nextDue(now: Int64) -> Int? {
    list.firstIndex {
      if case .due(let time) = $0.request { time <= now } else { false }
    }
  }

  /// The earliest time of a request to be sent, perhaps in the past; nil where there is none.
  var nextTime: Int64? {
    list.lazy.compactMap {
      if case .due(let time) = $0.request { time } else { nil }
    }.min()
  }

  mutating func asked(_ index: Int, number: UInt64) { list[index].request = .asked(number: number) }

  // MARK: What the hub says

  /// Notes the answer to the request with this number; nil for a `subscribed` without a request, which the hub sends
  /// when a channel's numbers have changed. False where the subscription gets another answer: it was left and made
  /// again meanwhile, or is to be requested again.
  mutating func answered(_ answer: Subscribed, to number: UInt64?, now: Int64) -> Bool {
    let isMeant = { (known: Subscription) in
      if case .standing = known.request { return known.channel == answer.channel && known.viewID == answer.viewID }
      return known.request == number.map { .asked(number: $0) }
    }
    guard let index = list.firstIndex(where: isMeant) else { return false }
    list[index].request = .standing(since: now)
    list[index].failures = 0
    list[index].through = answer.sequence
    if answer.recovered, list[index].resume != nil {
      // What was missed follows, also where the channel has another epoch since.
      list[index].resume?.epoch = answer.epoch
      return true
    }
    // Nothing before is resumed: what was missed is in the snapshot.
    list[index].resume = ResumePoint(since: answer.sequence, epoch: answer.epoch)
    return true
  }

  /// Consecutive refusals of the subscription requested with this number; 0 where there is none.
  func failures(of number: UInt64) -> Int { list.first { $0.request == .asked(number: number) }?.failures ?? 0 }

  /// The request with this number was refused: to be repeated at `retryAt`, or given up. False where there is none.
  mutating func refused(_ number: UInt64, retryAt: Int64?) -> Bool {
    guard let index = list.firstIndex(where: { $0.request == .asked(number: number) }) else { return false }
    list[index].failures += 1
    if let retryAt { list[index].request = .due(notBefore: retryAt) } else { list.remove(at: index) }
    return true
  }

  /// Judges a numbered event: the next one is delivered, an old one dropped; a gap has the missing ones requested.
  mutating func event(_ channel: Channel, sequence: UInt64, now: Int64, limits: ClientLimits) -> Verdict {
    guard let index = find(channel), let resume = list[index].resume else { return .deliver }
    if sequence <= resume.since { return .drop }
    guard sequence - 1 <= max(resume.since, list[index].through) else {
      noteGap(index, now, limits)
      return .drop
    }
    list[index].resume?.since = sequence
    return .deliver
  }

  /// Requests missing events: a state was published when `after` was the channel's newest event.
  mutating func state(_ channel: Channel, after: UInt64, now: Int64, limits: ClientLimits) {
    guard let index = find(channel), let resume = list[index].resume,
      after > max(resume.since, list[index].through)
    else { return }
    noteGap(index, now, limits)
  }

  private mutating func noteGap(_ index: Int, _ now: Int64, _ limits: ClientLimits) {
    guard case .standing(let since) = list[index].request else { return }
    list[index].request = .due(notBefore: max(now, since + nanoseconds(limits.resubscribeSeconds)))
  }

  private mutating func find(_ channel: Channel) -> Int? {
    if lastHit < list.count, list[lastHit].channel == channel { return lastHit }
    guard let index = list.firstIndex(where: { $0.channel == channel }) else { return nil }
    lastHit = index
    return index
  }
}
