// Which messages moved a trip lately, so that a repeated one changes nothing.

/// The last 16 moves of a trip, by keyed 64-bit hash.
struct RecentMoves {
  static let capacity = 16

  private var hashes: [UInt64] = []
  private var oldest = 0

  init() {}

  /// Up to `capacity` moves, oldest first.
  init(_ oldestFirst: [UInt64]) { hashes = oldestFirst.suffix(Self.capacity) }

  var oldestFirst: [UInt64] { Array(hashes[oldest...] + hashes[..<oldest]) }

  func contains(_ hash: UInt64) -> Bool { hashes.contains(hash) }

  mutating func insert(_ hash: UInt64) {
    if hashes.count < Self.capacity {
      hashes.append(hash)
    } else {
      hashes[oldest] = hash
      oldest = (oldest + 1) % Self.capacity
    }
  }
}
