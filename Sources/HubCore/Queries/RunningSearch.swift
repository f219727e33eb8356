// One question about drivers while it is looked for: what is wanted, what was found, and where the next turn goes on.
//
// A search for the nearest is first done depth first (DriverIndex+Nearest.swift), which is over at once nearly always.
// Where it is not (too few drivers pass the filter, or the budget of the turn is gone), and for riders, whose distances
// are from rounded places, what it found only bounds how far there is to look: then all cells within that bound are
// visited in the order of their keys, which can be interrupted anywhere, because a key stays where it is while cells
// split and merge. Areas are looked for in that second way only.
//
// While a search is under way drivers move. Who stays where it is is in the answer exactly if it belongs there; who
// moves is taken at the one place or the other. Nobody is in it twice, and each is shown as of one moment.
import HubBytes
import HubGeo
import HubMessages

extension DriverSearch {
  /// How many drivers an answer has at most.
  package func limit(for audience: Audience) -> Int {
    let wanted = limit ?? DriverSearch.defaultLimit
    return audience == .ops ? wanted : min(wanted, PublicAudience.maximumDrivers)
  }
}

struct RunningSearch {
  let session: SessionRef
  /// Who asks, by `Actor.hashValue`.
  let identity: UInt64
  let replyTo: MessageID?
  let search: DriverSearch
  let audience: Audience
  /// The point that distances are measured from: what was asked for, or the middle of the area's box.
  let center: Coordinate
  let point: SearchPoint
  let limit: Int
  /// Metres that a driver shown may be from where it is.
  let slackMeters: Double
  /// Boxes that contain every driver whose shown place may lie in the area.
  private let boxes: [BoundingBox]
  /// What one candidate, and one cell, costs of the turn's budget: more where filters read the driver's record, and
  /// where many hits are kept in order.
  let weight: Int
  let cellWeight: Int

  enum Phase {
    /// The nearest of those online, through the tree of the index; it is not interrupted.
    case nearest
    /// By keys, from the cursor on.
    case scanning(SearchCursor, Pass)
    /// Made into reports up to this hit.
    case reporting(Int)
  }

  /// Which drivers are scanned.
  enum Pass {
    case current
    case stale
  }

  var phase: Phase
  /// No hit is farther than this.
  var boundMeters: Double
  var best: BestHits
  var hits: [DriverHit] = []
  var marks = HitMarks()
  /// All that match in an area, hits or not.
  var matches = 0
  var turns = 0
  var reports: [DriverReport] = []
  /// The key of a hash that orders drivers at equal distances, so that riders cannot tell them apart by their order;
  /// nil for ops.
  var tieBreak: UInt64?

  init(
    _ search: DriverSearch, _ audience: Audience, maximumLimit: Int, session: SessionRef, identity: UInt64,
    replyTo: MessageID?
  ) {
    self.session = session
    self.identity = identity
    self.replyTo = replyTo
    self.search = search
    self.audience = audience
    limit = min(search.limit(for: audience), maximumLimit)
    let slack = audience == .ops ? 0 : PublicGrid.displacementMeters
    slackMeters = slack
    let (edges, polygonCount): (Int, Int)
    switch search.area {
    case .nearby(let place, let radius):
      center = place
      boundMeters = radius ?? RunningSearch.maximumRadius(audience)
      (edges, polygonCount) = (0, 0)
      phase = .nearest
      boxes = []
    case .box(let box):
      center = box.center
      boundMeters = .infinity
      (edges, polygonCount) = (0, 1)
      phase = .scanning(.start, .current)
      boxes = [slack > 0 ? box.grown(byMeters: slack) : box]
    case .polygons(let polygons):
      center = polygons.boundingBox.center
      boundMeters = .infinity
      (edges, polygonCount) = (polygons.edgeCount, polygons.polygons.count)
      phase = .scanning(.start, .current)
      boxes = polygons.polygons.map { slack > 0 ? $0.boundingBox.grown(byMeters: slack) : $0.boundingBox }
    }
    let filter = search.filter
    // An age takes the driver's record, which is rarely in cache.
    weight =
      (audience == .ops ? 1 : 5) + edges / 12 + limit / 128 + filter.tags.count / 4 + (filter.maxAge == nil ? 0 : 4)
    cellWeight = 1 + polygonCount / 8
    point = SearchPoint(center)
    best = BestHits(start: 0, limit: limit, withinMeters: boundMeters)
  }

