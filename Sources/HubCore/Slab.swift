// Records with dense indices, in chunks that never move, with a free list. A generation per slot, incremented at
// insertion and removal, distinguishes stale references; it is odd while the slot is in use.
//
// Access through `subscript` with a coroutine would cost a heap allocation where it is not inlined, and the compiler
// (6.3.1, without whole modules) then reads members behind its end; `unsafeAddress` hands out a pointer. Why it is
// right: slots below `endIndex` are initialised from their first `insert` until `deinit`, every access is
// bounds-checked against `endIndex`, and what ChunkTable gives never moves.
import HubBytes

struct Slab<Record>: ~Copyable {
  private var table = ChunkTable<Record>()
  private var generations: [UInt32] = []
  private var free: [UInt32] = []
  /// One more than the largest index ever in use.
  private(set) var endIndex = 0

  init() {}

  deinit {
    for index in 0..<endIndex { unsafe pointer(index).deinitialize(count: 1) }
  }

  /// Records in use.
  var count: Int { endIndex - free.count }

  @inline(__always)
  private func pointer(_ index: Int) -> UnsafeMutablePointer<Record> {
    precondition(index >= 0 && index < endIndex)
    return unsafe table.pointer(index)
  }

  /// A pointer to a record for reading, valid until the slab changes.
  @inline(__always)
  func address(of index: Int) -> UnsafePointer<Record> { unsafe UnsafePointer(pointer(index)) }

  /// In-place access; the index must have been given by `insert`.
  subscript(index: Int) -> Record {
    @inline(__always) unsafeAddress { unsafe address(of: index) }
    @inline(__always) unsafeMutableAddress { unsafe pointer(index) }
  }

  /// Adds a record and gives its index; reuses the slot freed last.
  mutating func insert(_ record: consuming Record) -> Int {
    if let slot = free.popLast() {
      self[Int(slot)] = record
      generations[Int(slot)] &+= 1
      return Int(slot)
    }
    if endIndex == table.capacity { table.grow() }
    endIndex += 1
    unsafe pointer(endIndex - 1).initialize(to: record)
    generations.append(1)
    return endIndex - 1
  }

  /// Removes a record, leaving `tombstone` in its slot so that what it held is released.
  mutating func remove(_ index: Int, leaving tombstone: Record) {
    self[index] = tombstone
    generations[index] &+= 1
    free.append(UInt32(index))
  }

  /// Whether an index below `endIndex` has a record.
  @inline(__always)
  func isInUse(_ index: Int) -> Bool { generations[index] & 1 == 1 }

  @inline(__always)
  func handle(of index: Int) -> Handle { Handle(index: UInt32(index), generation: generations[index]) }

  /// The index of a handle's record; nil where it was removed.
  @inline(__always)
  func current(_ handle: Handle) -> Int? {
    let index = Int(handle.index)
    return index < generations.count && generations[index] == handle.generation ? index : nil
  }
}

/// A reference to a record of a slab, which may have been removed.
struct Handle: Equatable, Sendable {
  var index: UInt32
  var generation: UInt32
}
