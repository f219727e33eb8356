// The neighbours of a geohash cell, and its size on the ground.

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// One of the eight ways to leave a cell.
public enum CompassDirection: CaseIterable, Sendable {
  case north, northEast, east, southEast, south, southWest, west, northWest

  /// Columns to the east, −1…1.
  @inlinable public var columnStep: Int32 {
    switch self {
    case .northEast, .east, .southEast: 1
    case .north, .south: 0
    case .southWest, .west, .northWest: -1
    }
  }

  /// Rows to the north, −1…1.
  @inlinable public var rowStep: Int32 {
    switch self {
    case .northWest, .north, .northEast: 1
    case .west, .east: 0
    case .southWest, .south, .southEast: -1
    }
  }

  /// The direction back.
  @inlinable public var opposite: CompassDirection {
    switch self {
    case .north: .south
    case .northEast: .southWest
    case .east: .west
    case .southEast: .northWest
    case .south: .north
    case .southWest: .northEast
    case .west: .east
    case .northWest: .southEast
    }
  }
}

extension GeohashCell {
  /// The cell of the same size on that side. East and west go round the Earth; beyond a pole there is none.
  @inlinable public func neighbour(_ direction: CompassDirection) -> GeohashCell? {
    let newRow = Int64(row) + Int64(direction.rowStep)
    guard newRow >= 0, newRow < 1 &<< Int64(rowBits) else { return nil }
    let newColumn = (column &+ UInt32(bitPattern: direction.columnStep)) & (1 &<< UInt32(columnBits) &- 1)
    return GeohashCell(column: newColumn, row: UInt32(newRow), precision: precision)
  }

  /// The cells around it, clockwise from the north: 8, or 5 in a row at a pole.
  public var neighbours: [GeohashCell] { CompassDirection.allCases.compactMap { neighbour($0) } }

  /// Metres across a cell of this precision, west to east at a latitude and south to north, on the sphere of
  /// `earthRadiusMeters`. A precision outside 1…12 is a precondition.
  public static func sizeMeters(precision: Int, atLatitude latitude: Double) -> (width: Double, height: Double) {
    precondition(precision >= 1 && precision <= 12)
    let degree = earthRadiusMeters * radiansPerDegree
    let cell = GeohashCell(uncheckedBits: 0, precision: precision)
    return (cell.widthDegrees * degree * cos(latitude * radiansPerDegree), cell.heightDegrees * degree)
  }

  /// Metres across this cell: west to east along its middle parallel, and south to north.
  public var sizeMeters: (width: Double, height: Double) {
    GeohashCell.sizeMeters(precision: precision, atLatitude: center.latitude)
  }
}
