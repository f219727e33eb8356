// The hub's own figures, from its process: published each second, and kept for new subscribers.
import HubMessages

/// The figures of the last seconds.
struct Figures {
  /// The oldest first.
  private(set) var seconds: [HubFigures] = []

  /// Keeps a second, one of `limit`, and publishes it. A subscriber that has fallen behind gets only the newest second
  /// live and asks for the rest. O(seconds that are kept), once a second.
  ///
  /// In a cluster it goes to the other hubs' outlet, which returns those of all hubs through `take`.
  mutating func publish(_ second: HubFigures, _ channels: inout Channels, atMost limit: Int, at time: Timestamp) {
    guard channels.isInCluster else { return keep(second, &channels, atMost: limit, at: time) }
    channels.sendToCluster(
      .second(second, watched: WatchedFeeds(stats: channels.isWatched(.stats), fleet: channels.isWatched(.fleet))))
  }

  /// Takes seconds of all hubs: the next one, or with `isHistory` all earlier ones.
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
