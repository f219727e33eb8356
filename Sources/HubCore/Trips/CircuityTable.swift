// How much longer the driven way is than the crow's flight, learnt from the hub's own trips, area by area.
//
// The method: when a leg (to the pickup, to the dropoff) has reached its target, its driven metres and its great
// circle's are added to those of the geohash cell of 4 characters (39 by 20 km) that it began in. The cell's factor is
// the quotient of the sums, where the sums begin with `priorMeters` at `priorFactor`, and are halved when they come to
// `fullMeters`, so that what is old fades. Quotients of sums let long legs count more, as they should: the factor is
// used for metres.
//
// The prior 1.3: R. Ballou, H. Rahardja, N. Sakai, "Selected country circuity factors for road travel distance
// estimation" (Transportation Research A 36, 2002) find 1.1 to 2.1 by country, most near it.
//
// A direct-mapped table of a fixed size: where two cells meet in one place, the newer one has it, and the older begins
// anew. It lives as long as the hub runs.
import HubGeo
import HubMessages

struct CircuityTable {
  static let priorFactor = 1.3
  static let priorMeters = 10_000.0
  static let fullMeters = 1_000_000.0
  /// Shorter legs say more of one-way streets than of an area.
  static let shortestLegMeters = 500.0
  /// A leg with a larger quotient was no way to a place: the driver went elsewhere between.
  static let largestQuotient = 3.0

  private struct Entry {
    /// The cell's bits and 1; 0 for none.
    var key: UInt32 = 0
    var crowMeters: Float = 0
    var drivenMeters: Float = 0
  }

  private var entries = [Entry](repeating: Entry(), count: HubLimits.circuityCells)

  /// Driven metres for each metre of a great circle that begins here: 1 … 3. About 15 ns.
  func factor(at place: Coordinate) -> Double {
    let key = CircuityTable.key(place)
    let entry = entries[CircuityTable.index(key)]
    return entry.key == key ? Double(entry.drivenMeters) / Double(entry.crowMeters) : CircuityTable.priorFactor
  }

  /// A leg from here has reached its target.
  mutating func learn(from place: Coordinate, crowMeters: Double, drivenMeters: Double) {
    guard crowMeters >= CircuityTable.shortestLegMeters, drivenMeters <= CircuityTable.largestQuotient * crowMeters
    else {
      return
    }
    let key = CircuityTable.key(place)
    let index = CircuityTable.index(key)
    var entry = entries[index]
    if entry.key != key {
      entry = Entry(
        key: key, crowMeters: Float(CircuityTable.priorMeters),
        drivenMeters: Float(CircuityTable.priorMeters * CircuityTable.priorFactor))
    }
    // One leg is not the area, however long: half of what a full cell holds, at most.
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
