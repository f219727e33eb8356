// Room for numbered elements, in chunks that never move: what the hub's slabs and the loops' tables of connections and
// sessions lie in.
//
// Why not an array: growing one of a million records copies hundreds of megabytes in the middle of a turn, and a
// pointer into it is good for nothing afterwards. A chunk is allocated once and stays where it is for as long as the
// table does. It is of 1,024 elements, because the system gives large chunks in whole pages: of 256 records of 800
// bytes one page in fifty would have nothing in it but the allocator's sixteen bytes.
//
// Why it is right: the table owns the memory and nothing in it. Its owner says which places are initialised, asks for
// no other place than these, and deinitialises them before the table goes with it.

/// Uninitialised places by number, from 0; the owner keeps account of them.
@safe
public struct ChunkTable<Element: ~Copyable>: ~Copyable {
  @inlinable static var shift: Int { 10 }
  @inlinable public static var chunkSize: Int { 1 << shift }

  /// As an array it would check the chunk's number once more with each access, of which a fix makes fifty.
  @usableFromInline var chunks: UnsafeMutablePointer<UnsafeMutablePointer<Element>>
  @usableFromInline var chunkCapacity = 16
  @usableFromInline var chunkCount = 0

  @inlinable public init() { unsafe chunks = .allocate(capacity: 16) }

  @inlinable deinit {
    for chunk in 0..<chunkCount { unsafe chunks[chunk].deallocate() }
    unsafe chunks.deallocate()
  }

  /// How many places there are.
  @inlinable public var capacity: Int {
    @inline(__always) get { chunkCount << ChunkTable.shift }
  }

  /// A place. `index` must be below `capacity`, which the caller has checked.
  @inlinable @inline(__always)
  public func pointer(_ index: Int) -> UnsafeMutablePointer<Element> {
    unsafe chunks[index >> ChunkTable.shift] + (index & (ChunkTable.chunkSize - 1))
  }

  /// `chunkSize` places more. O(1), but for the chunks' own table, which doubles.
  @inlinable public mutating func grow() {
    if chunkCount == chunkCapacity {
      chunkCapacity *= 2
      let larger = UnsafeMutablePointer<UnsafeMutablePointer<Element>>.allocate(capacity: chunkCapacity)
      unsafe larger.initialize(from: chunks, count: chunkCount)
      unsafe chunks.deallocate()
      unsafe chunks = larger
    }
    unsafe (chunks + chunkCount).initialize(to: .allocate(capacity: ChunkTable.chunkSize))
    chunkCount += 1
  }
}
