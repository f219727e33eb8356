// The hub's own figures, from its process: published each second, and kept for new subscribers.
import HubMessages

/// The figures of the last seconds.
struct Figures {
  /// The oldest first.
  private(set) var seconds: [HubFigures] = []

  /// Keeps the next seconds, `limit` in all; with `isHistory` they are all that came before. O(seconds that are kept),
  /// once a second.
  mutating func keep(_ new: [HubFigures], isHistory: Bool, atMost limit: Int) {
    seconds = Array(((isHistory ? [] : seconds) + new).suffix(limit))
  }
}
