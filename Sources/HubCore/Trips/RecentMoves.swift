// The messages that recently moved a trip, so that a repetition changes nothing.

/// The last moves of a trip, at most `HubLimits.movesPerTrip`, by keyed 64-bit hash.
struct RecentMoves {
  private var hashes: [UInt64] = []
  private var oldest = 0

  init() {}

  /// The last of some moves, given oldest first.
  init(_ oldestFirst: [UInt64]) { hashes = oldestFirst.suffix(HubLimits.movesPerTrip) }

  var oldestFirst: [UInt64] { Array(hashes[oldest...] + hashes[..<oldest]) }

  func contains(_ hash: UInt64) -> Bool { hashes.contains(hash) }

  mutating func insert(_ hash: UInt64) {
    if hashes.count < HubLimits.movesPerTrip {
      hashes.append(hash)
    } else {
      hashes[oldest] = hash
      oldest = (oldest + 1) % HubLimits.movesPerTrip
    }
  }
}
