// Geohash cells: longitude and latitude halved in turn, longitude first, five bits to a character.
// G. M. Morton's order (1966) in G. Niemeyer's notation (geohash.org, 2008).
//
// A cell is an integer, not a text: cells are compared, hashed and walked per fix; text is for names of channels.
// All borders of cells up to 12 characters are fractions with 30 binary digits, which a Double holds exactly, so
// which cell a place is in is decided exactly: a border belongs to the cell to its north or east.

/// A cell of the geohash grid: `5 × precision` bits, longitude's first.
public struct GeohashCell: Sendable, Hashable, BitwiseCopyable {
  /// The bits, right-aligned.
  public let bits: UInt64
  @usableFromInline let characters: UInt8

  /// How many characters its text has.
  public static let precisions = 1...12

  /// The number of characters: 1…12.
  @inlinable public var precision: Int { Int(characters) }

  /// Nil when the precision is not in 1…12 or there are more bits than it has room for.
  @inlinable public init?(bits: UInt64, precision: Int) {
    guard precision >= 1, precision <= 12, bits >> UInt64(5 * precision) == 0 else { return nil }
    self.init(uncheckedBits: bits, precision: precision)
  }

  @inlinable init(uncheckedBits bits: UInt64, precision: Int) {
    self.bits = bits
    characters = UInt8(truncatingIfNeeded: precision)
  }

  /// The cell that a place is in. The precision must be in 1…12; that is a precondition. About 5 ns.
  ///
  /// Latitude 90 and longitude 180 belong to the last row and column (180 is not wrapped to −180's cell).
  @inlinable public init(_ coordinate: Coordinate, precision: Int) {
    precondition(precision >= 1 && precision <= 12)
    self.init(uncheckedBits: GridPoint(coordinate).mortonCode >> UInt64(60 - 5 * precision), precision: precision)
  }

  /// Bits of longitude: ⌈5p/2⌉; columns are numbered 0 ..< 2^this from −180 east.
  @inlinable var columnBits: Int { (5 * precision + 1) / 2 }
  /// Bits of latitude: ⌊5p/2⌋; rows are numbered 0 ..< 2^this from −90 north.
  @inlinable var rowBits: Int { 5 * precision / 2 }

  // An odd number of bits ends with a longitude bit: the two interleaved halves are swapped.
  @inlinable var column: UInt32 { GridPoint.gathered(precision % 2 == 1 ? bits : bits >> 1) }
  @inlinable var row: UInt32 { GridPoint.gathered(precision % 2 == 1 ? bits >> 1 : bits) }

  @inlinable init(column: UInt32, row: UInt32, precision: Int) {
    let columnBits = GridPoint.spread(column)
    let rowBits = GridPoint.spread(row)
    let isOdd = precision % 2 == 1
    self.init(uncheckedBits: isOdd ? columnBits | rowBits << 1 : columnBits << 1 | rowBits, precision: precision)
  }

  /// Degrees of longitude from its west to its east border.
  @inlinable public var widthDegrees: Double { 360 / Double(1 &<< columnBits) }
  /// Degrees of latitude from its south to its north border.
  @inlinable public var heightDegrees: Double { 180 / Double(1 &<< rowBits) }

  /// Its borders, exactly.
  @inlinable public var box: BoundingBox {
    let west = Double(column) * widthDegrees - 180
    let south = Double(row) * heightDegrees - 90
    return BoundingBox(uncheckedSouth: south, west: west, north: south + heightDegrees, east: west + widthDegrees)
  }

  /// Its middle, exactly.
  @inlinable public var center: Coordinate {
    Coordinate(
      clampingLatitude: (Double(row) + 0.5) * heightDegrees - 90,
      wrappingLongitude: (Double(column) + 0.5) * widthDegrees - 180)
  }

  /// Whether a place is in it (its south and west border belong to it, the others to its neighbours).
  @inlinable public func contains(_ coordinate: Coordinate) -> Bool {
    GeohashCell(coordinate, precision: precision).bits == bits
  }

