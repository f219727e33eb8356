// A route as a line to match positions to: its vertices, the metres before each, and boxes round runs of edges.
//
// An edge is straight in degrees (`Route`). Around a position degrees convert to metres by one scale, so the distance
// to an edge is plane geometry; longitudes are differences, so the antimeridian needs no special case. Searches are
// bounded: to a stretch round a match, or to the boxes and the few runs that are near.
import HubGeo
import HubMessages

struct RoutePath {
  /// A point of the line near a position.
  struct Match {
    /// Index of the edge.
    var edge: Int
    /// Metres from the line's start.
    var along: Double
    /// Metres from the position.
    var off: Double
  }

  /// The best match on the whole line, and the metres from the position to the nearest point of the line.
  typealias Nearest = (match: Match, off: Double)

  /// The box of a run of edges, in degrees. It has the middle of its longitudes, so it may cross the antimeridian.
  private struct Box {
    var south: Double
    var north: Double
    var middle: Double
    var halfWidth: Double
  }

  /// Vertices nearer than this to the one before are left out, so that a line drawn metre by metre costs no more.
  static let shortestEdgeMeters = 2.0
  /// Edges searched in a stretch.
  static let edgesPerStretch = 256
  /// Edges in a box, and boxes that one search opens.
  static let edgesPerBox = 32
  static let boxesPerSearch = 16

  private let vertices: [Coordinate]
  /// Metres of the line before each vertex.
  private let before: [Double]
  private let boxes: [Box]

  /// O(vertices): about 0.3 ms for the 5,000 that a route may have.
  init(_ route: Route) {
    var vertices: [Coordinate] = []
    var before: [Double] = []
    let points = route.points
    vertices.reserveCapacity(points.count)
    before.reserveCapacity(points.count)
    for (index, point) in points.enumerated() {
      guard let last = vertices.last, let meters = before.last else {
        vertices.append(point)
        before.append(0)
        continue
      }
      let edge = last.distance(to: point)
      guard edge >= RoutePath.shortestEdgeMeters || index == points.count - 1 else { continue }
      vertices.append(point)
      before.append(meters + edge)
    }
    self.vertices = vertices
    self.before = before
    boxes = stride(from: 0, to: vertices.count - 1, by: RoutePath.edgesPerBox).map { first in
      RoutePath.box(vertices[first...min(first + RoutePath.edgesPerBox, vertices.count - 1)])
    }
  }

  var vertexCount: Int { vertices.count }
  var lengthMeters: Double { before[before.count - 1] }
  var end: Coordinate { vertices[vertices.count - 1] }

  private static func box(_ run: ArraySlice<Coordinate>) -> Box {
    guard let first = run.first else { preconditionFailure("a run has an edge") }
    var (south, north, west, east) = (first.latitude, first.latitude, 0.0, 0.0)
    var longitude = 0.0  // from the first vertex, unrolled
    var last = first
    for vertex in run.dropFirst() {
      longitude += last.longitudeDifference(to: vertex)
      (west, east) = (min(west, longitude), max(east, longitude))
      (south, north) = (min(south, vertex.latitude), max(north, vertex.latitude))
      last = vertex
    }
    return Box(
      south: south, north: north, middle: Coordinate.wrappedLongitude(first.longitude + (west + east) / 2),
      halfWidth: (east - west) / 2)
  }

  // MARK: Matching

  /// The best match between two distances (metres) from the line's start. Edges are searched from `start` on, which
  /// must not begin behind the first one. A metre from `expected` along the line counts as `weight` metres off it.
  @inline(__always)
  func match(
    _ place: Coordinate, from start: Int, along range: ClosedRange<Double>, expected: Double, weight: Double,
    _ ground: GroundScale
  ) -> Match? {
    var edge = start
    var best: Match?
    var least = Double.infinity
    let last = min(vertices.count - 2, start + RoutePath.edgesPerStretch - 1)
    while edge <= last, before[edge] <= range.upperBound {
      if before[edge + 1] >= range.lowerBound {
        let found = nearest(on: edge, to: place, ground, along: range).match
        let cost = found.off + weight * abs(found.along - expected)
        if cost < least { (best, least) = (found, cost) }
      }
      edge += 1
    }
    return best
  }

  /// The best match on the whole line within `reach` metres of the position. A metre from `expected` along the line
  /// counts as `weight` metres off the line, and a way against `course` (east and north) as `reach` metres.
  func match(
    _ place: Coordinate, course: SIMD2<Double>?, within reach: Double, expected: Double, weight: Double,
    from start: Int, _ ground: GroundScale
  ) -> Nearest? {
    let latitudes = reach / ground.metersPerLatitude
    let longitudes = min(180, reach / max(ground.metersPerLongitude, 1e-6))
    let firstBox = min(start / RoutePath.edgesPerBox, boxes.count - 1)
    var best: Match?
    var least = Double.infinity
    var off = Double.infinity
    var looked = 0
    for step in boxes.indices where looked < RoutePath.boxesPerSearch {
      // Begins at the box of `start` and wraps around: where too many are near, the route's next ones are opened.
      let index = (firstBox + step) % boxes.count
      guard isNear(place, boxes[index], latitudes, longitudes) else { continue }
      looked += 1
      let first = index * RoutePath.edgesPerBox
      for edge in first..<min(first + RoutePath.edgesPerBox, vertices.count - 1) {
        let (found, way) = nearest(on: edge, to: place, ground, along: 0...(.infinity))
        guard found.off <= reach else { continue }
        off = min(off, found.off)
        let isAgainst = course.map { ($0 * way).sum() < 0 } ?? false
        let cost = found.off + weight * abs(found.along - expected) + (isAgainst ? reach : 0)
        if cost < least { (best, least) = (found, cost) }
      }
    }
    return best.map { ($0, off) }
  }

  @inline(__always)
  private func isNear(_ place: Coordinate, _ box: Box, _ latitudes: Double, _ longitudes: Double) -> Bool {
    place.latitude >= box.south - latitudes && place.latitude <= box.north + latitudes
      && abs(TrackMath.wrapped(place.longitude - box.middle)) <= box.halfWidth + longitudes
  }

  /// The nearest point of an edge, between two distances (metres) from the start of the line, and the edge's way
  /// (metres east and north).
  @inline(__always)
  private func nearest(
    on edge: Int, to place: Coordinate, _ ground: GroundScale, along range: ClosedRange<Double>
  ) -> (match: Match, way: SIMD2<Double>) {
    let from = ground.displacement(from: place, to: vertices[edge])
    let way = ground.displacement(from: vertices[edge], to: vertices[edge + 1])
    let length = before[edge + 1] - before[edge]
    let squared = (way * way).sum()
    var part = squared > 0 ? -(from * way).sum() / squared : 0
    if length > 0 {
      part = min((range.upperBound - before[edge]) / length, max(part, (range.lowerBound - before[edge]) / length))
    }
    part = min(1, max(part, 0))
    let off = from + way * part
    return (Match(edge: edge, along: before[edge] + part * length, off: (off * off).sum().squareRoot()), way)
  }

  /// The first edge, counted down from `edge`, that begins at most `along` metres from the start. O(edges between).
  @inline(__always)
  func edge(before along: Double, from edge: Int) -> Int {
    var edge = edge
    while edge > 0, before[edge] > along { edge -= 1 }
    return edge
  }
}
