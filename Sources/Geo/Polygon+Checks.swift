// From rings as they come to a polygon: whether they are one, by OGC 06-103r4 §6.1.11 (simple features), but that holes
// may lie in one another: what is in either is a hole.
//
// Crossings are looked for by a sweep over the latitudes of edges: each is compared with those that are still open and
// have a longitude in common with it. That is O(n log n) for what people draw, and n²/2 pairs for what an adversary
// does: the limit of positions bounds it (1,000: 500,000 pairs, some 2 ms).

extension Polygon {
  /// Checks the rings of a polygon, the outer one first; each closed, so that its last position is its first again.
  ///
  /// At most `limit` positions in all. Positions that stand twice in a row count once.
  public init(rings: [[Coordinate]], limit: Int) throws(PolygonError) {
    guard !rings.isEmpty else { throw .noRing }
    guard rings.reduce(0, { $0 + $1.count }) <= limit else { throw .tooManyPositions(limit: limit) }
    var drawn: [[PlanePoint]] = []
    for (number, ring) in rings.enumerated() { drawn.append(try Polygon.draw(ring, number)) }
    var vertices: [PlanePoint] = []
    var checked: [Ring] = []
    for (number, points) in drawn.enumerated() {
      let shift = number == 0 ? 0 : Polygon.shift(of: points, into: checked[0])
      let start = vertices.count
      for point in points { vertices.append(PlanePoint(x: point.x + shift, y: point.y)) }
      checked.append(Polygon.measured(vertices, start..<vertices.count))
    }
    self.init(checkedVertices: vertices, rings: checked)
    try checkCrossings()
    try checkHoles()
  }

  /// One ring on the map: closed, longitudes going on without a leap, the westernmost within −180…180.
  private static func draw(_ ring: [Coordinate], _ number: Int) throws(PolygonError) -> [PlanePoint] {
    guard ring.count >= 4 else { throw .tooFewPositions(ring: number) }
    guard let first = ring.first, let last = ring.last, first == last else { throw .notClosed(ring: number) }
    let points = PlanePoint.drawn(ring)
    guard points[points.count - 1] == points[0] else { throw .aroundPole(ring: number) }
    guard points.count >= 4 else { throw .noArea(ring: number) }  // three corners and the first again
    let west = points.reduce(points[0].x) { min($0, $1.x) }
    let east = points.reduce(points[0].x) { max($0, $1.x) }
    guard east - west <= PlanePoint.fullTurn else { throw .aroundPole(ring: number) }
    guard hasArea(points) else { throw .noArea(ring: number) }
    let half = PlanePoint.fullTurn / 2
    let shift = west < -half ? PlanePoint.fullTurn : west >= half ? -PlanePoint.fullTurn : 0
    return shift == 0 ? points : points.map { PlanePoint(x: $0.x + shift, y: $0.y) }
  }

  private static func hasArea(_ points: [PlanePoint]) -> Bool {
    // A ring that crosses itself nowhere has an area exactly if not all of it is on one line.
    points.contains { points[0].turn(by: points[1], to: $0) != 0 }
  }

  /// What moves a hole to where the outer ring is drawn.
  private static func shift(of hole: [PlanePoint], into outer: Ring) -> Int64 {
    let west = hole.reduce(hole[0].x) { min($0, $1.x) }
    let east = hole.reduce(hole[0].x) { max($0, $1.x) }
    for turns in [0, PlanePoint.fullTurn, -PlanePoint.fullTurn]
    where west + turns >= outer.west && east + turns <= outer.east { return turns }
    return 0
  }

  private static func measured(_ vertices: [PlanePoint], _ run: Range<Int>) -> Ring {
    let first = vertices[run.lowerBound]
    var ring = Ring(
      start: run.lowerBound, end: run.upperBound, west: first.x, south: first.y, east: first.x, north: first.y)
    for vertex in vertices[run] {
      ring.west = min(ring.west, vertex.x)
      ring.east = max(ring.east, vertex.x)
      ring.south = min(ring.south, vertex.y)
      ring.north = max(ring.north, vertex.y)
    }
    return ring
  }

  // MARK: Crossings

  /// An edge on its way through the sweep.
  private struct Edge {
    var ring: Int
    /// The place of its first vertex.
    var place: Int
    var west: Int64
    var east: Int64
    var south: Int64
    var north: Int64
  }

  private func checkCrossings() throws(PolygonError) {
    var edges: [Edge] = []
    edges.reserveCapacity(edgeCount)
    for (number, ring) in rings.enumerated() {
      for place in ring.start..<ring.end - 1 {
        let (a, b) = (vertices[place], vertices[place + 1])
        edges.append(
          Edge(
            ring: number, place: place, west: min(a.x, b.x), east: max(a.x, b.x), south: min(a.y, b.y),
            north: max(a.y, b.y)))
      }
    }
    edges.sort { ($0.south, $0.place) < ($1.south, $1.place) }
    var open: [Edge] = []
    for edge in edges {
      open.removeAll { $0.north < edge.south }
      for other in open where other.west <= edge.east && edge.west <= other.east { try check(other, edge) }
      open.append(edge)
    }
  }

  private func check(_ a: Edge, _ b: Edge) throws(PolygonError) {
    let (a0, a1) = (vertices[a.place], vertices[a.place + 1])
    let (b0, b1) = (vertices[b.place], vertices[b.place + 1])
    guard a.ring == b.ring else {
      if EdgeRelation(a0, a1, and: b0, b1) == .crossing {
        throw .ringsCross(min(a.ring, b.ring), max(a.ring, b.ring))
      }
      return
    }
    // Edges that follow each other have an end in common, and nothing else unless the way turns straight back.
    let isFine =
      if a1 == b0 && follows(b.place, a.place, a.ring) || b1 == a0 && follows(a.place, b.place, a.ring) {
        EdgeRelation(a0, a1, and: b0, b1) == .touching
      } else {
        EdgeRelation(a0, a1, and: b0, b1) == .apart
      }
    guard !isFine else { return }
    let start = rings[a.ring].start
    throw .selfCrossing(
      ring: a.ring, edge: min(a.place, b.place) - start, and: max(a.place, b.place) - start)
  }

  /// Whether an edge comes right behind another of its ring.
  private func follows(_ edge: Int, _ other: Int, _ ring: Int) -> Bool {
    edge == other + 1 || edge == rings[ring].start && other == rings[ring].end - 2
  }

  /// Where no rings cross, a hole is inside if no vertex of it is outside.
  private func checkHoles() throws(PolygonError) {
    for (number, hole) in rings.enumerated().dropFirst() {
      for place in hole.start..<hole.end where side(of: vertices[place], rings[0]) == .outside {
        throw .holeOutside(ring: number)
      }
    }
  }
}