  static func maximumRadius(_ audience: Audience) -> Double {
    switch audience {
    case .ops: DriverSearch.everywhereMeters
    case .everybody: PublicAudience.maximumRadiusMeters
    }
  }

  /// How far hits may be, by what was asked.
  private var radiusMeters: Double {
    if case .nearby(_, let radius) = search.area { return radius ?? RunningSearch.maximumRadius(audience) }
    return .infinity
  }

  /// Begins to visit all cells within `meters`. What was found so far is found again.
  mutating func scan(within meters: Double) {
    boundMeters = min(meters, radiusMeters)
    best = BestHits(start: 0, limit: limit, withinMeters: boundMeters)
    hits.removeAll(keepingCapacity: true)
    matches = 0
    phase = .scanning(.start, .current)
  }

  /// Goes on among stale drivers with what was found among the others: the hits stay, the worst on top.
  mutating func scanStale() {
    hits.sort { DriverHit.isNearer($1, $0) }
    best = BestHits(keeping: hits, limit: limit, withinMeters: boundMeters)
    phase = .scanning(.start, .stale)
  }

  /// All cells were visited. Where drivers have gone out of a bound that was theirs, there may be others beyond it.
  mutating func endScan() {
    if hits.count < limit, boundMeters < radiusMeters {
      scan(within: boundMeters * 2 + 100)
    } else {
      phase = .reporting(0)
    }
  }

  /// Whether a cell may have a hit.
  @inline(__always)
  func mayHave(_ cell: TreeCell) -> Bool {
    switch search.area {
    case .nearby:
      let limit = min(best.worstMeters, boundMeters) + slackMeters
      return point.leastSquaredChord(to: cell) <= SearchPoint.squaredChordLimit(meters: limit)
    case .box, .polygons:
      for box in boxes where cell.intersects(box) { return true }
      return false
    }
  }

  /// Whether a place, as it would be shown, is in the area.
  @inline(__always)
  func has(_ place: Coordinate) -> Bool {
    switch search.area {
    case .nearby: true  // the distance decides
    case .box(let box): box.contains(place)
    case .polygons(let polygons): polygons.contains(place)
    }
  }

  /// A number that orders a driver among those at the same distance: another one in each search.
  @inline(__always)
  func tie(of driver: UInt32) -> UInt32 {
    guard let tieBreak else { return 0 }
    return UInt32(truncatingIfNeeded: Mix64.mix(UInt64(driver) ^ tieBreak))
  }

  /// Takes a driver that matches, if it is nearer than others.
  mutating func take(_ hit: DriverHit) {
    matches += 1
    guard best.wants(hit, hits) else { return }
    // Only from turn to turn can one come again: it has moved over the cursor.
    if turns > 0 {
      if marks.mayHave(hit.driver, hits), hits.contains(where: { $0.driver == hit.driver }) { return }
      marks.add(hit.driver)
    }
    best.add(hit, to: &hits)
  }
}

/// Where a search lies while it runs: each turn puts those under way into another order, which costs a reference each.
final class SearchBox {
  var running: RunningSearch

  init(_ running: RunningSearch) { self.running = running }
}

/// Which drivers may be among the hits: to look through a thousand for each that is found would be most of the work.
///
/// A bit for some of a driver's number. Hits that have given way to nearer ones leave theirs; when these are as many as
/// hits there are it is made anew.
struct HitMarks {
  private static let words = 512
  private var bits: [UInt64] = []
  /// Marked since it was made.
  private var added = 0

  private static func bit(of driver: UInt32) -> (word: Int, bit: UInt64) {
    let mixed = driver &* 0x9E37_79B1  // 2^32 over the golden ratio: Knuth, TAOCP 3, 6.4
    return (Int(mixed >> 23), 1 << UInt64(mixed >> 17 & 63))
  }

  /// False only for a driver that is not among `hits`, all of which were added or were there when it was made.
  mutating func mayHave(_ driver: UInt32, _ hits: [DriverHit]) -> Bool {
    if bits.isEmpty || added > max(hits.count, 64) {
      bits = Array(repeating: 0, count: HitMarks.words)
      for hit in hits { add(hit.driver) }
      added = 0
    }
    let (word, bit) = HitMarks.bit(of: driver)
    return bits[word] & bit != 0
  }

  mutating func add(_ driver: UInt32) {
    let (word, bit) = HitMarks.bit(of: driver)
    bits[word] |= bit
    added += 1
  }
}
