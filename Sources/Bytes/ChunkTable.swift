// Memory for numbered elements, in chunks that never move: for the hub's slabs and the loops' tables of connections and
// sessions.
//
// Why not an array: growing one of a million records copies hundreds of megabytes during a turn, and invalidates
// pointers into it. A chunk is allocated once and not moved. It has 1,024 elements, because the system allocates large
// chunks in pages: with 256 records of 800 bytes one page in fifty would hold only the allocator's sixteen bytes.
//
// A table over 16 MB grows by an eighth, in huge pages where the system has them: a million drivers' records are 640
// MB, and with pages of 4 kB a start spent a sixth of its time on their first touch (a snapshot is read in 1.75 s for
// 2.0, `hub-microbench start`). Fixes of so many drivers also miss the TLB less often. Pages are resident from their
// first touch on, so unused room costs nothing.
//
// Why it is right: the table owns the memory and nothing in it. Its owner tracks which elements are initialised,
// accesses only these, and deinitialises them before the table is freed.
#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Uninitialised slots by number, from 0; the owner keeps account of them.
@safe
public struct ChunkTable<Element: ~Copyable>: ~Copyable {
  @inlinable static var shift: Int { 10 }
  /// Elements of one chunk, a power of two.
  @inlinable public static var chunkSize: Int { 1 << shift }

  /// The chunks' addresses. An array would check the index again at each access, of which a fix makes fifty.
  @usableFromInline var chunks: UnsafeMutablePointer<UnsafeMutablePointer<Element>>
  @usableFromInline var chunkCapacity = 16
  @usableFromInline var chunkCount = 0
  /// The chunks with which an allocation begins: large tables allocate several at once.
  @usableFromInline var blocks: [Int] = []

  @inlinable public init() { unsafe chunks = .allocate(capacity: 16) }

  @inlinable deinit {
    for first in blocks { unsafe chunks[first].deallocate() }
    unsafe chunks.deallocate()
  }

  /// The number of slots.
  @inlinable public var capacity: Int {
    @inline(__always) get { chunkCount << ChunkTable.shift }
  }

  /// A slot. `index` must be below `capacity`, which the caller has checked.
  @inlinable @inline(__always)
  public func pointer(_ index: Int) -> UnsafeMutablePointer<Element> {
    unsafe chunks[index >> ChunkTable.shift] + (index & (ChunkTable.chunkSize - 1))
  }

  /// Adds at least `chunkSize` slots. O(1), but for the chunks' own table, which doubles.
  @inlinable public mutating func grow() {
    let chunkBytes = MemoryLayout<Element>.stride << ChunkTable.shift
    let isLarge = chunkCount * chunkBytes >= HugePages.smallestTable
    let added = isLarge ? max(1, chunkCount / 8) : 1
    reserve(added)
    let alignment = isLarge ? HugePages.size : max(16, MemoryLayout<Element>.alignment)
    let block = UnsafeMutableRawPointer.allocate(byteCount: added * chunkBytes, alignment: alignment)
    if isLarge { unsafe HugePages.advise(block, bytes: added * chunkBytes) }
    blocks.append(chunkCount)
    let slots = unsafe block.bindMemory(to: Element.self, capacity: added << ChunkTable.shift)
    for chunk in 0..<added {
      unsafe (chunks + chunkCount + chunk).initialize(to: slots + (chunk << ChunkTable.shift))
    }
    chunkCount += added
  }

  /// Makes room for the addresses of more chunks.
  @inlinable mutating func reserve(_ added: Int) {
    if chunkCount + added <= chunkCapacity { return }
    chunkCapacity = max(chunkCapacity * 2, chunkCount + added)
    let larger = UnsafeMutablePointer<UnsafeMutablePointer<Element>>.allocate(capacity: chunkCapacity)
    unsafe larger.initialize(from: chunks, count: chunkCount)
    unsafe chunks.deallocate()
    unsafe chunks = larger
  }
}

/// Pages of 2 MB, which Linux gives on request (`transparent_hugepage` = `madvise` or `always`).
@usableFromInline enum HugePages {
  @usableFromInline static var size: Int { 2 << 20 }
  /// The table size in bytes from which on the unused part of its last page matters little.
  @usableFromInline static var smallestTable: Int { 16 << 20 }

  /// Asks the kernel for such pages; where it has none, ordinary ones are used.
  @usableFromInline static func advise(_ start: UnsafeMutableRawPointer, bytes: Int) {
    #if !canImport(Darwin)
      _ = unsafe madvise(start, bytes, MADV_HUGEPAGE)
    #endif
  }
}
