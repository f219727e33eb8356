// The hub's own figures, which its process counts: published as they come, and kept for whoever looks next.
import HubMessages

/// The figures of the last seconds.
struct Figures {
  /// The oldest first.
  private(set) var seconds: [HubFigures] = []

  /// A second is over: it is kept, one of `limit`, and published. Of what a subscriber has not read the newest second
  /// is enough: the rest it asks for again. O(seconds that are kept), once a second.
  ///
  /// In a cluster it goes to the other hubs' outlet, which brings back those of all hubs by `take`.
  mutating func publish(_ second: HubFigures, _ channels: inout Channels, atMost limit: Int, at time: Timestamp) {
    guard channels.isInCluster else { return keep(second, &channels, atMost: limit, at: time) }
    channels.tell(
      .second(second, watched: WatchedFeeds(stats: channels.isWatched(.stats), fleet: channels.isWatched(.fleet))))
  }

  /// Seconds of all hubs: the next one, or with `isHistory` all that is known of before.
  mutating func take(
    _ new: [HubFigures], isHistory: Bool, _ channels: inout Channels, atMost limit: Int, at time: Timestamp
  ) {
    if isHistory {
      seconds = new.suffix(limit)
    } else {
      for second in new { keep(second, &channels, atMost: limit, at: time) }
    }
  }

  private mutating func keep(_ second: HubFigures, _ channels: inout Channels, atMost limit: Int, at time: Timestamp) {
    if seconds.count >= limit { seconds.removeFirst(seconds.count - limit + 1) }
    seconds.append(second)
    if let channel = channels.find(.stats) { channels.publish(second, on: channel, at: time) }
  }
}
