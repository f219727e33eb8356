// Maps keys to the indices of their records: open addressing with linear probing over 8-byte entries.
//
// The key stays in the record: a Dictionary<Identifier, UInt32> would hold each id (72 bytes) twice and hash it with
// SipHash. Deletion moves later entries back (Knuth, TAOCP 3, 6.4, algorithm R), so there are no tombstones.

struct IndexTable {
  private struct Entry {
    var fingerprint: UInt32
    var index: UInt32
    static var empty: Entry { Entry(fingerprint: 0, index: .max) }
    var isEmpty: Bool { index == .max }
  }

  private var entries: [Entry]
  private var mask: Int
  private(set) var count = 0

  init() {
    entries = Array(repeating: .empty, count: 16)
    mask = 15
  }

  /// The index stored under a key with this hash for which `matches` is true. O(1) expected.
  @inline(__always)
  func find(hash: UInt64, where matches: (Int) -> Bool) -> Int? {
    let fingerprint = UInt32(truncatingIfNeeded: hash)
    var position = Int(fingerprint) & mask
    while true {
      let entry = entries[position]
      if entry.isEmpty { return nil }
      if entry.fingerprint == fingerprint, matches(Int(entry.index)) { return Int(entry.index) }
      position = (position + 1) & mask
    }
  }

  /// Stores an index under a hash. Precondition: the key is not stored yet. Amortised O(1).
  mutating func insert(hash: UInt64, index: Int) {
    if (count + 1) * 4 > entries.count * 3 { grow() }
    put(Entry(fingerprint: UInt32(truncatingIfNeeded: hash), index: UInt32(index)))
    count += 1
  }

  /// Removes the entry of this index, stored under this hash.
  mutating func remove(hash: UInt64, index: Int) {
    var hole = Int(UInt32(truncatingIfNeeded: hash)) & mask
    while entries[hole].index != UInt32(index) {
      precondition(!entries[hole].isEmpty, "removed what was never inserted")
      hole = (hole + 1) & mask
    }
    var next = hole
    while true {
      next = (next + 1) & mask
      if entries[next].isEmpty { break }
      let home = Int(entries[next].fingerprint) & mask
      // Move back unless the entry's home lies cyclically in (hole, next].
      if (next &- home) & mask >= (next &- hole) & mask {
        entries[hole] = entries[next]
        hole = next
      }
    }
    entries[hole] = .empty
    count -= 1
  }

  private mutating func put(_ entry: Entry) {
    var position = Int(entry.fingerprint) & mask
    while !entries[position].isEmpty { position = (position + 1) & mask }
    entries[position] = entry
  }

  private mutating func grow() {
    let old = entries
    entries = Array(repeating: .empty, count: old.count * 2)
    mask = entries.count - 1
    for entry in old where !entry.isEmpty { put(entry) }
  }
}
