// How many trips that each rider began the hub knows: counted by what stands in the trips, so that it is the same over
// a restart. Those that others begin for a rider don't count, or any driver could use up a rider's.

/// Trips by rider. As many entries as the hub's trips have riders: 16 bytes each, or up to some 40 while the table
/// grows.
struct TripsOfRiders {
  private var counts: [UInt64: UInt32] = [:]

  /// The trips of a rider, who is known by a hash.
  func count(of rider: UInt64) -> Int { Int(counts[rider] ?? 0) }

  mutating func add(_ rider: UInt64) { counts[rider, default: 0] += 1 }

  /// One of them is forgotten.
  mutating func remove(_ rider: UInt64) {
    guard let count = counts[rider] else { return }
    counts[rider] = count > 1 ? count - 1 : nil
  }
}
