// What is stored of a webhook's way through the journal, so that a restart goes on where it ended.
public import HubMessages

/// How far a webhook or stream is. Its size is bounded by `DeliveryQueue.maximumLanes`.
public struct DeliveryProgress: Sendable, Equatable {
  /// All events before this place are delivered, given up, or in a lane.
  public var cursor: JournalPosition
  /// Channels that are behind the cursor, in no order. Of a stream: channels that are before it, for the event at the
  /// cursor was refused when these had been sent.
  public var lanes: [Lane]
  public var isEnabled: Bool

  /// Such a channel.
  public struct Lane: Sendable, Equatable {
    public var channel: Channel
    /// All of the channel's events before this place are delivered or given up.
    public var place: JournalPosition
    /// Failures of the event at this place.
    public var failures: Int
    /// When that event was first tried.
    public var firstTry: Timestamp?

    public init(channel: Channel, place: JournalPosition, failures: Int, firstTry: Timestamp?) {
      self.channel = channel
      self.place = place
      self.failures = failures
      self.firstTry = firstTry
    }
  }

  /// Has an event delivered again, and what is behind it on its channel. What is behind the cursor comes anyway.
  mutating func setBack(_ event: PendingEvent) {
    guard event.place < cursor else { return }
    let lane = Lane(channel: event.channel, place: event.place, failures: 0, firstTry: nil)
    guard let index = lanes.firstIndex(where: { $0.channel == event.channel }) else { return lanes.append(lane) }
    if lanes[index].place >= event.place { lanes[index] = lane }
  }

  /// The lanes that have changed since `old`; nil for those that are there no more.
  func changedLanes(since old: DeliveryProgress) -> [(Channel, Lane?)] {
    guard lanes != old.lanes else { return [] }
    let before = Dictionary(uniqueKeysWithValues: old.lanes.map { ($0.channel, $0) })
    let now = Set(lanes.map(\.channel))
    return lanes.filter { before[$0.channel] != $0 }.map { ($0.channel, $0) }
      + old.lanes.filter { !now.contains($0.channel) }.map { ($0.channel, nil) }
  }

  /// A new webhook's, which delivers what is recorded from `cursor` on.
  public init(cursor: JournalPosition, lanes: [Lane] = [], isEnabled: Bool = true) {
    self.cursor = cursor
    self.lanes = lanes
    self.isEnabled = isEnabled
  }
}
