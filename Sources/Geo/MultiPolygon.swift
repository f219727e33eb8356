// One polygon or several, checked, with their positions as written.

/// Polygons that are one area: a place is in it if it is in one of them. They may overlap, and meet at the
/// antimeridian.
public struct MultiPolygon: Sendable, Hashable {
  public let polygons: [Polygon]
  /// As given: of each polygon its rings, of each ring its positions.
  public let positions: [[[Coordinate]]]
  /// The narrowest box around all of them.
  public let boundingBox: BoundingBox

  /// Checks polygons of at most `limit` positions in all. Throws the fault with its polygon's number, from 0.
  public init(_ positions: [[[Coordinate]]], limit: Int) throws(MultiPolygonError) {
    var left = limit
    var polygons: [Polygon] = []
    for (number, rings) in positions.enumerated() {
      do throws(PolygonError) {
        polygons.append(try Polygon(rings: rings, limit: left))
      } catch {
        let isOverAll = if case .tooManyPositions = error { true } else { false }
        throw MultiPolygonError(polygon: number, error: isOverAll ? .tooManyPositions(limit: limit) : error)
      }
      left -= rings.reduce(0) { $0 + $1.count }
    }
    guard let box = BoundingBox(around: polygons.map(\.boundingBox)) else {
      throw MultiPolygonError(polygon: 0, error: .noRing)
    }
    self.polygons = polygons
    self.positions = positions
    boundingBox = box
  }

  /// Whether a place is in one of the polygons.
  public func contains(_ coordinate: Coordinate) -> Bool {
    for polygon in polygons where polygon.contains(coordinate) { return true }
    return false
  }

  /// The number of edges of all polygons, which bounds the cost of `contains`.
  public var edgeCount: Int { polygons.reduce(0) { $0 + $1.edgeCount } }

  /// Whether both have the same positions in the same order, to the last bit. O(positions).
  public static func == (a: MultiPolygon, b: MultiPolygon) -> Bool { a.positions == b.positions }

  /// Hashes the positions, by which `==` compares. O(positions).
  public func hash(into hasher: inout Hasher) { hasher.combine(positions) }
}

/// Why some rings are no polygons, and in which polygon.
public struct MultiPolygonError: Error, Equatable, Sendable {
  public var polygon: Int
  public var error: PolygonError
}
