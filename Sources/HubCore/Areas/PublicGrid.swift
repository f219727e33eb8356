// Where riders see a driver that is not theirs: in the middle of a square of about 20 m, so that nobody can be followed to a
// door.
//
// The squares are halves of geohash cells of 8 characters, so that a place and the square's middle are in the same cell of
// any size: a driver is shown in the cell that it is in. Rows are 19.1 m high. A square is 14–19 m wide up to 41° of
// latitude and 14–29 m up to 60°; beyond, meridians come closer than cells can follow.
import Geo

enum PublicGrid {
  /// The latitude from which a square is as wide as its cell of 8 characters.
  private static let wideFrom = 41.4

  /// The middle of the square that a place is in.
  static func rounded(_ place: Coordinate) -> Coordinate {
    let point = GridPoint(place)
    let isWide = abs(place.latitude) >= wideFrom
    let longitude = middle(of: point.column, bits: isWide ? 20 : 21) * 360 - 180
    let latitude = middle(of: point.row, bits: 20) * 180 - 90
    guard let rounded = Coordinate(latitude: latitude, longitude: longitude) else {
      preconditionFailure("the middle of a square is on the globe")
    }
    return rounded.published
  }

  /// 0…1, along one axis.
  private static func middle(of index: UInt32, bits: Int) -> Double {
    let square = index >> UInt32(GridPoint.bits - bits)
    return (Double(square) + 0.5) / Double(1 << bits)
  }
}
