// The next deadline of thousands of clients: a binary heap of times.
//
// Entries are not removed when a time changes; the owner compares a due entry with the present time. So a change costs
// one insertion, and the heap has at most as many entries as changes in their time.

/// Times with their purpose.
struct DeadlineHeap {
  struct Entry {
    var time: Int64
    var client: UInt32
    /// Which of the client's timers, defined by its owner.
    var kind: UInt8
  }

  private var entries: [Entry] = []

  var first: Int64? { entries.first?.time }
  var count: Int { entries.count }

  mutating func insert(_ entry: Entry) {
    entries.append(entry)
    var child = entries.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard entries[child].time < entries[parent].time else { return }
      entries.swapAt(child, parent)
      child = parent
    }
  }

  /// Takes the earliest entry, if it is due.
  mutating func take(at now: Int64) -> Entry? {
    guard let first = entries.first, first.time <= now else { return nil }
    entries.swapAt(0, entries.count - 1)
    entries.removeLast()
    var parent = 0
    while true {
      var least = parent
      for child in 2 * parent + 1...2 * parent + 2
      where child < entries.count && entries[child].time < entries[least].time { least = child }
      guard least != parent else { return first }
      entries.swapAt(parent, least)
      parent = least
    }
  }
}
