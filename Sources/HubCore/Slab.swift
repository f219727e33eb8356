// Records addressed by a dense index, in chunks that never move, with a free list. A generation per slot, bumped when
// the record goes, tells a stale reference from a live one.
//
// Why not an array: growing one of a million drivers copies half a gigabyte in the middle of a turn, and access through
// `subscript` with a coroutine costs a heap allocation where it is not inlined. `unsafeAddress` hands out a pointer.
// Why it is right: slots below `endIndex` are initialised from their first `insert` until `deinit`, every access is
// bounds-checked against `endIndex`, and a chunk is never freed or moved while the slab lives.

struct Slab<Record>: ~Copyable {
  private static var shift: Int { 8 }
  private static var chunkSize: Int { 1 << shift }

  /// The chunks' table: as an array it would check the chunk's number once more with each access, of which a fix makes fifty.
  private var chunks: UnsafeMutablePointer<UnsafeMutablePointer<Record>>
  private var chunkCapacity = 16
  private var chunkCount = 0
  private var generations: [UInt32] = []
  private var free: [UInt32] = []
  /// One more than the largest index ever in use.
  private(set) var endIndex = 0

  init() { chunks = .allocate(capacity: chunkCapacity) }

  deinit {
    for index in 0..<endIndex { pointer(index).deinitialize(count: 1) }
    for chunk in 0..<chunkCount { chunks[chunk].deallocate() }
    chunks.deallocate()
  }

  /// Records in use.
  var count: Int { endIndex - free.count }

  @inline(__always)
  private func pointer(_ index: Int) -> UnsafeMutablePointer<Record> {
    precondition(index >= 0 && index < endIndex)
    return chunks[index >> Self.shift] + (index & (Self.chunkSize - 1))
  }

  /// In-place access; the index must have been given by `insert`.
  subscript(index: Int) -> Record {
    @inline(__always) unsafeAddress { UnsafePointer(pointer(index)) }
    @inline(__always) unsafeMutableAddress { pointer(index) }
  }

  /// Adds a record and gives its index; reuses the slot freed last.
  mutating func insert(_ record: Record) -> Int {
    if let slot = free.popLast() {
      self[Int(slot)] = record
      return Int(slot)
    }
    if endIndex >> Self.shift == chunkCount { addChunk() }
    endIndex += 1
    pointer(endIndex - 1).initialize(to: record)
    generations.append(0)
    return endIndex - 1
  }

  private mutating func addChunk() {
    if chunkCount == chunkCapacity {
      chunkCapacity *= 2
      let larger = UnsafeMutablePointer<UnsafeMutablePointer<Record>>.allocate(capacity: chunkCapacity)
      larger.initialize(from: chunks, count: chunkCount)
      chunks.deallocate()
      chunks = larger
    }
    (chunks + chunkCount).initialize(to: .allocate(capacity: Self.chunkSize))
    chunkCount += 1
  }

  /// Ends the record's life, leaving `tombstone` in its slot so that what it held is released.
  mutating func remove(_ index: Int, leaving tombstone: Record) {
    self[index] = tombstone
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
