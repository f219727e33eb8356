// The plane on which polygons and paths are drawn; left, right and crossing are decided in integers.
//
// RFC 7946 §3.1.1: a line between two positions is straight in longitude and latitude, no great circle. So the side of
// an edge is a question of the plane, and its answer is exact in integers: no point is on neither side or on both, and
// the order of a ring's positions changes nothing. The unit is 1e-9 degrees (0.1 mm), so the seven decimals of
// published positions are exact.

/// A place on the map: longitude and latitude in units of 1e-9 degrees.
public struct PlanePoint: Sendable, Hashable, BitwiseCopyable {
  /// East; beyond ±180° in what crosses the antimeridian.
  public let x: Int64
  /// North.
  public let y: Int64

  public static let unitsPerDegree = 1e9
  /// Once around the Earth.
  static let fullTurn: Int64 = 360_000_000_000
  static let pole: Int64 = 90_000_000_000

  @inlinable init(x: Int64, y: Int64) {
    self.x = x
    self.y = y
  }

  /// The nearest point of the grid, halves away from zero: at most 0.06 mm from the place for each axis.
  @inlinable public init(_ coordinate: Coordinate) {
    x = PlanePoint.units(coordinate.longitude)
    y = PlanePoint.units(coordinate.latitude)
  }

  @inlinable @inline(__always) static func units(_ degrees: Double) -> Int64 {
    // Truncated towards zero: `rounded()` is a call on x86-64.
    Int64(degrees * unitsPerDegree + (degrees < 0 ? -0.5 : 0.5))
  }

  /// Positive where the path from here by `b` to `c` turns left, negative where right, 0 where it is straight or
  /// reverses. Exact.
  @inlinable func turn(by b: PlanePoint, to c: PlanePoint) -> Int {
    let (ax, ay) = (b.x - x, b.y - y)
    let (bx, by) = (c.x - x, c.y - y)
    // Below 2^31 (2.1°), as the edges of anything in a city are, the products fit; beyond, they have up to 82 bits.
    if (ax.magnitude | ay.magnitude | bx.magnitude | by.magnitude) >> 31 == 0 {
      return Int((ax * by - ay * bx).signum())
    }
    let left = ax.multipliedFullWidth(by: by)
    let right = ay.multipliedFullWidth(by: bx)
    if left.high != right.high { return left.high > right.high ? 1 : -1 }
    if left.low != right.low { return left.low > right.low ? 1 : -1 }
    return 0
  }

  /// Whether a point that is on the line through `a` and `b` is on the stretch between them, ends included.
  @inlinable func isBetween(_ a: PlanePoint, _ b: PlanePoint) -> Bool {
    x >= min(a.x, b.x) && x <= max(a.x, b.x) && y >= min(a.y, b.y) && y <= max(a.y, b.y)
  }
}

extension PlanePoint {
  /// Positions in order, with continuous longitudes: from one to the next the short way round; exactly half or all of
  /// the way round as written. Repeated positions are merged. There must be one.
  static func drawn(_ positions: [Coordinate]) -> [PlanePoint] {
    var written = PlanePoint(positions[0])
    var points = [written]
    for position in positions.dropFirst() {
      let point = PlanePoint(position)
      let previous = points[points.count - 1]
      let next = PlanePoint(x: previous.x + shortWay(point.x - written.x), y: point.y)
      if next != previous { points.append(next) }
      written = point
    }
    return points
  }

  private static func shortWay(_ difference: Int64) -> Int64 {
    guard difference.magnitude != fullTurn else { return difference }
    if difference > fullTurn / 2 { return difference - fullTurn }
    return difference < -fullTurn / 2 ? difference + fullTurn : difference
  }
}

/// What two straight edges have in common.
enum EdgeRelation {
  case apart
  /// One point, which is an end of at least one of them.
  case touching
  /// A point within both, or a stretch.
  case crossing

  init(_ a: PlanePoint, _ b: PlanePoint, and c: PlanePoint, _ d: PlanePoint) {
    let (cSide, dSide) = (a.turn(by: b, to: c), a.turn(by: b, to: d))
    let (aSide, bSide) = (c.turn(by: d, to: a), c.turn(by: d, to: b))
    if cSide == 0, dSide == 0 {
      self = EdgeRelation.onOneLine(a, b, c, d)
    } else if cSide * dSide < 0, aSide * bSide < 0 {
      self = .crossing
    } else if cSide == 0 && c.isBetween(a, b) || dSide == 0 && d.isBetween(a, b)
      || aSide == 0 && a.isBetween(c, d) || bSide == 0 && b.isBetween(c, d)
    {
      self = .touching
    } else {
      self = .apart
    }
  }

  private static func onOneLine(
    _ a: PlanePoint, _ b: PlanePoint, _ c: PlanePoint, _ d: PlanePoint
  ) -> EdgeRelation {
    // Along the axis on which the line is longer, so that no two points have one value.
    let isSteep = (b.x - a.x).magnitude < (b.y - a.y).magnitude
    let (first, second) = isSteep ? ((a.y, b.y), (c.y, d.y)) : ((a.x, b.x), (c.x, d.x))
    let start = max(min(first.0, first.1), min(second.0, second.1))
    let end = min(max(first.0, first.1), max(second.0, second.1))
    if start > end { return .apart }
    return start == end ? .touching : .crossing
  }
}
