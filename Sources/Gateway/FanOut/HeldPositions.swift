// Positions held back for the flush interval, so that only each driver's newest is sent.
//
// Each has a time of its own: all of a fleet at once, a megabyte for 3,000 drivers, would be more than an outbox takes.
import HubCore

/// Positions that wait for the flush interval, the newest of each channel and driver.
struct HeldPositions {
  private struct Entry {
    /// Nil once it was taken before its time.
    var delivery: Delivery?
    /// The number of the same channel's entry before this one; −1 for none.
    var previous: Int
    /// Uptime in ns.
    let due: Int64
  }

  private let interval: Int64
  /// In the order of their times. Numbers count all entries so far; `first` is the number of the first one here.
  private var entries: [Entry] = []
  private var first = 0
  /// The number of the next one to leave.
  private var next = 0
  private var numbers: [UInt64: Int] = [:]
  /// The last number of each channel.
  private var lastOfChannel: [UInt32: Int] = [:]

  /// `interval`: for how long a position may be held (ns).
  init(interval: Int64) { self.interval = interval }

  /// When the next one leaves (uptime, ns); nil while none is held.
  var deadline: Int64? { next - first < entries.count ? entries[next - first].due : nil }

  /// Holds a position. True when it replaced an older one, in whose place it leaves.
  mutating func put(_ delivery: Delivery, now: Int64) -> Bool {
    if let number = numbers[delivery.conflationKey] {
      entries[number - first].delivery = delivery
      return true
    }
    let number = first + entries.count
    numbers[delivery.conflationKey] = number
    let previous = lastOfChannel.updateValue(number, forKey: delivery.channel.index)
    // Sixteen times an interval, so that those of a channel still leave together.
    let step = max(1, interval / 16)
    entries.append(Entry(delivery: delivery, previous: previous ?? -1, due: (now + interval) / step * step))
    return false
  }

  /// Takes the next position that is due by `now` (uptime, ns). Amortised O(1).
  mutating func takeDue(by now: Int64) -> Delivery? {
    while let deadline, deadline <= now {
      defer { compact() }
      let (number, delivery) = (next, entries[next - first].delivery)
      entries[number - first].delivery = nil
      next += 1
      guard let delivery else { continue }
      numbers[delivery.conflationKey] = nil
      if lastOfChannel[delivery.channel.index] == number { lastOfChannel[delivery.channel.index] = nil }
      return delivery
    }
    return nil
  }

  private mutating func compact() {
    guard next - first == entries.count || next - first >= 1024 && next - first > entries.count / 2 else { return }
    entries.removeFirst(next - first)
    first = next
  }

  /// Takes the held positions of one channel, unordered. O(1) for each.
  mutating func take(of channel: ChannelHandle) -> [Delivery] {
    guard var number = lastOfChannel.removeValue(forKey: channel.index) else { return [] }
    var taken: [Delivery] = []
    while number >= next {
      if let delivery = entries[number - first].delivery {
        numbers[delivery.conflationKey] = nil
        taken.append(delivery)
      }
      entries[number - first].delivery = nil
      number = entries[number - first].previous
    }
    return taken
  }
}
