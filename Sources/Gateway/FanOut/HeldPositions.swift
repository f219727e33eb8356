// Positions held back for the flush interval, so that only each driver's newest is sent.
//
// Each has a time of its own: all of a fleet at once, a megabyte for 3,000 drivers, would be more than an outbox takes.
import HubCore

/// Positions that wait for the flush interval, the newest of each channel and driver.
struct HeldPositions {
  private let interval: Int64
  /// By conflation key.
  private var deliveries: [UInt64: Delivery] = [:]
  private var keysOfChannel: [UInt32: Set<UInt64>] = [:]
  /// Keys with the times at which they are due (uptime, ns), in order. A key that `take(of:)` has taken stays: a newer
  /// position with it leaves at the older time.
  private var queue = FirstInFirstOut<(key: UInt64, due: Int64)>()

  /// `interval`: for how long a position may be held (ns).
  init(interval: Int64) { self.interval = interval }

  /// When to look for the next one (uptime, ns); nil while none is held.
  var deadline: Int64? { queue.first?.due }

  /// Holds a position. True when it replaced an older one, in whose place it leaves.
  mutating func put(_ delivery: Delivery, now: Int64) -> Bool {
    let key = delivery.conflationKey
    guard deliveries.updateValue(delivery, forKey: key) == nil else { return true }
    keysOfChannel[delivery.channel.index, default: []].insert(key)
    // At sixteen times in an interval, so that many still leave with one write.
    let step = max(1, interval / 16)
    queue.append((key, due: (now + interval) / step * step))
    return false
  }

  /// Takes the next position that is due by `now` (uptime, ns). Amortised O(1).
  mutating func takeDue(by now: Int64) -> Delivery? {
    while let (key, due) = queue.first, due <= now {
      _ = queue.next()
      guard let delivery = deliveries.removeValue(forKey: key) else { continue }
      let channel = delivery.channel.index
      keysOfChannel[channel]?.remove(key)
      if keysOfChannel[channel]?.isEmpty == true { keysOfChannel[channel] = nil }
      return delivery
    }
    return nil
  }

  /// Takes the held positions of one channel, unordered. O(1) for each.
  mutating func take(of channel: ChannelHandle) -> [Delivery] {
    (keysOfChannel.removeValue(forKey: channel.index) ?? []).compactMap { deliveries.removeValue(forKey: $0) }
  }
}
