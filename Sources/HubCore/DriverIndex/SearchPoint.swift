// The centre of a search, and lower bounds of the distance from it to a cell.
//
// A search may skip a cell only if nothing in it can be in the answer, rounding included. So bounds are lower bounds,
// limits are upper bounds, and a slack between them (1e−13 of the Earth's radius: 0.6 µm) is far wider than rounding
// errors and too narrow to cost anything.

import HubGeo

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A centre with what is needed to bound distances from it.
struct SearchPoint {
  let vector: UnitVector
  private let latitude: Double
  private let longitude: Double
  private let cosine: Double
  private let absoluteSine: Double

  init(_ coordinate: Coordinate) {
    vector = UnitVector(coordinate)
    latitude = coordinate.latitude
    longitude = coordinate.longitude
    absoluteSine = abs(vector.z)
    cosine = (vector.x * vector.x + vector.y * vector.y).squareRoot()
  }

  /// No coordinate within `meters` has a greater squared chord: a chord is never longer than its arc.
  static func squaredChordLimit(meters: Double) -> Double {
    let chord = min(meters / earthRadiusMeters, 4) * (1 + 1e-12) + 1e-13
    return chord * chord
  }

  /// No coordinate at this squared chord or beyond is nearer, in metres, than this (less the slack).
  static func minimumMeters(squaredChord: Double) -> Double {
    2 * earthRadiusMeters * asin(min(1, squaredChord.squareRoot() * 0.5))
  }

  /// A lower bound of the squared chord to all of a cell; 0 where the point is in it. About 20 operations.
  ///
  /// haversine(d) = haversine(Δφ) + cos φ cos φ0 haversine(Δλ): each term is taken at its least over the cell, with
  /// sin y ≥ y − y³/6, and for the cosine at the parallel nearest to a pole cos(φ0 + δ) ≥ cos φ0 (1 − δ²/2) − sin φ0 δ.
  @inline(__always)
  func minimumSquaredChord(to cell: TreeCell) -> Double {
    let toSouth = cell.south - latitude
    let toNorth = latitude - cell.north
    let latitudeGap = max(0, toSouth, toNorth)
    let toWest = cell.west - longitude
    let toEast = longitude - cell.east
    var longitudeGap = 0.0
    if toWest > 0 {
      longitudeGap = max(0, min(toWest, 360 + toEast))
    } else if toEast > 0 {
      longitudeGap = max(0, min(toEast, 360 + toWest))
    }
    let halfRadians = Double.pi / 360
    let y = latitudeGap * halfRadians
    let sinLatitude = y - y * y * y * (1.0 / 6)
    let x = longitudeGap * halfRadians
    let sinLongitude = x - x * x * x * (1.0 / 6)
    let delta = max(0, max(abs(cell.south), abs(cell.north)) - abs(latitude)) * (2 * halfRadians)
    let minimumCosine = max(0, cosine * (1 - delta * delta * 0.5) - absoluteSine * delta)
    return 4 * (sinLatitude * sinLatitude + cosine * minimumCosine * sinLongitude * sinLongitude)
  }
}

/// A cell of the tree: its column and row among the 2^level by 2^level of its level.
struct TreeCell: BitwiseCopyable {
  var column: UInt32
  var row: UInt32
  var level: UInt8

  static var world: TreeCell { TreeCell(column: 0, row: 0, level: 0) }

  /// 2^−level.
  private var scale: Double { Double(bitPattern: (1023 - UInt64(level)) << 52) }
  // All four are exact: fractions with at most 20 binary digits.
  var west: Double { Double(column) * scale * 360 - 180 }
  var east: Double { Double(column + 1) * scale * 360 - 180 }
  var south: Double { Double(row) * scale * 180 - 90 }
  var north: Double { Double(row + 1) * scale * 180 - 90 }

  /// One of its four quarters, in the order of Morton codes.
  func child(_ quadrant: UInt32) -> TreeCell {
    TreeCell(column: column << 1 | quadrant >> 1, row: row << 1 | quadrant & 1, level: level + 1)
  }

  /// The smallest Morton key in the cell.
  var firstKey: UInt64 {
    let finest = UInt32(GridPoint.bits) - UInt32(level)
    return GridPoint.mortonCode(column: column << finest, row: row << finest)
  }

  /// The greatest key in it.
  var lastKey: UInt64 { firstKey | (1 << (60 - 2 * UInt64(level)) - 1) }

  /// Whether it intersects a box.
  func intersects(_ box: BoundingBox) -> Bool {
    guard south <= box.north, box.south <= north else { return false }
    let (west, east) = (west, east)
    return box.contains(longitude: west) || box.contains(longitude: east) || west <= box.west && box.west <= east
  }
}
