// Which cells of one size touch a box or a circle: row by row, each row's cells one run of columns.
//
// For a circle the run is found from its widest parallel within the row, not from its bounding box, so the work is
// that of the answer: no cell is looked at that is not in it.

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Why there is no covering.
public enum CoveringError: Error, Equatable, Sendable {
  /// It would have more cells than `limit`. Take a shorter precision.
  case tooManyCells(limit: Int)
}

extension GeohashCell {
  /// All cells of a precision that have a point in common with a box, rows from the south, columns from the west.
  ///
  /// A border of the box on a border of cells takes in the cells to its north and east (they hold it). Throws, before
  /// anything is allocated, when there are more than `limit`. A precision outside 1…12 is a precondition.
  public static func covering(
    _ box: BoundingBox, precision: Int, limit: Int
  ) throws(CoveringError) -> [GeohashCell] {
    precondition(precision >= 1 && precision <= 12)
    let rows = rowRange(south: box.south, north: box.north, precision: precision)
    let run = columnRun(west: box.west, width: box.widthDegrees, precision: precision)
    let (count, overflow) = rows.count.multipliedReportingOverflow(by: run.count)
    guard !overflow, count <= limit else { throw .tooManyCells(limit: limit) }
    var cells: [GeohashCell] = []
    cells.reserveCapacity(count)
    for row in rows { append(run, row: row, precision: precision, to: &cells) }
    return cells
  }

  /// All cells of a precision that have a point within `radiusMeters` of `center` on the sphere, rows from the south,
  /// columns from the west.
  ///
  /// Right over poles and the antimeridian. To be safe from rounding it counts what is less than 0.1 mm outside.
  /// Throws as soon as there are more than `limit`; cost is proportional to min(cells, limit). A precision outside
  /// 1…12 and a radius that is negative or NaN are preconditions.
  public static func covering(
    center: Coordinate, radiusMeters: Double, precision: Int, limit: Int
  ) throws(CoveringError) -> [GeohashCell] {
    precondition(precision >= 1 && precision <= 12 && radiusMeters >= 0)
    let box = BoundingBox(center: center, radiusMeters: radiusMeters)
    let rows = rowRange(south: box.south, north: box.north, precision: precision)
    guard rows.count <= limit else { throw .tooManyCells(limit: limit) }  // each row has at least one
    let height = GeohashCell(uncheckedBits: 0, precision: precision).heightDegrees
    var cells: [GeohashCell] = []
    for row in rows {
      let south = max(box.south, Double(row) * height - 90)
      let north = min(box.north, Double(row + 1) * height - 90)
      let reach = widestReach(center: center, radiusMeters: radiusMeters, south: south, north: north)
      let run = columnRun(west: center.longitude - reach, width: 2 * reach, precision: precision)
      guard cells.count + run.count <= limit else { throw .tooManyCells(limit: limit) }
      append(run, row: row, precision: precision, to: &cells)
    }
    return cells
  }

  /// The greatest difference of longitude, in degrees, of a point of the circle between two parallels; 180 for all.
  private static func widestReach(
    center: Coordinate, radiusMeters: Double, south: Double, north: Double
  ) -> Double {
    let padding = 1e-9
    let delta = radiusMeters / earthRadiusMeters + padding * radiansPerDegree
    let phi0 = center.latitude * radiansPerDegree
    if delta >= .pi / 2 { return 180 }
    // The parallel on which the circle is widest: sin φ = sin φ0 / cos δ. Towards it from both sides it widens.
    let widest = asin(min(1, max(-1, sin(phi0) / cos(delta)))) * degreesPerRadian
    let phi = min(north, max(south, widest)) * radiansPerDegree
    // haversine(δ) = haversine(φ − φ0) + cos φ cos φ0 haversine(Δλ), solved for Δλ.
    let rest = squaredHalfSine(delta) - squaredHalfSine(phi - phi0)
    let scale = cos(phi) * cos(phi0)
    guard rest > 0 else { return padding / max(1e-9, cos(phi)) }
    guard rest < scale else { return 180 }
    return 2 * asin((rest / scale).squareRoot()) * degreesPerRadian * (1 + 1e-9) + padding / max(1e-9, cos(phi))
  }

  private static func squaredHalfSine(_ angle: Double) -> Double {
    let sine = sin(angle * 0.5)
    return sine * sine
  }

  /// A run of columns that may go past the last one and on from the first.
  private typealias ColumnRun = (first: Int, count: Int)

  private static func rowRange(south: Double, north: Double, precision: Int) -> ClosedRange<Int> {
    let shift = GridPoint.bits - 5 * precision / 2
    let first = GridPoint.index(of: max(-90, south), from: -90, span: 180)
    let last = GridPoint.index(of: min(90, north), from: -90, span: 180)
    return Int(first) >> shift...Int(last) >> shift
  }

  private static func columnRun(west: Double, width: Double, precision: Int) -> ColumnRun {
    let shift = GridPoint.bits - (5 * precision + 1) / 2
    let columns = 1 << ((5 * precision + 1) / 2)
    guard width < 360 else { return (0, columns) }
    func column(_ longitude: Double) -> Int {
      let wrapped = Coordinate.wrappedLongitude(longitude)
      // Of the two names of the antimeridian, −180 is the one whose cell holds it to the east.
      return Int(GridPoint.index(of: wrapped == 180 ? -180 : wrapped, from: -180, span: 360)) >> shift
    }
    let first = column(west)
    let span = (column(west + width) - first + columns) % columns
    // First and last in one column: either a narrow run or one that has gone round all of the Earth.
    if span == 0, width > 180 { return (0, columns) }
    return (first, span + 1)
  }

  private static func append(_ run: ColumnRun, row: Int, precision: Int, to cells: inout [GeohashCell]) {
    let mask = 1 << ((5 * precision + 1) / 2) - 1
    for offset in 0..<run.count {
      let column = UInt32(truncatingIfNeeded: (run.first + offset) & mask)
      cells.append(GeohashCell(column: column, row: UInt32(truncatingIfNeeded: row), precision: precision))
    }
  }
}
