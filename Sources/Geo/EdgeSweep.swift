// Whether the rings of a polygon cross or touch themselves, or cross one another, and whether holes lie within the
// outer one: by a line that sweeps over the map from west to east (M. Shamos, D. Hoey, "Geometric Intersection
// Problems", FOCS 1976).
//
// Of the edges on the line only neighbours are compared, when they become neighbours; up to the first forbidden common
// point of two edges, the order of the others is right, and those two become neighbours there. Shamos and Hoey omit
// cases that are common in drawings:
// - The line is tilted infinitesimally: of points with one longitude it reaches the southern one first. So an edge
//   along a meridian begins and ends like any other, and two points on the line at once are equal.
// - All edges at a point are handled together. One ring has two there that follow each other, or one; at most one edge
//   of all rings passes through, the others end there; and no two continue in the same direction. Rings may touch each
//   other.
// - Sides are decided in integers (PlanePoint.swift), so that no two answers contradict each other.
//
// O(n log n) for n edges: 0.2 µs an edge.

struct EdgeSweep {
  /// An edge on its way east.
  private struct Edge {
    var west: PlanePoint
    var east: PlanePoint
    var ring: Int32
    /// Its first vertex, in the order of the ring.
    var index: Int32
  }

  /// A vertex and the two edges that it is an end of.
  private struct Corner {
    var point: PlanePoint
    var ring: Int32
    var edge: Int32
    var edgeBefore: Int32
  }

  /// Edges of one ring at the present place: there may be two.
  private struct Visitors {
    var event = -1
    var first: Int32 = 0
    var second: Int32?
  }

  private let polygon: Polygon
  private var edges: [Edge] = []
  private var corners: [Corner] = []
  private var status: SweepStatus
  private var visitors: [Visitors]
  /// The first hole that has a vertex outside of the outer ring.
  private var holeOutside: Int32?
  // Of the present point, reused for the next: edges that end there, and edges that continue from there.
  private var ending: [Int32] = []
  private var leaving: [Int32] = []
  #if DEBUG
    /// Compared pairs of edges, and visited edges: for tests.
    private var steps = 0
  #endif

  /// Throws the fault of a polygon's rings; of several, any.
  static func check(_ polygon: Polygon) throws(PolygonError) {
    var sweep = EdgeSweep(polygon)
    try sweep.run()
  }

  #if DEBUG
    /// The number of steps that the check of a valid polygon takes.
    static func steps(_ polygon: Polygon) throws(PolygonError) -> Int {
      var sweep = EdgeSweep(polygon)
      try sweep.run()
      return sweep.steps + sweep.status.steps
    }
  #endif

  private init(_ polygon: Polygon) {
    self.polygon = polygon
    status = SweepStatus(count: polygon.edgeCount, counted: polygon.rings[0].end - 1)
    visitors = Array(repeating: Visitors(), count: polygon.rings.count)
    edges.reserveCapacity(polygon.edgeCount)
    corners.reserveCapacity(polygon.edgeCount)
    for (number, ring) in polygon.rings.enumerated() {
      let first = Int32(truncatingIfNeeded: edges.count)
      let last = first + Int32(truncatingIfNeeded: ring.end - ring.start - 2)
      for index in ring.start..<ring.end - 1 {
        let (a, b) = (polygon.vertices[index], polygon.vertices[index + 1])
        let edge = Int32(truncatingIfNeeded: edges.count)
        let ring = Int32(truncatingIfNeeded: number)
        corners.append(Corner(point: a, ring: ring, edge: edge, edgeBefore: edge == first ? last : edge - 1))
        let isEastward = a.isSweptBefore(b)
        edges.append(
          Edge(
            west: isEastward ? a : b, east: isEastward ? b : a, ring: ring, index: Int32(truncatingIfNeeded: index)))
      }
    }
    corners.sort { $0.point.isSweptBefore($1.point) }
  }

  private mutating func run() throws(PolygonError) {
    var next = 0
    while next < corners.count {
      let first = next
      let point = corners[first].point
      while next < corners.count, corners[next].point == point { next += 1 }
      try visit(point, first..<next)
    }
    if let holeOutside { throw .holeOutside(ring: Int(holeOutside)) }
  }

