// Finds the fences that may contain a coordinate: the cells of all fences in one table.
//
// A fix looks up its cell at each level that has cells of fences. Which levels have one for the driver's finest cell is
// kept with the driver, so a driver who stays in its cell looks up only those, or nothing where no fence is near. 64
// bytes a cell of up to 12 fences; more are in further records behind it.
import HubBytes
import HubGeo

/// Up to 12 fences of a cell.
struct FenceCellRecord {
  static let capacity = 12

  var key: UInt64
  var count: UInt32 = 0
  /// Further fences of the same cell; −1 for none. Records behind the first are full.
  var next: Int32 = -1
  /// A fence's index times two, plus one where the cell is entirely within it.
  var fences = InlineArray<12, UInt32>(repeating: 0)
}

/// Which levels have fences at a coordinate's cell: kept with each driver.
struct FenceLevels: Equatable {
  /// The finest cell and the index's version; 0 for none.
  var stamp: UInt64 = 0
  /// Bit l: the cell of level l has fences.
  var levels: UInt32 = 0
}

struct FenceIndex: ~Copyable {
  private var records = Slab<FenceCellRecord>()
  private var cells = IndexTable()
  /// Cells of each level.
  private var counts = InlineArray<19, Int>(repeating: 0)
  /// Incremented with each change, which invalidates what drivers keep; 28 bits of it are compared.
  private var version: UInt64 = 1

  /// Cells that have fences.
  var cellCount: Int { cells.count }

  private static func hash(_ key: UInt64) -> UInt64 { (key &* Mix64.golden) >> 32 }

  @inline(__always)
  private func find(_ key: UInt64) -> Int? {
    cells.find(hash: FenceIndex.hash(key)) { records[$0].key == key }
  }

  // MARK: Looking

  /// Updates the levels of a coordinate's cell. 15 ns where they are up to date.
  @inline(__always)
  func look(_ place: Coordinate, _ known: inout FenceLevels) {
    let code = FenceCell.code(of: place)
    let stamp = code << 28 | version & 0xFFF_FFFF
    if known.stamp == stamp { return }
    known.stamp = stamp
    known.levels = levels(code)
  }

  @inline(never)
  private func levels(_ code: UInt64) -> UInt32 {
    var levels: UInt32 = 0
    for level in 0...FenceCell.finestLevel where counts[level] > 0 {
      let key = FenceCell.key(code >> UInt64(2 * (FenceCell.finestLevel - level)), level: level)
      if find(key) != nil { levels |= 1 << UInt32(level) }
    }
    return levels
  }

  /// A walk over the fences of a coordinate's cells.
  struct Walk {
    fileprivate var code: UInt64
    fileprivate var levels: UInt32
    fileprivate var record = -1
    fileprivate var index: UInt32 = 0
  }

  /// Begins a walk. Precondition: `known` was just updated for the coordinate by `look`.
  @inline(__always)
  func walk(_ known: FenceLevels) -> Walk { Walk(code: known.stamp >> 28, levels: known.levels) }

  /// The next fence, once each, and whether all of its cell is within it.
  @inline(__always)
  func next(_ walk: inout Walk) -> (fence: Int, isWhole: Bool)? {
    while true {
      if walk.record >= 0 {
        if walk.index < records[walk.record].count {
          let entry = records[walk.record].fences[Int(walk.index)]
          walk.index += 1
          return (Int(entry >> 1), entry & 1 == 1)
        }
        walk.record = Int(records[walk.record].next)
        walk.index = 0
        continue
      }
      guard walk.levels != 0 else { return nil }
      let level = walk.levels.trailingZeroBitCount
      walk.levels &= walk.levels - 1
      let key = FenceCell.key(walk.code >> UInt64(2 * (FenceCell.finestLevel - level)), level: level)
      walk.record = find(key) ?? -1
      walk.index = 0
    }
  }

  // MARK: Changing

  /// Whether each cell has fewer fences than the limit, without `replaced`, which is about to be removed.
  func hasRoom(_ covering: FenceCovering, perCell limit: Int, besides replaced: Int? = nil) -> Bool {
    for entry in covering.entries {
      var record = find(entry.key) ?? -1
      var count = 0
      while record >= 0 {
        count += Int(records[record].count)
        if let replaced {
          for index in 0..<Int(records[record].count) where Int(records[record].fences[index] >> 1) == replaced {
            count -= 1
          }
        }
        record = Int(records[record].next)
      }
      if count >= limit { return false }
    }
    return true
  }

  mutating func insert(_ covering: FenceCovering, fence: Int) {
    version += 1
    for entry in covering.entries { insert(entry, fence) }
  }

  private mutating func insert(_ entry: FenceCovering.Entry, _ fence: Int) {
    let value = UInt32(fence) << 1 | (entry.isWhole ? 1 : 0)
    let first: Int
    if let found = find(entry.key) {
      first = found
    } else {
      first = records.insert(FenceCellRecord(key: entry.key))
      cells.insert(hash: FenceIndex.hash(entry.key), index: first)
      counts[Int(entry.key & 31)] += 1
    }
    if records[first].count == FenceCellRecord.capacity {
      let full = records[first]
      let moved = records.insert(full)
      records[first].next = Int32(moved)
      records[first].count = 0
    }
    records[first].fences[Int(records[first].count)] = value
    records[first].count += 1
  }

  /// Removes a fence from the cells of its covering.
  mutating func remove(_ covering: FenceCovering, fence: Int) {
    version += 1
    for entry in covering.entries { remove(entry, fence) }
  }

  private mutating func remove(_ entry: FenceCovering.Entry, _ fence: Int) {
    guard let first = find(entry.key) else { preconditionFailure("it was put in") }
    var record = first
    while record >= 0 {
      for index in 0..<Int(records[record].count) where Int(records[record].fences[index] >> 1) == fence {
        records[first].count -= 1
        let last = records[first].fences[Int(records[first].count)]
        records[record].fences[index] = last
        return removeIfEmpty(first)
      }
      record = Int(records[record].next)
    }
    preconditionFailure("it was put in")
  }

  /// Where the first record of a cell is empty, moves the one behind it there, or removes the cell.
  private mutating func removeIfEmpty(_ first: Int) {
    guard records[first].count == 0 else { return }
    let next = Int(records[first].next)
    let key = records[first].key
    if next >= 0 {
      let moved = records[next]
      records[first] = moved
      records.remove(next, leaving: FenceCellRecord(key: 0))
    } else {
      cells.remove(hash: FenceIndex.hash(key), index: first)
      counts[Int(key & 31)] -= 1
      records.remove(first, leaving: FenceCellRecord(key: 0))
    }
  }
}
