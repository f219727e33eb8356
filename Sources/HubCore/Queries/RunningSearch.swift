// A running query for drivers: its criteria, hits so far, and where the next turn continues.
//
// A search for the nearest is first done depth first (DriverIndex+Nearest.swift), which is nearly always complete at
// once. Where it is not (too few drivers pass the filter, or the turn's budget is used up), and for riders, whose
// distances are from rounded positions, its hits only bound the distance. Then all cells within that bound are visited
// in key order, which can be interrupted anywhere, because keys do not change while cells split and merge. Areas are
// searched only in that second way.
//
// Drivers move during a search. One that does not move is in the answer exactly if it belongs there; one that moves is
// found before or after. No driver is listed twice, and each is shown as of one moment.
import HubBytes
import HubGeo
import HubMessages

extension DriverSearch {
  /// The limit of drivers in an answer.
  package func limit(for audience: Audience) -> Int {
    let wanted = limit ?? DriverSearch.defaultLimit
    return audience == .ops ? wanted : min(wanted, PublicAudience.maximumDrivers)
  }
}

struct RunningSearch {
  let session: SessionRef
  /// The asking identity, `Actor.hashValue`.
  let identity: UInt64
  let replyTo: MessageID?
  let search: DriverSearch
  let audience: Audience
  /// The point that distances are measured from: what was asked for, or the middle of the area's box.
  let center: Coordinate
  let point: SearchPoint
  let limit: Int
  /// Metres between a driver's shown and real position, at most.
  let slackMeters: Double
  /// Boxes that contain every driver whose shown position may be in the area.
  private let boxes: [BoundingBox]
  /// The cost of a candidate and of a cell: more with filters that read records, and with many hits to sort.
  let weight: Int
  let cellWeight: Int

  enum Phase {
    /// The nearest online drivers, through the tree of the index, without interruption.
    case nearest
    /// In key order, from the cursor.
    case scanning(SearchCursor, Pass)
    /// Hits up to this one are reported.
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
  /// All matches in an area, including those beyond the limit.
  var matches = 0
  var turns = 0
  var reports: [DriverReport] = []
  /// The key of a hash that orders drivers at equal distances, so that their order identifies nobody; nil for ops.
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
    // An age needs the driver's record, which is rarely in cache.
    weight =
      (audience == .ops ? 1 : 5) + edges / 12 + limit / 128 + filter.tags.count / 4 + (filter.maxAge == nil ? 0 : 4)
    cellWeight = 1 + polygonCount / 8
    point = SearchPoint(center)
    best = BestHits(start: 0, limit: limit, withinMeters: boundMeters)
  }

  static func maximumRadius(_ audience: Audience) -> Double {
    switch audience {
    case .ops: DriverSearch.everywhereMeters
    case .riders: PublicAudience.maximumRadiusMeters
    }
  }

  /// The requested radius.
  private var radiusMeters: Double {
    if case .nearby(_, let radius) = search.area { return radius ?? RunningSearch.maximumRadius(audience) }
    return .infinity
  }

  /// Begins to visit all cells within `meters`, finding earlier hits again.
  mutating func scan(within meters: Double) {
    boundMeters = min(meters, radiusMeters)
    best = BestHits(start: 0, limit: limit, withinMeters: boundMeters)
    hits.removeAll(keepingCapacity: true)
    matches = 0
    phase = .scanning(.start, .current)
  }

  /// Continues among stale drivers and keeps the hits, worst on top.
  mutating func scanStale() {
    hits.sort { DriverHit.isNearer($1, $0) }
    best = BestHits(keeping: hits, limit: limit, withinMeters: boundMeters)
    phase = .scanning(.start, .stale)
  }

  /// Ends the scan. Where drivers have left the bound, there may be others beyond it.
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
      return point.minimumSquaredChord(to: cell) <= SearchPoint.squaredChordLimit(meters: limit)
    case .box, .polygons:
      for box in boxes where cell.intersects(box) { return true }
      return false
    }
  }

  /// Whether a coordinate, as shown, is in the area.
  @inline(__always)
  func has(_ place: Coordinate) -> Bool {
    switch search.area {
    case .nearby: true  // the distance decides
    case .box(let box): box.contains(place)
    case .polygons(let polygons): polygons.contains(place)
    }
  }

  /// A number that orders a driver among those at the same distance; it differs in each search.
  @inline(__always)
  func tie(of driver: UInt32) -> UInt32 {
    guard let tieBreak else { return 0 }
    return UInt32(truncatingIfNeeded: Mix64.mix(UInt64(driver) ^ tieBreak))
  }

  /// Takes a matching driver, if it is near enough.
  mutating func take(_ hit: DriverHit) {
    // Only in another turn can one be found again: it has moved across the cursor.
    if turns > 0, marks.mayHave(hit.driver, hits), hits.contains(where: { $0.driver == hit.driver }) { return }
    matches += 1
    guard best.wants(hit, hits) else { return }
    if turns > 0 { marks.add(hit.driver) }
    best.add(hit, to: &hits)
  }
}

/// The storage of a running search: turns reorder the running ones, at the cost of a reference each.
final class SearchBox {
  var running: RunningSearch

  init(_ running: RunningSearch) { self.running = running }
}

/// Which drivers may be among the hits, to avoid comparing each one found with all hits. One bit for some of a driver's
/// number. Replaced hits leave their bits; when these are as many as the hits it is rebuilt.
struct HitMarks {
  private static let words = 512
  private var bits: [UInt64] = []
  /// Bits set since it was built.
  private var added = 0

  private static func bit(of driver: UInt32) -> (word: Int, bit: UInt64) {
    let mixed = driver &* 0x9E37_79B1  // 2^32 over the golden ratio: Knuth, TAOCP 3, 6.4
    return (Int(mixed >> 23), 1 << UInt64(mixed >> 17 & 63))
  }

  /// False only for a driver that is not in `hits`, all of which were added or present when it was built.
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
