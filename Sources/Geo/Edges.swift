// An index of the edges of a border or of a path, for repeated look-ups by box, as a covering by cells needs.
//
// On the plane of PlanePoint.swift boxes are boxes and edges are straight, so the answer is exact but for boxes being
// 1e-9° larger on all sides, so that rounding omits no edge. Each edge is looked up one and two turns away too, because
// what crosses the antimeridian is drawn beyond ±180°.

/// The edges of some polygons or of a path.
public struct Edges: Sendable {
  private let ends: [(PlanePoint, PlanePoint)]

  public init(_ polygons: MultiPolygon) {
    var ends: [(PlanePoint, PlanePoint)] = []
    ends.reserveCapacity(polygons.edgeCount)
    for polygon in polygons.polygons {
      for ring in polygon.rings {
        for index in ring.start..<ring.end - 1 { ends.append((polygon.vertices[index], polygon.vertices[index + 1])) }
      }
    }
    self.ends = ends
  }

  public init(_ path: Path) {
    ends = (0..<path.vertices.count - 1).map { (path.vertices[$0], path.vertices[$0 + 1]) }
  }

  /// The numbers of all edges.
  public var all: [Int32] { (0..<Int32(truncatingIfNeeded: ends.count)).map { $0 } }

  /// Which of some edges have a point in a box. A few ns for each that is asked about.
  public func meeting(_ box: BoundingBox, among edges: [Int32]) -> [Int32] {
    let box = PlaneBox(box)
    return edges.filter { box.meets(ends[Int($0)].0, ends[Int($0)].1) }
  }

  /// Whether one of some edges begins at a latitude.
  public func touch(latitude: Double, _ edges: [Int32]) -> Bool {
    let y = PlanePoint.units(latitude)
    return edges.contains { ends[Int($0)].0.y == y }
  }
}

/// A box on the map, 1e-9° larger than the one it is made of.
private struct PlaneBox {
  private let west: Int64
  private let south: Int64
  private let east: Int64
  private let north: Int64

  init(_ box: BoundingBox) {
    west = PlanePoint.units(box.west) - 1
    east = west + 2 + PlanePoint.units(box.widthDegrees)
    south = PlanePoint.units(box.south) - 1
    north = PlanePoint.units(box.north) + 1
  }

  func meets(_ a: PlanePoint, _ b: PlanePoint) -> Bool {
    guard max(a.y, b.y) >= south, min(a.y, b.y) <= north else { return false }
    for turns in -2...2 {
      let shift = Int64(turns) * PlanePoint.fullTurn
      let (from, to) = (PlanePoint(x: a.x + shift, y: a.y), PlanePoint(x: b.x + shift, y: b.y))
      if max(from.x, to.x) >= west, min(from.x, to.x) <= east, !isAside(from, to) { return true }
    }
    return false
  }

  /// Whether all corners are on one side of the line through an edge.
  private func isAside(_ a: PlanePoint, _ b: PlanePoint) -> Bool {
    func side(_ x: Int64, _ y: Int64) -> Int { a.turn(by: b, to: PlanePoint(x: x, y: y)) }
    let sides = side(west, south) + side(east, south) + side(west, north) + side(east, north)
    return sides.magnitude == 4
  }
}