  /// The cell of 1…`self.precision` characters that contains it (itself for its own precision; a precondition).
  @inlinable public func ancestor(precision shorter: Int) -> GeohashCell {
    precondition(shorter >= 1 && shorter <= precision)
    return GeohashCell(uncheckedBits: bits >> UInt64(5 * (precision - shorter)), precision: shorter)
  }
}

extension GeohashCell: Comparable {
  /// The order of the texts.
  @inlinable public static func < (a: GeohashCell, b: GeohashCell) -> Bool {
    let left = a.bits << UInt64(60 - 5 * a.precision)
    let right = b.bits << UInt64(60 - 5 * b.precision)
    return left != right ? left < right : a.precision < b.precision
  }
}

/// A place on the finest grid, 2^30 columns by 2^30 rows (3.7 by 1.9 cm at the equator): what a geohash is made of,
/// and the key of spatial indexes.
public struct GridPoint: Sendable, Hashable, BitwiseCopyable {
  /// 0 ..< 2^30, from −180 east.
  public let column: UInt32
  /// 0 ..< 2^30, from −90 north.
  public let row: UInt32

  /// Bits of each axis.
  public static let bits = 30

  @inlinable public init(_ coordinate: Coordinate) {
    column = GridPoint.index(of: coordinate.longitude, from: -180, span: 360)
    row = GridPoint.index(of: coordinate.latitude, from: -90, span: 180)
  }

  /// The two interleaved to 60 bits, longitude's first: the bits of a geohash of 12 characters.
  @inlinable public var mortonCode: UInt64 { GridPoint.mortonCode(column: column, row: row) }

  /// A column and a row interleaved, the column's bit above the row's.
  @inlinable public static func mortonCode(column: UInt32, row: UInt32) -> UInt64 {
    spread(column) << 1 | spread(row)
  }

  /// The greatest i with `start + i · span / 2^30` ≤ value: exact, though the multiplication below rounds, because the
  /// borders themselves are exact.
  @inlinable @inline(__always)
  static func index(of value: Double, from start: Double, span: Double) -> UInt32 {
    let last: Int64 = 1 << 30 - 1
    let step = span / 1_073_741_824  // a power of two below span: exact
    // Truncated towards 0, which is down: value − start is never negative. (`rounded(.down)` is a call on x86-64.)
    var index = min(last, Int64((value - start) * (1_073_741_824 / span)))
    if value < start + Double(index) * step {
      index -= 1  // never below 0: value ≥ start
    } else if index < last, value >= start + Double(index + 1) * step {
      index += 1
    }
    return UInt32(truncatingIfNeeded: index)
  }

  /// Bit i to bit 2i. "Interleave bits by Binary Magic Numbers", S. E. Anderson, Bit Twiddling Hacks.
  @inlinable static func spread(_ value: UInt32) -> UInt64 {
    var v = UInt64(value)
    v = (v | v << 16) & 0x0000_FFFF_0000_FFFF
    v = (v | v << 8) & 0x00FF_00FF_00FF_00FF
    v = (v | v << 4) & 0x0F0F_0F0F_0F0F_0F0F
    v = (v | v << 2) & 0x3333_3333_3333_3333
    return (v | v << 1) & 0x5555_5555_5555_5555
  }

  /// Bit 2i to bit i; odd bits are dropped.
  @inlinable static func gathered(_ value: UInt64) -> UInt32 {
    var v = value & 0x5555_5555_5555_5555
    v = (v | v >> 1) & 0x3333_3333_3333_3333
    v = (v | v >> 2) & 0x0F0F_0F0F_0F0F_0F0F
    v = (v | v >> 4) & 0x00FF_00FF_00FF_00FF
    v = (v | v >> 8) & 0x0000_FFFF_0000_FFFF
    return UInt32(truncatingIfNeeded: v | v >> 16)
  }
}
