// Changes of the tree: entries enter and leave leaves; leaves split and merge.
//
// A leaf's blocks form a chain in which only the head may be partly filled: an entry is added at the head's end, and a
// hole is filled with the head's last.

import HubGeo

extension DriverIndex {
  /// Adds an entry in the subtree of a cell whose own count includes it already.
  mutating func insert(_ entry: Entry, key: UInt64, below start: UInt32) {
    var index = start
    while true {
      let node = nodes[index]
      if node.isLeaf {
        // The count includes the new entry.
        let isFull = Int(node.count) > DriverIndex.leafCapacity && Int(node.level) < DriverIndex.deepestLevel
        if !isFull {
          append(entry, toLeaf: index, holding: node.count - 1)
          return
        }
        split(index)
      } else {
        index = node.link + DriverIndex.quadrant(of: key, level: node.level)
        nodes[index].count += 1
      }
    }
  }

  /// Appends an entry to a leaf of `held` entries; the caller updates its count.
  private mutating func append(_ entry: Entry, toLeaf index: UInt32, holding held: UInt32) {
    let position = held % UInt32(DriverIndex.leafCapacity)
    if position == 0 {
      let block = takeBlock()
      nextBlock[block] = nodes[index].link
      nodes[index].link = block
    }
    let slot = nodes[index].link * UInt32(DriverIndex.leafCapacity) + position
    entries[slot] = entry
    locators[entry.driver].leaf = index
    locators[entry.driver].slot = slot
  }

  /// Removes the entry at a `Locator` from its leaf; `leave` updates the counts.
  mutating func takeOut(_ locator: Locator) {
    let leaf = nodes[locator.leaf]
    let last = leaf.link * UInt32(DriverIndex.leafCapacity) + (leaf.count - 1) % UInt32(DriverIndex.leafCapacity)
    if last != locator.slot {
      let moved = entries[last]
      entries[locator.slot] = moved
      locators[moved.driver].slot = locator.slot
    }
    if last % UInt32(DriverIndex.leafCapacity) == 0 {
      nodes[locator.leaf].link = nextBlock[leaf.link]
      release(block: leaf.link)
    }
  }

  /// Subtracts one driver from a leaf and the cells above it, below the one at `level`, which it gives; merges those
  /// that are nearly empty.
  mutating func leave(_ leaf: UInt32, upTo level: Int) -> UInt32 {
    var index = leaf
    while Int(nodes[index].level) > level {
      nodes[index].count -= 1
      mergeIfFew(index)
      index = nodes[index].parent
    }
    return index
  }

  /// Makes a leaf of one block an inner cell. Its children are leaves; their counts are those of the entries here.
  private mutating func split(_ index: UInt32) {
    let leaf = nodes[index]
    let first = takeGroup()
    shapes &+= 1
    for child in first..<first + 4 {
      nodes[child] = Node(
        link: DriverIndex.none, count: 0, parent: index, level: leaf.level + 1, isLeaf: true, shape: shapes)
    }
    nodes[index].link = first
    nodes[index].isLeaf = false
    for position in 0..<DriverIndex.leafCapacity {
      let entry = entries[Int(leaf.link) * DriverIndex.leafCapacity + position]
      let child = first + DriverIndex.quadrant(of: locators[entry.driver].key, level: leaf.level)
      nodes[child].count += 1
      append(entry, toLeaf: child, holding: nodes[child].count - 1)
    }
    release(block: leaf.link)
  }

  /// Makes an inner cell with few drivers a leaf. All its children are leaves then: a child that was an inner cell
  /// had more than 8 drivers until now, and is merged before its parent is looked at.
  mutating func mergeIfFew(_ index: UInt32) {
    let node = nodes[index]
    guard !node.isLeaf, node.count <= DriverIndex.mergeCount else { return }
    shapes &+= 1
    nodes[index].isLeaf = true
    nodes[index].shape = shapes
    nodes[index].link = DriverIndex.none
    var held: UInt32 = 0
    for child in node.link..<node.link + 4 {
      let leaf = nodes[child]
      guard leaf.link != DriverIndex.none else { continue }
      for position in 0..<leaf.count {
        append(entries[leaf.link * UInt32(DriverIndex.leafCapacity) + position], toLeaf: index, holding: held)
        held += 1
      }
      release(block: leaf.link)
    }
    nodes[node.link].link = freeGroup
    freeGroup = node.link
  }

  private mutating func takeBlock() -> UInt32 {
    if freeBlock != DriverIndex.none {
      let block = freeBlock
      freeBlock = nextBlock[block]
      return block
    }
    let block = nextBlock.count
    nextBlock.grow(to: block + 1)
    entries.grow(to: (block + 1) * DriverIndex.leafCapacity)
    return UInt32(block)
  }

  private mutating func release(block: UInt32) {
    nextBlock[block] = freeBlock
    freeBlock = block
  }

  private mutating func takeGroup() -> UInt32 {
    if freeGroup != DriverIndex.none {
      let group = freeGroup
      freeGroup = nodes[group].link
      return group
    }
    let group = nodes.count
    nodes.grow(to: group + 4)
    return UInt32(group)
  }
}
