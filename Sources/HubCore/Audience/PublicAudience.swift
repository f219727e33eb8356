// What everybody may see of a driver who is free: that one is about there. Not who, and not the same one for long.
//
// Three rules (protocol/README.md, "What riders see"), pure functions of the key, the driver and the time, so that all
// who show drivers to the public show the same:
// - A pseudonym stands for the id: a keyed hash of the id, of the hour, and of when the driver's last trip ended. Hours
//   begin for each driver at an offset of its own, so that not all change at once, when one could tell from places who
//   has become whom. It is the same for all riders.
// - A place is rounded to the middle of a field of 20 by 20 m; distances are measured from there, and what is within a
//   radius or an area is decided by it: else a rider who asks again and again with other radii would find the place.
// - What else would tell a car from others is rounded: heading and speed to whole units, age to whole seconds.
import Geo
import Messages

/// How drivers are shown to riders.
public struct PublicAudience: Sendable {
  /// Metres: how far around a place riders may look.
  public static let maximumRadiusMeters = 5_000.0
  /// Drivers that one answer to a rider, or one cell, may have.
  public static let maximumDrivers = 100

  private let key: SipKey

  public init(key: SipKey) { self.key = key }

  /// The driver's pseudonym, as a number: 64 bits that nobody can foretell.
  ///
  /// - Parameter lastTripEnded: when the driver's last trip ended, in milliseconds since 1970; 0 for none.
  /// - Complexity: two hashes, some 80 ns.
  func pseudonym(of id: Identifier, lastTripEnded: Int64, at time: Timestamp) -> UInt64 {
    var hash = SipHash(key)
    for index in 0..<(id.text.count + 7) / 8 { hash.combine(id.text.word(index)) }
    let offset = Int64(hash.finished(rest: 1, count: 1) % 3_600_000)
    let hour = (time.milliseconds + offset) / 3_600_000
    hash.combine(UInt64(bitPattern: hour))
    hash.combine(UInt64(bitPattern: lastTripEnded))
    return hash.finished(rest: 2, count: 1)
  }

  /// A pseudonym as an id: `p` and 13 characters of the geohash alphabet.
  static func name(_ pseudonym: UInt64) -> Identifier {
    var bytes = [UInt8(ascii: "p")]
    bytes.reserveCapacity(14)
    for shift in stride(from: UInt64(60), through: 0, by: -5) {
      bytes.append(digits[Int(truncatingIfNeeded: pseudonym >> shift) & 31])
    }
    guard let id = bytes.withUnsafeBytes({ Identifier($0) }) else {
      preconditionFailure("letters and digits are an id")
    }
    return id
  }

  private static let digits = Array("0123456789bcdefghjkmnpqrstuvwxyz".utf8)

  /// A heading in whole degrees, 0 ≤ heading < 360.
  static func rounded(heading: Double) -> Double {
    let whole = heading.rounded()
    return whole < 360 ? whole : 0
  }

  /// Leaves of more drivers than `limit` those with the smallest pseudonyms, so that the same ones stay from answer to
  /// answer while they are there, and gives how many went.
  static func choose<Driver>(
    _ drivers: inout [Driver], limit: Int = maximumDrivers, pseudonym: (Driver) -> UInt64
  ) -> Int {
    guard drivers.count > limit else { return 0 }
    drivers.sort { pseudonym($0) < pseudonym($1) }
    let others = drivers.count - limit
    drivers.removeLast(others)
    return others
  }
}

/// Fields of 20 by 20 m all over the Earth: rows from pole to pole, each of as many fields as fit around its middle.
enum PublicGrid {
  /// Rows from the south pole: 90/500,377 degrees each, 20.000 m.
  private static let rows = 1_000_754
  private static let rowDegrees = 180 / Double(rows)
  /// Metres from a place to the middle of its field, at most: half a field's diagonal and rounding to 7 decimals. A field
  /// on the polar side of a row is wider than the row's middle says only beyond 89.9°, where rows are short.
  static let displacementMeters = 15.0

  /// The middle of the field that a place is in, to 7 decimals: the same for all places of the field.
  static func snapped(_ coordinate: Coordinate) -> Coordinate {
    let row = min(rows - 1, Int((coordinate.latitude + 90) / rowDegrees))
    let latitude = (Double(row) + 0.5) * rowDegrees - 90
    let around = 2 * Double.pi * earthRadiusMeters * SineCosine(degrees: latitude).cosine
    let fields = max(1, Int(around / 20))
    let width = 360 / Double(fields)
    let field = min(fields - 1, Int((coordinate.longitude + 180) / width))
    return Coordinate(
      clampingLatitude: latitude, wrappingLongitude: (Double(field) + 0.5) * width - 180
    ).published
  }
}
