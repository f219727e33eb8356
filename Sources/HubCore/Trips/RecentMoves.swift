// The messages that recently moved a trip, so that a repetition changes nothing.

/// The last moves of a trip, at most `HubLimits.movesPerTrip`, by keyed 64-bit hash.
struct RecentMoves {
  private(set) var oldestFirst: [UInt64] = []

  init() {}

  /// The last of some moves, given oldest first.
  init(_ oldestFirst: [UInt64]) { self.oldestFirst = oldestFirst.suffix(HubLimits.movesPerTrip) }

  func contains(_ hash: UInt64) -> Bool { oldestFirst.contains(hash) }

  /// Where it `keepsFirst`, the first one is never forgotten.
  mutating func insert(_ hash: UInt64, keepsFirst: Bool = false) {
    if oldestFirst.count == HubLimits.movesPerTrip { oldestFirst.remove(at: keepsFirst ? 1 : 0) }
    oldestFirst.append(hash)
  }
}
