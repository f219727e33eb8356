// What is near a line: all places within half a width of a path, with round ends and corners.

/// Why positions are no path.
public enum PathError: Error, Equatable, Sendable {
  case tooManyPositions(limit: Int)
  /// Two different positions are needed.
  case tooFewPositions
  /// It goes more than once round the Earth.
  case tooLong
}

/// A line of two or more different positions, straight between them in longitude and latitude, the short way round
/// (RFC 7946 §3.1.4, and Polygon.swift for the antimeridian). It may cross itself.
public struct Path: Sendable, Hashable {
  let vertices: [PlanePoint]
  /// The smallest box around it, made larger by 1e-9° on all sides.
  public let boundingBox: BoundingBox

  public init(_ positions: [Coordinate], limit: Int) throws(PathError) {
    guard positions.count <= limit else { throw .tooManyPositions(limit: limit) }
    guard !positions.isEmpty else { throw .tooFewPositions }
    let points = PlanePoint.drawn(positions)
    guard points.count >= 2 else { throw .tooFewPositions }
    let ring = Polygon.Ring(0..<points.count, of: points)
    guard ring.east - ring.west <= PlanePoint.fullTurn else { throw .tooLong }
    vertices = points
    boundingBox = Polygon.box(of: ring)
  }

  /// Metres from a place to the nearest point of the path; as exact as `Polygon.distanceToBorder(from:)`.
  public func distance(from coordinate: Coordinate) -> Double {
    var nearest = NearestOnEdges(to: coordinate)
    for index in 0..<vertices.count - 1 { nearest.add(vertices[index], vertices[index + 1]) }
    return nearest.meters
  }

  /// Metres to the nearest of some edges, as `Edges` numbers them; infinity where there are none.
  public func distance(from coordinate: Coordinate, toNearestOf edges: [Int32]) -> Double {
    var nearest = NearestOnEdges(to: coordinate)
    for edge in edges { nearest.add(vertices[Int(edge)], vertices[Int(edge) + 1]) }
    return nearest.meters
  }

  /// Whether a place is within some metres of the path. Ends with the first edge that is near enough.
  func isWithin(_ meters: Double, of coordinate: Coordinate) -> Bool {
    var nearest = NearestOnEdges(to: coordinate)
    for index in 0..<vertices.count - 1 {
      nearest.add(vertices[index], vertices[index + 1])
      // The map's metres are within 0.01 % of the sphere's: only what is nearer than that needs the sphere.
      if nearest.squaredMeters <= meters * meters * 1.01, nearest.meters <= meters { return true }
    }
    return false
  }
}

/// All places within half a width of a path.
public struct Corridor: Sendable, Hashable {
  public let path: Path
  public let halfWidthMeters: Double
  public let boundingBox: BoundingBox

  /// Nil when the width is not more than 0 or not finite.
  public init?(_ path: Path, widthMeters: Double) {
    guard widthMeters * 0.5 > 0, widthMeters.isFinite else { return nil }
    self.path = path
    halfWidthMeters = widthMeters * 0.5
    boundingBox = path.boundingBox.grown(byMeters: halfWidthMeters)
  }

  /// Whether a place is in it, the border included: O(edges), but 5 ns outside of its box.
  public func contains(_ coordinate: Coordinate) -> Bool {
    boundingBox.contains(coordinate) && path.isWithin(halfWidthMeters, of: coordinate)
  }

  /// Metres to the border; the same inside and outside.
  public func distanceToBorder(from coordinate: Coordinate) -> Double {
    abs(path.distance(from: coordinate) - halfWidthMeters)
  }
}

/// All places within a radius.
public struct Circle: Sendable, Hashable {
  public let center: Coordinate
  public let radiusMeters: Double
  public let boundingBox: BoundingBox
  private let vector: UnitVector

  /// Nil when the radius is not more than 0 or not finite.
  public init?(center: Coordinate, radiusMeters: Double) {
    guard radiusMeters > 0, radiusMeters.isFinite else { return nil }
    self.center = center
    self.radiusMeters = radiusMeters
    boundingBox = BoundingBox(center: center, radiusMeters: radiusMeters)
    vector = UnitVector(center)
  }

  /// Whether a place is in it, the border included: 30 ns, but 5 outside of its box.
  public func contains(_ coordinate: Coordinate) -> Bool {
    boundingBox.contains(coordinate) && vector.distance(to: UnitVector(coordinate)) <= radiusMeters
  }

  /// Whether a place whose direction is known is in it, the border included.
  public func contains(_ coordinate: Coordinate, _ direction: UnitVector) -> Bool {
    boundingBox.contains(coordinate) && vector.distance(to: direction) <= radiusMeters
  }

  /// Metres to the border; the same inside and outside.
  public func distanceToBorder(from coordinate: Coordinate) -> Double {
    abs(vector.distance(to: UnitVector(coordinate)) - radiusMeters)
  }
}
