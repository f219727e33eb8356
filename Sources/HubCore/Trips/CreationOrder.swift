// Trips in the order in which they began, for lists by pages, newest first.
//
// Numbers grow, so a new trip is appended; trips are forgotten in any order. Sorted chunks of up to 512 entries:
// finding is a binary search over the chunks and one within, a change moves at most 8 KB, and no turn copies a table of
// a million. (In effect a B-tree of two levels; one array would move 16 MB for one old trip.)
//
// A single hub numbers its trips from 1. In a cluster each numbers them from its clock, so that their lists have one
// order by the time at which trips began, as exact as the clocks.
import HubMessages

struct CreationOrder {
  struct Entry: Equatable {
    var number: UInt64
    var trip: UInt32
  }

  static let chunkCapacity = 512

  /// Ascending, none empty.
  private var chunks: [[Entry]] = []
  private(set) var count = 0
  private(set) var newestNumber: UInt64 = 0
  /// Numbers are at least those of the clock: 256 for each of its milliseconds.
  var goesByClock = false

  /// The number of a trip that begins now.
  mutating func nextNumber(at time: Timestamp) -> UInt64 {
    newestNumber = max(newestNumber + 1, goesByClock ? UInt64(max(0, time.milliseconds)) << 8 : 0)
    return newestNumber
  }

  mutating func restore(newestNumber number: UInt64) { newestNumber = max(newestNumber, number) }

  /// The chunk for `number`: the last that begins at or before it, or the first. Precondition: there is one.
  private func chunk(for number: UInt64) -> Int {
    var low = 0
    var high = chunks.count
    while high - low > 1 {
      let middle = (low + high) / 2
      if chunks[middle][0].number <= number { low = middle } else { high = middle }
    }
    return low
  }

  /// The first entry of a chunk with this number or a larger one.
  private func index(of number: UInt64, in chunk: Int) -> Int {
    var low = 0
    var high = chunks[chunk].count
    while low < high {
      let middle = (low + high) / 2
      if chunks[chunk][middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Adds a trip. Precondition: its number is new.
  mutating func insert(_ number: UInt64, trip: Int) {
    count += 1
    let entry = Entry(number: number, trip: UInt32(trip))
    guard let last = chunks.last else { return chunks.append([entry]) }
    if last[last.count - 1].number < number, last.count >= Self.chunkCapacity { return chunks.append([entry]) }
    var chunk = chunk(for: number)
    if chunks[chunk].count >= Self.chunkCapacity {
      let half = chunks[chunk].count / 2
      let upper = Array(chunks[chunk][half...])
      chunks[chunk].removeSubrange(half...)
      chunks.insert(upper, at: chunk + 1)
      if number > upper[0].number { chunk += 1 }
    }
    chunks[chunk].insert(entry, at: index(of: number, in: chunk))
  }

  /// Removes the trip with this number, if there is one.
  mutating func remove(_ number: UInt64) {
    guard !chunks.isEmpty else { return }
    let chunk = chunk(for: number)
    let index = index(of: number, in: chunk)
    guard index < chunks[chunk].count, chunks[chunk][index].number == number else { return }
    count -= 1
    chunks[chunk].remove(at: index)
    if chunks[chunk].isEmpty {
      chunks.remove(at: chunk)
    } else if chunk + 1 < chunks.count, chunks[chunk].count + chunks[chunk + 1].count <= Self.chunkCapacity / 2 {
      // A few long-lived trips must not keep a chunk each.
      let upper = chunks.remove(at: chunk + 1)
      chunks[chunk].append(contentsOf: upper)
    }
  }

  /// Gives the trips below `number`, the newest first, until `body` returns false. O(log n), and O(1) for each.
  func visit(below number: UInt64, _ body: (Entry) -> Bool) {
    guard !chunks.isEmpty else { return }
    var chunk = chunk(for: number)
    var index = index(of: number, in: chunk)
    while true {
      while index > 0 {
        index -= 1
        guard body(chunks[chunk][index]) else { return }
      }
      guard chunk > 0 else { return }
      chunk -= 1
      index = chunks[chunk].count
    }
  }
}
