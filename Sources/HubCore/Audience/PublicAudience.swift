// What everybody may see of a driver who is free: that one is about there. Not who, and not the same one for long.
//
// Three rules (protocol/README.md, "What riders see"), pure functions of the key, the driver and the time, so that all
// who show drivers to the public show the same:
// - A pseudonym stands for the id: a keyed hash of the id, of the hour, and of when the driver's last trip ended. Hours
//   begin for each driver at an offset of its own, so that not all change at once, when one could tell from places who
//   has become whom. It is the same for all riders.
// - A place is rounded to the middle of a field of some 20 by 20 m; distances are measured from there, and what is within a
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
}

/// Fields of some 20 by 20 m all over the Earth.
///
/// They are halves of geohash cells of 8 characters, so that a place and the middle of its field are in the same cell of
/// any size: an area shows a driver in the cell that it is in. Rows are 19.1 m high. A field is 14–19 m wide up to 41° of
/// latitude and 14–29 m up to 60°; beyond, meridians come closer than cells can follow.
enum PublicGrid {
  /// The latitude from which a field is as wide as its cell of 8 characters.
  private static let wideFrom = 41.4
  /// Metres from a place to the middle of its field, at most: half a field's diagonal, and rounding to 7 decimals.
  static let displacementMeters = 18.0

  /// The middle of the field that a place is in, to 7 decimals: the same for all places of the field.
  static func snapped(_ coordinate: Coordinate) -> Coordinate {
    let point = GridPoint(coordinate)
    let longitude = middle(of: point.column, bits: abs(coordinate.latitude) >= wideFrom ? 20 : 21) * 360 - 180
    let latitude = middle(of: point.row, bits: 20) * 180 - 90
    return Coordinate(clampingLatitude: latitude, wrappingLongitude: longitude).published
  }

  /// 0…1, along one axis.
  private static func middle(of index: UInt32, bits: Int) -> Double {
    let field = index >> UInt32(GridPoint.bits - bits)
    return (Double(field) + 0.5) / Double(1 << bits)
  }
}
