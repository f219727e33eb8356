// The number of known trips that each rider began, computed from the trips, so that a restart does not change it. Trips
// that others begin for a rider don't count, or any driver could use up a rider's limit.

/// Trips by rider. An entry for each rider with trips: 16 bytes each, or some 40 while the table grows.
struct TripsOfRiders {
  private var counts: [UInt64: UInt32] = [:]

  /// The number of trips of a rider, identified by a hash.
  func count(of rider: UInt64) -> Int { Int(counts[rider] ?? 0) }

  mutating func add(_ rider: UInt64) { counts[rider, default: 0] += 1 }

  /// Subtracts a forgotten trip.
  mutating func remove(_ rider: UInt64) {
    guard let count = counts[rider] else { return }
    counts[rider] = count > 1 ? count - 1 : nil
  }
}
