// The drivers in a geohash cell, in slices: leaf after leaf in key order, so that a walk can stop after any leaf and
// continue later, however many drivers have moved.

extension DriverIndex {
  /// Appends the drivers whose keys are in `first...last`, until there are `limit` or more. Gives the key to continue
  /// from; nil at the end. O(drivers + leaves).
  ///
  /// A driver that does not move between the calls is found once; one that moves may be found twice or not at all.
  func drivers(from first: UInt64, through last: UInt64, limit: Int, into found: inout [UInt32]) -> UInt64? {
    var key = first
    let start = found.count
    while true {
      let (leaf, end) = leaf(at: key)
      append(leaf, from: first, through: last, to: &found)
      guard end < last else { return nil }
      key = end + 1
      if found.count - start >= limit { return key }
    }
  }

  /// The leaf that a key lies in, and the last key of it.
  private func leaf(at key: UInt64) -> (index: UInt32, lastKey: UInt64) {
    var index: UInt32 = 0
    while !nodes[index].isLeaf {
      index = nodes[index].link + DriverIndex.quadrant(of: key, level: nodes[index].level)
    }
    return (index, key | ((1 << (60 - 2 * UInt64(nodes[index].level))) - 1))
  }

  private func append(_ leaf: UInt32, from first: UInt64, through last: UInt64, to found: inout [UInt32]) {
    var block = nodes[leaf].link
    var rest = Int(nodes[leaf].count)
    // Only the first block may be partly filled.
    var filled = rest % DriverIndex.leafCapacity
    if filled == 0 { filled = DriverIndex.leafCapacity }
    while rest > 0 {
      let slots = Int(block) * DriverIndex.leafCapacity
      for slot in slots..<slots + filled {
        let driver = entries[slot].driver
        if (first...last).contains(locators[driver].key) { found.append(driver) }
      }
      rest -= filled
      filled = DriverIndex.leafCapacity
      if rest > 0 { block = nextBlock[block] }
    }
  }
}