  /// Advances to a point, with the corners there.
  private mutating func visit(_ point: PlanePoint, _ here: Range<Int>) throws(PolygonError) {
    ending.removeAll(keepingCapacity: true)
    leaving.removeAll(keepingCapacity: true)
    let (below, above, through) = try edgesMet(at: point)
    for index in here {
      let corner = corners[index]
      if edges[Int(corner.edge)].west == point { leaving.append(corner.edge) }
      if edges[Int(corner.edgeBefore)].west == point { leaving.append(corner.edgeBefore) }
    }
    for edge in ending { try enter(edge, at: here.lowerBound) }
    for edge in leaving { try enter(edge, at: here.lowerBound) }
    if let through {
      try enter(through, at: here.lowerBound)
      leaving.append(through)
    }
    findHolesOutside(here, below)
    try sortLeaving(from: point)
    for edge in ending { status.remove(edge) }
    var lower = below
    for edge in leaving {
      if edge != through { status.insert(edge, above: lower) }
      lower = edge
    }
    // Edges that became neighbours.
    if let first = leaving.first { try check(below, first) }
    try check(lower, above)
  }

  /// Finds the edges that a point is on: puts those that end there into `ending`, and gives the one that goes through,
  /// if any, and the neighbours of all of them below and above.
  private mutating func edgesMet(
    at point: PlanePoint
  ) throws(PolygonError) -> (below: Int32, above: Int32, through: Int32?) {
    let edges = edges
    func side(_ edge: Int32) -> Int { edges[Int(edge)].west.turn(by: edges[Int(edge)].east, to: point) }
    let (found, isOn) = status.find(side)
    guard isOn else { return (found, status.above(found), nil) }
    var lowest = found
    while status.below(lowest) != SweepStatus.none, side(status.below(lowest)) == 0 { lowest = status.below(lowest) }
    let below = status.below(lowest)
    var through: Int32?
    var edge = lowest
    while edge != SweepStatus.none, side(edge) == 0 {
      if edges[Int(edge)].east == point {
        ending.append(edge)
      } else {
        if let through { try check(through, edge) }  // two go through: they cross
        through = edge
      }
      edge = status.above(edge)
    }
    step(ending.count)
    return (below, edge, through)
  }

  /// Notes that an edge is at the present place, and compares it with others of its ring there.
  private mutating func enter(_ edge: Int32, at event: Int) throws(PolygonError) {
    let ring = Int(edges[Int(edge)].ring)
    guard visitors[ring].event == event else {
      visitors[ring] = Visitors(event: event, first: edge)
      return
    }
    try check(visitors[ring].first, edge)
    if let second = visitors[ring].second { try check(second, edge) }
    visitors[ring].second = edge
  }

  /// Notes holes with a corner outside of the outer ring: none of its edges is at the corner, and an even number is
  /// below it.
  private mutating func findHolesOutside(_ here: Range<Int>, _ below: Int32) {
    guard visitors[0].event != here.lowerBound else { return }
    guard status.countUp(to: below) % 2 == 0 else { return }
    for corner in here { holeOutside = min(holeOutside ?? .max, corners[corner].ring) }
  }

  /// Sorts the edges that continue from a point, from below. Two in one direction have a stretch in common.
  private mutating func sortLeaving(from point: PlanePoint) throws(PolygonError) {
    guard leaving.count > 1 else { return }
    let edges = edges
    step(leaving.count * (Int.bitWidth - leaving.count.leadingZeroBitCount))
    leaving.sort { point.turn(by: edges[Int($0)].east, to: edges[Int($1)].east) > 0 }
    for index in 1..<leaving.count {
      let (a, b) = (leaving[index - 1], leaving[index])
      if point.turn(by: edges[Int(a)].east, to: edges[Int(b)].east) == 0 { try check(a, b) }
    }
  }

  /// Throws where two edges have points in common that they may not; does nothing where one of them is `none`.
  private mutating func check(_ a: Int32, _ b: Int32) throws(PolygonError) {
    step(1)
    guard a != SweepStatus.none, b != SweepStatus.none else { return }
    try polygon.checkEdges(
      (Int(edges[Int(a)].ring), Int(edges[Int(a)].index)), (Int(edges[Int(b)].ring), Int(edges[Int(b)].index)))
  }

  @inline(__always)
  private mutating func step(_ count: Int) {
    #if DEBUG
      steps += count
    #endif
  }
}

extension PlanePoint {
  /// Whether the line reaches this one first.
  @inline(__always)
  fileprivate func isSweptBefore(_ other: PlanePoint) -> Bool { x < other.x || x == other.x && y < other.y }
}
