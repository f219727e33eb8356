// Cells of a grid over the Earth, halved in both directions from level to level, by which fences are found.
//
// Level 0 is the whole Earth; level 18, the finest, has cells of 153 by 76 m at the equator: a driver is in one for
// some seconds, so its next fixes reuse the result. The key has the cell's Morton code and its level.
import HubGeo

struct FenceCell: Hashable {
  static let finestLevel = 18

  let column: UInt32
  let row: UInt32
  let level: Int

  static let world = FenceCell(column: 0, row: 0, level: 0)

  /// Unique among all cells of all levels.
  var key: UInt64 { FenceCell.key(GridPoint.mortonCode(column: column, row: row), level: level) }

  /// The key of the cell with a Morton code at its level.
  @inline(__always)
  static func key(_ code: UInt64, level: Int) -> UInt64 { code << 5 | UInt64(level) }

  /// The Morton code of the finest cell of a coordinate. 10 ns.
  @inline(__always)
  static func code(of place: Coordinate) -> UInt64 {
    GridPoint(place).mortonCode >> UInt64(2 * (GridPoint.bits - finestLevel))
  }

  /// Its quarters.
  var children: [FenceCell] {
    [(0, 0), (1, 0), (0, 1), (1, 1)].map {
      FenceCell(column: column << 1 | $0.0, row: row << 1 | $0.1, level: level + 1)
    }
  }

  /// Its borders, exactly.
  var box: BoundingBox {
    let cells = Double(1 << level)
    let (width, height) = (360 / cells, 180 / cells)
    let (west, south) = (Double(column) * width - 180, Double(row) * height - 90)
    guard let box = BoundingBox(south: south, west: west, north: south + height, east: west + width) else {
      preconditionFailure("a cell is on Earth")
    }
    return box
  }

  /// The greatest distance in metres from its middle to a point in it. Along meridians and parallels the distance grows
  /// to both ends, so it is the farthest corner's; infinity for the two coarsest levels.
  var reachMeters: Double {
    guard level >= 2 else { return .infinity }
    let (box, middle) = (box, box.center)
    let corners = [box.south, box.north].map {
      middle.distance(to: Coordinate(clampingLatitude: $0, wrappingLongitude: box.west))
    }
    return corners.reduce(0, max)
  }
}
