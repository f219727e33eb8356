// The ratio of driven to great-circle distance, learnt from the hub's own trips, cell by cell.
//
// When a leg (to the pickup, to the dropoff) has reached its target, its driven and great-circle metres are added to
// those of the geohash cell of 4 characters (39 by 20 km) where it began. The cell's factor is the quotient of the
// sums, which start with `priorMeters` at `priorFactor` and are halved at `fullMeters`, so that old legs fade.
// Quotients of sums weight long legs more, as they should, since the factor is applied to metres.
//
// The prior 1.3: R. Ballou, H. Rahardja, N. Sakai, "Selected country circuity factors for road travel distance
// estimation" (Transportation Research A 36, 2002) find 1.1 to 2.1 by country, most near it.
//
// A direct-mapped table of a fixed size: where two cells share an entry, the newer one has it, and the older begins
// again. It is not stored.
import HubGeo
import HubMessages

struct CircuityTable {
  static let priorFactor = 1.3
  static let priorMeters = 10_000.0
  static let fullMeters = 1_000_000.0
  /// Shorter legs depend more on one-way streets than on the area.
  static let shortestLegMeters = 500.0
  /// A leg with a larger quotient had a detour: the driver went elsewhere between.
  static let largestQuotient = 3.0
  /// A leg with a smaller quotient did not reach its target: the driver reported its arrival elsewhere. The filter and
  /// missing fixes shorten a leg by less.
  static let smallestQuotient = 0.9

  private struct Entry {
    /// The cell's bits and 1; 0 for none.
    var key: UInt32 = 0
    var crowMeters: Float = 0
    var drivenMeters: Float = 0
  }

  private var entries = [Entry](repeating: Entry(), count: HubLimits.circuityCells)

  /// Driven metres for each great-circle metre from here: 1 … 3. About 15 ns.
  func factor(at place: Coordinate) -> Double {
    let key = CircuityTable.key(place)
    let entry = entries[CircuityTable.index(key)]
    return entry.key == key ? Double(entry.drivenMeters) / Double(entry.crowMeters) : CircuityTable.priorFactor
  }

  /// Learns from a leg that began here and reached its target.
  mutating func learn(from place: Coordinate, crowMeters: Double, drivenMeters: Double) {
    guard crowMeters >= CircuityTable.shortestLegMeters, drivenMeters <= CircuityTable.largestQuotient * crowMeters,
      drivenMeters >= CircuityTable.smallestQuotient * crowMeters
    else { return }
    let key = CircuityTable.key(place)
    let index = CircuityTable.index(key)
    var entry = entries[index]
    if entry.key != key {
      entry = Entry(
        key: key, crowMeters: Float(CircuityTable.priorMeters),
        drivenMeters: Float(CircuityTable.priorMeters * CircuityTable.priorFactor))
    }
    // One leg must not decide for its area: it counts for at most half of a full cell's sum.
    let part = min(1, CircuityTable.fullMeters / 2 / crowMeters)
    entry.crowMeters += Float(crowMeters * part)
    entry.drivenMeters += Float(max(drivenMeters, crowMeters) * part)
    if Double(entry.crowMeters) > CircuityTable.fullMeters {
      entry.crowMeters /= 2
      entry.drivenMeters /= 2
    }
    entries[index] = entry
  }

  private static func key(_ place: Coordinate) -> UInt32 {
    UInt32(truncatingIfNeeded: GeohashCell(place, precision: 4).bits) + 1
  }

  /// Fibonacci hashing (Knuth, TAOCP 3, 6.4): neighbours are spread.
  private static func index(_ key: UInt32) -> Int { Int((key &* 2_654_435_769) >> 20) }
}

extension CircuityTable: ETAEstimator {
  func estimate(_ leg: Leg) -> Estimate {
    let meters = leg.crowMeters * factor(at: leg.place)
    return Estimate(meters: meters, leg, .direct)
  }
}
