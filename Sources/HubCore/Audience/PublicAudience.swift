// What the public may see of a free driver: an approximate position, under a pseudonym that changes.
//
// Three rules (protocol/queries.md, "What riders see"), pure functions of the key, the driver and the time, so that all
// views show the same:
// - A pseudonym stands for the id: a keyed hash of the id, of the hour, and of when the driver's last trip ended. It is
//   the same for all riders. All drivers change at full hours: one that changed alone could be linked, as the one old
//   name that leaves and the one new name that appears.
// - A position is rounded to the middle of a field of some 20 by 20 m. Distances are measured from there, and it
//   decides what is within a radius or an area; else repeated queries with other radii would locate the driver.
// - What would identify a driver across a change of names is not shown: no heading, no speed, and no time of a fix,
//   whose milliseconds a phone repeats. The age is always 0: one that grows, in whatever steps, shows when it falls or
//   passes a step, and so when the driver sends.
import HubBytes
import HubGeo
import HubMessages

/// How drivers are shown to riders.
public struct PublicAudience: Sendable {
  /// The age (seconds) of every position that riders see.
  static let age = 0.0
  /// How long pseudonyms last, in milliseconds.
  private static let nameMilliseconds: Int64 = 3_600_000

  private let key: SipKey

  public init(key: SipKey) { self.key = key }

  /// The driver's pseudonym, as a number: 64 bits that cannot be predicted without the key.
  ///
  /// - Parameter lastTripEnded: when the driver's last trip ended, in milliseconds since 1970; 0 for none.
  /// - Complexity: two hashes, some 80 ns.
  func pseudonym(of id: Identifier, lastTripEnded: Int64, at time: Timestamp) -> UInt64 {
    var hash = SipHash(key)
    for index in 0..<(id.text.count + 7) / 8 { hash.combine(id.text.word(index)) }
    hash.combine(UInt64(bitPattern: PublicAudience.hour(of: time)))
    hash.combine(UInt64(bitPattern: lastTripEnded))
    return hash.finished(rest: 2, count: 1)
  }

  /// The hour that pseudonyms belong to, counted from 1970.
  static func hour(of time: Timestamp) -> Int64 { time.milliseconds / nameMilliseconds }

  /// Orders drivers at equal distances within one search. It differs from search to search, so the choice at a limit
  /// does not identify a driver.
  func tieBreak(search number: UInt64, at uptime: Int64) -> UInt64 {
    var hash = SipHash(key)
    hash.combine(number)
    hash.combine(UInt64(bitPattern: uptime))
    return hash.finished(rest: 3, count: 1)
  }

  /// A pseudonym as an id: `p` and 13 characters of the geohash alphabet.
  static func name(_ pseudonym: UInt64) -> Identifier {
    var bytes = [UInt8(ascii: "p")]
    bytes.reserveCapacity(14)
    for shift in stride(from: UInt64(60), through: 0, by: -5) {
      bytes.append(digits[Int(truncatingIfNeeded: pseudonym >> shift) & 31])
    }
    guard let id = unsafe bytes.withUnsafeBytes({ unsafe Identifier($0) }) else {
      preconditionFailure("letters and digits are an id")
    }
    return id
  }

  private static let digits = Array("0123456789bcdefghjkmnpqrstuvwxyz".utf8)
}

/// Fields of some 20 by 20 m all over the Earth.
///
/// They are halves of geohash cells of 8 characters, so a position and the middle of its field are in the same cell of
/// any size. Rows are 19.1 m high. A field is 14–19 m wide up to 41° of latitude and 14–29 m up to 60°; beyond,
/// meridians come closer than cells can follow.
enum PublicGrid {
  /// The latitude (degrees) from which a field is as wide as its cell of 8 characters.
  private static let wideFrom = 41.4
  /// Metres from a coordinate to the middle of its field, at most: half a field's diagonal, and rounding to 7 decimals.
  static let displacementMeters = 18.0

  /// Bits of a field's number: those of a cell of 8 characters, and one for its half.
  private static let bits: UInt64 = 41

  /// The number of the field of a coordinate, from its Morton key: the first 41 bits, the last one 0 where fields are
  /// as wide as cells.
  static func field(key: UInt64) -> UInt64 {
    let field = key >> (60 - bits)
    return isWide(cell(field)) ? field & ~1 : field
  }

  /// The middle of a field, to 7 decimals.
  static func middle(of field: UInt64) -> Coordinate {
    let cell = cell(field)
    let middle = cell.center
    guard !isWide(cell) else { return middle.published }
    let step = cell.widthDegrees / (field & 1 == 0 ? -4 : 4)
    return Coordinate(clampingLatitude: middle.latitude, wrappingLongitude: middle.longitude + step).published
  }

  /// The middle of the field of a coordinate, to 7 decimals.
  static func snapped(_ coordinate: Coordinate) -> Coordinate {
    middle(of: field(key: GridPoint(coordinate).mortonCode))
  }

  private static func cell(_ field: UInt64) -> GeohashCell {
    guard let cell = GeohashCell(bits: field >> 1, precision: 8) else {
      preconditionFailure("40 bits are 8 characters")
    }
    return cell
  }

  /// All fields of a row are equally wide.
  private static func isWide(_ cell: GeohashCell) -> Bool { abs(cell.center.latitude) >= wideFrom }
}
