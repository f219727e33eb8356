// How far a place is from a line on the map: the border of a polygon, a path.
//
// An edge is straight in longitude and latitude, so near a place it is straight on a map with the east shrunk by the
// cosine of the latitude. The nearest point is found on that map, with the cosine half-way between the place and the
// nearest point so far; the distance to it is the great circle's. So the result is never less than the true distance
// but for rounding, and more by at most 1e-4 of it (tests: up to 10 km, up to 80° of latitude). Beyond 85° the map
// shears, and the error may be larger.

/// The nearest point of some edges to one place.
struct NearestOnEdges {
  private let place: Coordinate
  private let point: PlanePoint
  /// Of the best point so far: metres on the map, squared, and where it is.
  private(set) var squaredMeters = Double.infinity
  private var nearest: Coordinate?

  private static let metersPerUnit = earthRadiusMeters * radiansPerDegree / PlanePoint.unitsPerDegree

  init(to place: Coordinate) {
    self.place = place
    point = PlanePoint(place)
  }

  /// Takes an edge into account. 30 ns where its latitudes are near enough to matter, else 3.
  mutating func add(_ a: PlanePoint, _ b: PlanePoint) {
    let gap = max(0, min(a.y, b.y) - point.y, point.y - max(a.y, b.y))
    let gapMeters = Double(gap) * NearestOnEdges.metersPerUnit
    // A difference of latitudes is never more than the distance.
    guard gapMeters * gapMeters < squaredMeters else { return }
    let width = Double(b.x - a.x)
    let start = NearestOnEdges.nearestName(Double(a.x - point.x), width)
    let (south, height) = (Double(a.y - point.y), Double(b.y - a.y))
    var middle = min(max(0, min(south, south + height)), max(south, south + height)) * 0.5
    for round in 0..<2 {
      let scale = SineCosine(degrees: place.latitude + middle / PlanePoint.unitsPerDegree).cosine
      let (x, dx) = (start * scale, width * scale)
      let length = dx * dx + height * height
      let part = length > 0 ? min(1, max(0, -(x * dx + south * height) / length)) : 0
      let (east, north) = (x + part * dx, south + part * height)
      let units = NearestOnEdges.metersPerUnit
      let squared = (east * east + north * north) * units * units
      middle = north * 0.5
      guard round == 1, squared < squaredMeters else { continue }
      squaredMeters = squared
      nearest = Coordinate(
        clampingLatitude: place.latitude + north / PlanePoint.unitsPerDegree,
        wrappingLongitude: place.longitude + (start + part * width) / PlanePoint.unitsPerDegree)
    }
  }

  /// The longitude of the edge's start, by whole turns, with which the edge is nearest to the place.
  private static func nearestName(_ start: Double, _ width: Double) -> Double {
    var (best, least) = (start, Double.infinity)
    // A path of many edges may end two turns from where its first edge is.
    for turns in -2...2 {
      let name = start + Double(turns) * 360e9
      let gap = max(0, min(name, name + width), -max(name, name + width))
      if gap < least { (best, least) = (name, gap) }
    }
    return best
  }

  /// Metres to the nearest point; infinite where there was no edge.
  var meters: Double { nearest.map(place.distance(to:)) ?? .infinity }
}

extension Polygon {
  /// Metres from a place to the nearest point of the border, holes' borders included; the same inside and outside.
  ///
  /// For distances up to 10 km and latitudes up to 80° it is at most 0.01 % too long, and never too short. O(edges):
  /// 30 ns for those that are near, 3 ns for the others. No allocation.
  public func distanceToBorder(from coordinate: Coordinate) -> Double {
    var nearest = NearestOnEdges(to: coordinate)
    for ring in rings {
      for index in ring.start..<ring.end - 1 { nearest.add(vertices[index], vertices[index + 1]) }
    }
    return nearest.meters
  }
}

extension MultiPolygon {
  /// Metres from a place to the nearest border of one of the polygons.
  public func distanceToBorder(from coordinate: Coordinate) -> Double {
    polygons.reduce(.infinity) { min($0, $1.distanceToBorder(from: coordinate)) }
  }

  /// Square metres of all of them; where they overlap, of each.
  public var areaSquareMeters: Double { polygons.reduce(0) { $0 + $1.areaSquareMeters } }
}
