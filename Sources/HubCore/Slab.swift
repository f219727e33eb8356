// Records in one array with a free list, addressed by a dense index. A generation per slot, bumped when the record
// goes, tells a stale reference from a live one.

struct Slab<Record> {
  private(set) var records: [Record] = []
  private var generations: [UInt32] = []
  private var free: [UInt32] = []

  /// Records in use.
  var count: Int { records.count - free.count }
  /// One more than the largest index ever in use.
  var endIndex: Int { records.count }

  /// In-place access; the index must be in use.
  subscript(index: Int) -> Record {
    @inline(__always) _read { yield records[index] }
    @inline(__always) _modify { yield &records[index] }
  }

  /// Adds a record and gives its index; reuses the slot freed last.
  mutating func insert(_ record: Record) -> Int {
    if let slot = free.popLast() {
      records[Int(slot)] = record
      return Int(slot)
    }
    records.append(record)
    generations.append(0)
    return records.count - 1
  }

  /// Ends the record's life, leaving `tombstone` in its slot so that what it held is released.
  mutating func remove(_ index: Int, leaving tombstone: Record) {
    records[index] = tombstone
    generations[index] &+= 1
    free.append(UInt32(index))
  }

  func generation(of index: Int) -> UInt32 { generations[index] }

  /// True while the record that was there when `generation` was taken is still there.
  func isCurrent(_ index: Int, _ generation: UInt32) -> Bool {
    index < generations.count && generations[index] == generation
  }
}

/// A record of a slab that may be gone by now.
struct Handle: Equatable {
  var index: UInt32
  var generation: UInt32
}
