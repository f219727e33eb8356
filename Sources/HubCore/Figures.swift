// The hub's own figures, which its process counts: published as they come, and kept for whoever looks next.
import HubMessages

/// The figures of the last seconds.
struct Figures {
  /// The oldest first.
  private(set) var seconds: [HubFigures] = []

  /// O(seconds that are kept), once a second.
  mutating func keep(_ figures: HubFigures, atMost limit: Int) {
    if seconds.count >= limit { seconds.removeFirst(seconds.count - limit + 1) }
    seconds.append(figures)
  }
}

extension Hub {
  /// A second is over. Of what a subscriber has not read the newest second is enough: the rest it asks for again.
  mutating func publish(_ figures: HubFigures) {
    self.figures.keep(figures, atMost: limits.figures)
    guard let channel = channels.find(.stats) else { return }
    channels.publish(figures, on: channel, at: now.timestamp)
  }
}
