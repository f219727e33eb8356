// The state of a running search: pending cells, and the best hits so far. Neither allocates.

import HubGeo

/// A cell to be looked at.
struct Pending: BitwiseCopyable {
  var node: UInt32
  var cell: TreeCell
  /// A lower bound: no driver in the cell is nearer.
  var squaredChord: Double
}

/// A stack of cells. Depth first, it holds at most three siblings a level and one child more: 61 at 20 levels.
struct SearchStack {
  private var items = InlineArray<64, Pending>(repeating: Pending(node: 0, cell: .world, squaredChord: 0))
  private(set) var count = 0

  mutating func push(_ item: Pending) {
    items[count] = item
    count += 1
  }

  mutating func pop() -> Pending? {
    guard count > 0 else { return nil }
    count -= 1
    return items[count]
  }

  /// Pushes an item below those above `bottom` that are nearer.
  mutating func insert(_ item: Pending, above bottom: Int) {
    var position = count
    while position > bottom, items[position - 1].squaredChord < item.squaredChord {
      items[position] = items[position - 1]
      position -= 1
    }
    items[position] = item
    count += 1
  }

  /// The least squared chord of all cells on it; used only when a search stops early.
  var minimumSquaredChord: Double {
    var least = Double.infinity
    for index in 0..<count { least = min(least, items[index].squaredChord) }
    return least
  }
}

/// The best hits so far: the end of the caller's array from `start`, unordered below the limit, then a heap with the
/// worst first.
struct BestHits {
  private let start: Int
  private let limit: Int
  private let withinMeters: Double
  /// Hits with a greater squared chord are rejected.
  private(set) var squaredChordLimit: Double
  /// The distance of the worst hit, once the limit is reached.
  private(set) var worstMeters = Double.infinity

  init(start: Int, limit: Int, withinMeters: Double) {
    self.start = start
    self.limit = limit
    self.withinMeters = withinMeters
    squaredChordLimit = SearchPoint.squaredChordLimit(meters: withinMeters)
  }

  /// Continues with hits that are a heap: the worst first.
  init(keeping hits: [DriverHit], limit: Int, withinMeters: Double) {
    self.init(start: 0, limit: limit, withinMeters: withinMeters)
    guard hits.count >= limit, let worst = hits.first else { return }
    worstMeters = worst.distanceMeters
    squaredChordLimit = SearchPoint.squaredChordLimit(meters: worstMeters)
  }

  @inline(__always)
  func wants(_ hit: DriverHit, _ hits: [DriverHit]) -> Bool {
    if hits.count - start < limit { return hit.distanceMeters <= withinMeters }
    return DriverHit.isNearer(hit, hits[start])
  }

  /// Adds a hit; removes the worst above the limit.
  @inline(__always)
  mutating func add(_ hit: DriverHit, to hits: inout [DriverHit]) {
    if hits.count - start < limit {
      hits.append(hit)
      guard hits.count - start == limit else { return }
      for index in (0..<limit / 2).reversed() { siftDown(&hits, hits[start + index], from: index) }
    } else {
      siftDown(&hits, hit, from: 0)
    }
    worstMeters = hits[start].distanceMeters
    squaredChordLimit = SearchPoint.squaredChordLimit(meters: worstMeters)
  }

  /// Replaces the hit at `index` of a heap and restores the order below it.
  private func siftDown(_ hits: inout [DriverHit], _ hit: DriverHit, from index: Int) {
    var index = index
    while true {
      var child = 2 * index + 1
      guard child < limit else { break }
      if child + 1 < limit, DriverHit.isNearer(hits[start + child], hits[start + child + 1]) { child += 1 }
      guard DriverHit.isNearer(hit, hits[start + child]) else { break }
      hits[start + index] = hits[start + child]
      index = child
    }
    hits[start + index] = hit
  }
}
