// A polygon with holes, as in GeoJSON (RFC 7946 §3.1.6): containment, area and bounding box.
//
// Rings are straight in longitude and latitude (PlanePoint.swift). A ring may cross the antimeridian: an edge takes the
// short way round, so one from 179° to −179° is 2° wide; one of exactly 180° or 360° is taken as written, as are the
// edges of polygons that are cut at the antimeridian or contain a pole (RFC 7946 §3.1.9). A ring around a pole that is
// not cut like that has no inside on the map and is refused.
//
// The orientation of a ring does not matter (§3.1.6 asks readers to accept both).

/// Why rings are no polygon. Rings, positions and edges count from 0; edge n leads from position n to the next.
public enum PolygonError: Error, Equatable, Sendable {
  case noRing
  /// More positions in all rings than the caller allows.
  case tooManyPositions(limit: Int)
  /// A ring needs four positions, the last of them the first again.
  case tooFewPositions(ring: Int)
  case notClosed(ring: Int)
  /// All on one line, or on one spot.
  case noArea(ring: Int)
  /// Two edges of one ring have a point in common that is not their common end.
  case selfCrossing(ring: Int, edge: Int, and: Int)
  case ringsCross(Int, Int)
  case holeOutside(ring: Int)
  /// It goes round a pole, or more than once round the Earth.
  case aroundPole(ring: Int)
}

/// A checked polygon. Its borders belong to it, those of its holes too.
public struct Polygon: Sendable, Hashable {
  /// One ring: a run of `vertices`, the first again at its end, and what box is around it.
  struct Ring: Sendable, Hashable {
    var start: Int
    var end: Int
    var west: Int64
    var south: Int64
    var east: Int64
    var north: Int64

    /// The ring that is `run` of the vertices, with at least one.
    init(_ run: Range<Int>, of vertices: [PlanePoint]) {
      (start, end) = (run.lowerBound, run.upperBound)
      (west, south) = (vertices[start].x, vertices[start].y)
      (east, north) = (west, south)
      for vertex in vertices[run] {
        (west, east) = (min(west, vertex.x), max(east, vertex.x))
        (south, north) = (min(south, vertex.y), max(north, vertex.y))
      }
    }
  }

  /// The vertices of all rings, the outer one's first, without positions that repeat the one before.
  let vertices: [PlanePoint]
  let rings: [Ring]
  /// The smallest box around it, made larger by 1e-9° on all sides, so that rounding leaves nothing outside.
  public let boundingBox: BoundingBox

  init(checkedVertices vertices: [PlanePoint], rings: [Ring]) {
    self.vertices = vertices
    self.rings = rings
    boundingBox = Polygon.box(of: rings[0])
  }

  /// The number of its edges, those of holes included.
  public var edgeCount: Int { vertices.count - rings.count }

  /// Whether a place is in it. O(edges) of those rings whose box has the place; 1 to 2 ns an edge, no allocation.
  ///
  /// Exact for the place and the vertices as rounded to 1e-9°. A pole is in a polygon that has a vertex there.
  @inlinable public func contains(_ coordinate: Coordinate) -> Bool {
    boundingBox.contains(coordinate) && contains(PlanePoint(coordinate))
  }

  @usableFromInline func contains(_ point: PlanePoint) -> Bool {
    let outer = rings[0]
    // All names of a pole are one place.
    if point.y == PlanePoint.pole { return outer.north == PlanePoint.pole }
    if point.y == -PlanePoint.pole { return outer.south == -PlanePoint.pole }
    let moved = Polygon.moved(point, into: outer)
    guard side(of: moved, outer) != .outside else { return false }
    for hole in rings.dropFirst() where side(of: Polygon.moved(moved, into: hole), hole) == .inside { return false }
    return true
  }

  enum Side { case outside, border, inside }

  /// A point with its longitude moved by a full turn, where only that can put it within the ring's box.
  @inline(__always)
  static func moved(_ point: PlanePoint, into ring: Ring) -> PlanePoint {
    if point.x < ring.west { return PlanePoint(x: point.x + PlanePoint.fullTurn, y: point.y) }
    if point.x > ring.east { return PlanePoint(x: point.x - PlanePoint.fullTurn, y: point.y) }
    return point
  }

  /// Counts how often the ring goes round the point (D. Sunday, "Inclusion of a Point in a Polygon", 2001).
  func side(of point: PlanePoint, _ ring: Ring) -> Side {
    guard point.x >= ring.west, point.x <= ring.east, point.y >= ring.south, point.y <= ring.north else {
      return .outside
    }
    var winding = 0
    var a = vertices[ring.start]
    for index in ring.start + 1..<ring.end {
      let b = vertices[index]
      defer { a = b }
      if a.y == point.y, a.x == point.x || b.y == point.y && point.isBetween(a, b) { return .border }
      if (a.y <= point.y) == (b.y <= point.y) { continue }
      let turn = a.turn(by: b, to: point)
      if turn == 0 { return .border }
      if b.y > a.y {
        if turn > 0 { winding += 1 }
      } else if turn < 0 {
        winding -= 1
      }
    }
    return winding == 0 ? .outside : .inside
  }

  /// Square metres on the sphere of `earthRadiusMeters`, holes left out.
  ///
  /// Exact but for rounding: along an edge that is straight in longitude and latitude ∫ sin φ dλ has a closed form,
  /// Δλ · sin φm · sin h / h with the middle latitude φm and half the difference h of its ends.
  public var areaSquareMeters: Double {
    var area = 0.0
    for (number, ring) in rings.enumerated() { area += abs(signedArea(ring)) * (number == 0 ? 1 : -1) }
    return area * earthRadiusMeters * earthRadiusMeters
  }

  private func signedArea(_ ring: Ring) -> Double {
    var sum = 0.0
    for index in ring.start + 1..<ring.end {
      let (a, b) = (vertices[index - 1], vertices[index])
      let width = Double(b.x - a.x) / PlanePoint.unitsPerDegree * radiansPerDegree
      let middle = SineCosine(degrees: Double(a.y + b.y) / (2 * PlanePoint.unitsPerDegree))
      let halfDegrees = Double(b.y - a.y) / (2 * PlanePoint.unitsPerDegree)
      let half = halfDegrees * radiansPerDegree
      let ratio = abs(half) < 1e-6 ? 1 : SineCosine(degrees: halfDegrees).sine / half
      sum += width * middle.sine * ratio
    }
    return sum
  }

  static func box(of ring: Ring) -> BoundingBox {
    func degrees(_ units: Int64) -> Double { Double(units) / PlanePoint.unitsPerDegree }
    let south = max(-90, degrees(ring.south - 1))
    let north = min(90, degrees(ring.north + 1))
    guard ring.east - ring.west + 2 < PlanePoint.fullTurn else {
      return BoundingBox(uncheckedSouth: south, west: -180, north: north, east: 180)
    }
    return BoundingBox(
      uncheckedSouth: south, west: Coordinate.wrappedLongitude(degrees(ring.west - 1)), north: north,
      east: Coordinate.wrappedLongitude(degrees(ring.east + 1)))
  }
}
