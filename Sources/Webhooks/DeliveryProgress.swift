// The stored progress of a webhook through the journal, from which a restart continues.
public import HubMessages

/// The progress of a webhook or stream. Its size is bounded by `DeliveryQueue.maximumLanes`.
public struct DeliveryProgress: Sendable, Equatable {
  /// All events before this position are delivered, given up, or in a lane.
  public var cursor: JournalPosition
  /// Channels behind the cursor, unordered. Of a stream: channels ahead of it, whose events were sent before the event
  /// at the cursor was refused, and channels whose event was refused.
  public var lanes: [Lane]
  public var isEnabled: Bool

  /// A channel with its own position.
  public struct Lane: Sendable, Equatable {
    public var channel: Channel
    /// All of the channel's events before this position are delivered or given up.
    public var position: JournalPosition
    /// Failures of the event at this position. Of a stream: how many events of the channel, from this one on, were
    /// first refused together; 0 if this one was not refused.
    public var failures: Int
    /// When that event was first tried, or first refused by a stream's server.
    public var firstTry: Timestamp?

    public init(channel: Channel, position: JournalPosition, failures: Int, firstTry: Timestamp?) {
      self.channel = channel
      self.position = position
      self.failures = failures
      self.firstTry = firstTry
    }
  }

  /// Forgets positions from `end` on, which mean nothing any more.
  mutating func forget(behind end: JournalPosition) {
    cursor = min(cursor, end)
    lanes.removeAll { $0.position >= end }
  }

  /// Enables it, and delivers all from `position` on once more, or from what is older and undelivered.
  mutating func setBack(to position: JournalPosition) {
    isEnabled = true
    cursor = lanes.reduce(min(cursor, position)) { min($0, $1.position) }
    lanes = []
  }

  /// Sets an event back, to be delivered again with those behind it on its channel. Events behind the cursor come
  /// anyway.
  mutating func setBack(_ event: PendingEvent) {
    guard event.position < cursor else { return }
    let lane = Lane(channel: event.channel, position: event.position, failures: 0, firstTry: nil)
    guard let index = lanes.firstIndex(where: { $0.channel == event.channel }) else { return lanes.append(lane) }
    if lanes[index].position >= event.position { lanes[index] = lane }
  }

  /// The lanes that have changed since `old`; nil for removed ones.
  func changedLanes(since old: DeliveryProgress) -> [(Channel, Lane?)] {
    guard lanes != old.lanes else { return [] }
    let before = Dictionary(uniqueKeysWithValues: old.lanes.map { ($0.channel, $0) })
    let now = Set(lanes.map(\.channel))
    return lanes.filter { before[$0.channel] != $0 }.map { ($0.channel, $0) }
      + old.lanes.filter { !now.contains($0.channel) }.map { ($0.channel, nil) }
  }

  /// Progress from given positions; by default that of a new webhook, which delivers all from `cursor` on.
  public init(cursor: JournalPosition, lanes: [Lane] = [], isEnabled: Bool = true) {
    self.cursor = cursor
    self.lanes = lanes
    self.isEnabled = isEnabled
  }
}
