// Makes a polygon of rings, after checking that they are one by OGC 06-103r4 §6.1.11 (simple features), except that one
// hole may lie within another: what is in either is a hole.
// Crossings, and holes that are not inside, are found in O(n log n), whatever is drawn: EdgeSweep.swift.

extension Polygon {
  /// Checks the rings of a polygon, the outer one first; each closed, so that its last position is its first again.
  ///
  /// At most `limit` positions in all. Positions that repeat the one before are merged.
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
      checked.append(Ring(start..<vertices.count, of: vertices))
    }
    self.init(checkedVertices: vertices, rings: checked)
    try EdgeSweep.check(self)
  }

  /// One ring on the map: closed, with continuous longitudes, the westernmost within −180…180.
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
    // A ring that does not cross itself has an area exactly if its points are not collinear.
    points.contains { points[0].turn(by: points[1], to: $0) != 0 }
  }

  /// The shift of longitudes, by full turns, that moves a hole to where the outer ring is drawn.
  private static func shift(of hole: [PlanePoint], into outer: Ring) -> Int64 {
    let west = hole.reduce(hole[0].x) { min($0, $1.x) }
    let east = hole.reduce(hole[0].x) { max($0, $1.x) }
    for turns in [0, PlanePoint.fullTurn, -PlanePoint.fullTurn]
    where west + turns >= outer.west && east + turns <= outer.east { return turns }
    return 0
  }

  // MARK: Crossings

  /// Throws where two edges, each by its ring and its first vertex, have a point in common that they may not.
  func checkEdges(
    _ a: (ring: Int, index: Int), _ b: (ring: Int, index: Int)
  ) throws(PolygonError) {
    let (a0, a1) = (vertices[a.index], vertices[a.index + 1])
    let (b0, b1) = (vertices[b.index], vertices[b.index + 1])
    guard a.ring == b.ring else {
      if EdgeRelation(a0, a1, and: b0, b1) == .crossing {
        throw .ringsCross(min(a.ring, b.ring), max(a.ring, b.ring))
      }
      return
    }
    // Edges that follow each other have an end in common, and nothing else unless the way turns straight back.
    let isFine =
      if a1 == b0 && follows(b.index, a.index, a.ring) || b1 == a0 && follows(a.index, b.index, a.ring) {
        EdgeRelation(a0, a1, and: b0, b1) == .touching
      } else {
        EdgeRelation(a0, a1, and: b0, b1) == .apart
      }
    guard !isFine else { return }
    let start = rings[a.ring].start
    throw .selfCrossing(
      ring: a.ring, edge: min(a.index, b.index) - start, and: max(a.index, b.index) - start)
  }

  /// Whether an edge directly follows another of its ring.
  private func follows(_ edge: Int, _ other: Int, _ ring: Int) -> Bool {
    edge == other + 1 || edge == rings[ring].start && other == rings[ring].end - 2
  }
}
