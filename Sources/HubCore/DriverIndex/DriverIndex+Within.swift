// All drivers in a circle or a box, in the order of Morton codes, in as many calls as it takes.
//
// A search that reaches its limit or its budget says where it stopped, and a later call goes on from there: this way
// an answer of any size never holds the hub's thread for long.

public import HubGeo

/// Where a within search stopped.
public struct SearchCursor: Sendable, Hashable {
  /// All keys before this one are done.
  fileprivate var key: UInt64
  /// Entries of the leaf that begins at `key` that are still to be visited: its oldest ...
  fileprivate var left: UInt32
  /// ... if it is still the same leaf; if it was split or merged meanwhile, even to where it was, its entries lie in
  /// another order, and it is begun again.
  fileprivate var shape: UInt16

  /// The beginning.
  public static let start = SearchCursor(key: 0, left: .max, shape: 0)
}

extension DriverIndex {
  /// Appends the drivers within `radiusMeters` of a place to `hits`, in no particular order.
  ///
  /// A driver at exactly that distance is in. Gives nil when that were all; or, when `limit` hits were added or the
  /// budget ran out, where to go on. Between two calls drivers may move: one that crosses the cursor may be missed or
  /// come twice; one that stays where it is comes, and twice only if its cell was split or merged or a neighbour in its
  /// leaf has left. No allocation but for the growth of `hits`.
  public func within(
    center: Coordinate, radiusMeters: Double, from cursor: SearchCursor = .start, limit: Int = .max,
    budget: SearchBudget = .standard, into hits: inout [DriverHit],
    where filter: (UInt32, DriverLabel) -> Bool = { _, _ in true }
  ) -> SearchCursor? {
    guard radiusMeters >= 0 else { return nil }
    let point = SearchPoint(center)
    let limitChord = SearchPoint.squaredChordLimit(meters: radiusMeters)
    var budget = budget
    return traverse(from: cursor, limit: limit, spending: &budget) { cell in
      point.leastSquaredChord(to: cell) <= limitChord
    } visit: { entry in
      guard point.vector.squaredChord(to: entry.vector) <= limitChord else { return false }
      let distance = point.vector.distance(to: entry.vector)
      guard distance <= radiusMeters, filter(entry.driver, entry.label) else { return false }
      hits.append(DriverHit(driver: entry.driver, distanceMeters: distance))
      return true
    }
  }

  /// Appends the handles of the drivers in a box to `drivers`, in no particular order. Borders belong to the box.
  ///
  /// The limit, budget and cursor are those of the circle's search.
  public func within(
    _ box: BoundingBox, from cursor: SearchCursor = .start, limit: Int = .max, budget: SearchBudget = .standard,
    into drivers: inout [UInt32], where filter: (UInt32, DriverLabel) -> Bool = { _, _ in true }
  ) -> SearchCursor? {
    // The last cell entered is the leaf whose entries are visited: where it is wholly inside, as most are in a large
    // answer, no driver's place is looked up (a cache miss each).
    var isInside = false
    var budget = budget
    return traverse(from: cursor, limit: limit, spending: &budget) { cell in
      guard cell.intersects(box) else { return false }
      isInside = cell.isInside(box)
      return true
    } visit: { entry in
      if !isInside {
        let place = places[entry.driver]
        guard place.latitude >= box.south, place.latitude <= box.north, box.contains(longitude: place.longitude)
        else { return false }
      }
      guard filter(entry.driver, entry.label) else { return false }
      drivers.append(entry.driver)
      return true
    }
  }

  /// Visits the entries of all cells that `enter` accepts, in the order of keys; `visit` says whether it was a hit.
  /// Ends after `limit` hits or with the budget, but not before it got on: down to a leaf, and by one driver.
  @inline(__always)
  func traverse(
    from cursor: SearchCursor, limit: Int, spending budget: inout SearchBudget, enter: (TreeCell) -> Bool,
    visit: (Entry) -> Bool
  ) -> SearchCursor? {
    let given = budget
    var stack = SearchStack()
    stack.push(Pending(node: 0, cell: .world, squaredChord: 0))
    // At least so much that each call gets on: down to a leaf, and one driver.
    var work = WithinWork(
      cells: max(budget.cells, 2 * DriverIndex.deepestLevel), candidates: max(budget.candidates, 1),
      hits: max(limit, 1))
    defer {
      budget.cells = max(0, min(given.cells, work.cells))
      budget.candidates = max(0, min(given.candidates, work.candidates))
    }
    while let next = stack.pop() {
      let node = nodes[next.node]
      if node.count == 0 || next.cell.lastKey < cursor.key || !enter(next.cell) { continue }
      guard work.cells > 0 else { return SearchCursor(key: next.cell.firstKey, left: .max, shape: 0) }
      work.cells -= 1
      if node.isLeaf {
        let key = next.cell.firstKey
        let isResumed = key == cursor.key && node.shape == cursor.shape
        guard let left = scan(node, oldest: isResumed ? cursor.left : .max, &work, visit) else { continue }
        return SearchCursor(key: key, left: left, shape: node.shape)
      }
      for quadrant in (0..<UInt32(4)).reversed() {
        stack.push(Pending(node: node.link + quadrant, cell: next.cell.child(quadrant), squaredChord: 0))
      }
    }
    return nil
  }

  /// Visits the oldest entries of a leaf, so many of them, the newest of these first; gives how many are left if it has
  /// to stop before the end.
  ///
  /// In this order because of how entries go: the newest takes the place of one that leaves. So between two calls one
  /// that was visited may come among those that are left, but none of these gets lost.
  @inline(__always)
  private func scan(
    _ leaf: Node, oldest: UInt32, _ work: inout WithinWork, _ visit: (Entry) -> Bool
  ) -> UInt32? {
    var left = Int(leaf.count)
    let first = min(left, Int(oldest))
    var block = leaf.link
    var length = (left - 1) % DriverIndex.leafCapacity + 1
    while block != DriverIndex.none {
      let base = Int(block) * DriverIndex.leafCapacity
      let oldestOfBlock = left - length
      left = min(left, max(first, oldestOfBlock))
      while left > oldestOfBlock {
        let run = min(left - oldestOfBlock, work.hits, work.candidates)
        guard run > 0 else { return UInt32(left) }
        work.candidates -= run
        left -= run
        unsafe entries.withRun(from: base + left - oldestOfBlock, count: run) { run in
          for index in run.indices.reversed() where unsafe visit(run[index]) { work.hits -= 1 }
        }
      }
      block = nextBlock[block]
      length = DriverIndex.leafCapacity
    }
    return nil
  }
}

/// What a within search may still do.
private struct WithinWork {
  var cells: Int
  var candidates: Int
  var hits: Int
}
