// Positions held back for the flush interval, so that only each driver's newest is sent.
import HubCore

/// Positions that wait for the flush interval, the newest of each channel and driver.
struct HeldPositions {
  private struct Entry {
    /// Nil once it was taken before the rest.
    var delivery: Delivery?
    /// The index of the same channel's entry before this one; −1 for none.
    var previous: Int
  }

  /// Uptime in ns; nil while nothing is held.
  var deadline: Int64?
  private var entries: [Entry] = []
  private var indexes: [UInt64: Int] = [:]
  /// The last index of each channel.
  private var lastOfChannel: [UInt32: Int] = [:]

  /// True when it replaced an older one.
  mutating func put(_ delivery: Delivery) -> Bool {
    if let index = indexes[delivery.conflationKey] {
      entries[index].delivery = delivery
      return true
    }
    let index = entries.count
    indexes[delivery.conflationKey] = index
    let previous = lastOfChannel.updateValue(index, forKey: delivery.channel.index)
    entries.append(Entry(delivery: delivery, previous: previous ?? -1))
    return false
  }

  mutating func takeAll() -> [Delivery] {
    deadline = nil
    indexes.removeAll(keepingCapacity: true)
    lastOfChannel.removeAll(keepingCapacity: true)
    defer { entries = [] }
    return entries.compactMap(\.delivery)
  }

  /// Takes the held positions of one channel, unordered. O(1) for each.
  mutating func take(of channel: ChannelHandle) -> [Delivery] {
    guard var index = lastOfChannel.removeValue(forKey: channel.index) else { return [] }
    var taken: [Delivery] = []
    while index >= 0 {
      if let delivery = entries[index].delivery {
        indexes[delivery.conflationKey] = nil
        taken.append(delivery)
      }
      entries[index].delivery = nil
      index = entries[index].previous
    }
    return taken
  }
}
