// All drivers in the cells that a search enters, such as those of a circle or a box, in Morton order, in as many calls
// as it takes.
//
// A search that has used up its budget gives a cursor from which a later call continues, so an answer of any size never
// holds the hub's thread for long.

import HubGeo

/// Where a within search stopped.
public struct SearchCursor: Sendable, Hashable {
  /// All keys before this one are done.
  fileprivate var key: UInt64
  /// The oldest entries of the leaf that begins at `key` which are still to be visited ...
  fileprivate var left: UInt32
  /// ... if it is the same leaf. If it was split or merged meanwhile, its entries are in another order and it is
  /// visited again from the start.
  fileprivate var shape: UInt16

  /// The beginning.
  public static let start = SearchCursor(key: 0, left: .max, shape: 0)
}

extension DriverIndex {
  /// Visits the entries of all cells that `enter` accepts, in key order. Stops with the budget used up, but makes
  /// progress: down to a leaf, and by one driver. Gives nil at the end, else where to continue.
  ///
  /// Drivers may move between two calls: one that crosses the cursor may be missed or found twice; one that does not
  /// move is found, and twice only if its cell was split or merged or a neighbour in its leaf has left.
  @inline(__always)
  func traverse(
    from cursor: SearchCursor, spending budget: inout SearchBudget, enter: (TreeCell) -> Bool, visit: (Entry) -> Void
  ) -> SearchCursor? {
    let given = budget
    var stack = SearchStack()
    stack.push(Pending(node: 0, cell: .world, squaredChord: 0))
    // At least enough for progress in each call: down to a leaf, and one driver.
    var work = SearchBudget(
      cells: max(budget.cells, 2 * DriverIndex.deepestLevel), candidates: max(budget.candidates, 1))
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

  /// Visits the `left` oldest entries of a leaf, newest of them first; gives how many are left if it has to stop.
  ///
  /// The order follows from removal: the newest entry takes the slot of one that leaves. So between two calls a visited
  /// entry may move among the unvisited, but no unvisited one is lost.
  @inline(__always)
  private func scan(
    _ leaf: Node, oldest: UInt32, _ work: inout SearchBudget, _ visit: (Entry) -> Void
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
        let run = min(left - oldestOfBlock, work.candidates)
        guard run > 0 else { return UInt32(left) }
        work.candidates -= run
        left -= run
        unsafe entries.withRun(from: base + left - oldestOfBlock, count: run) { run in
          for index in run.indices.reversed() { unsafe visit(run[index]) }
        }
      }
      block = nextBlock[block]
      length = DriverIndex.leafCapacity
    }
    return nil
  }
}
