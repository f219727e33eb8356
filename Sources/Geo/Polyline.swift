// Google's encoded polyline: each coordinate's difference from the one before, in 1e-5 degrees, zigzag, in groups of
// five bits with bit 5 for "more follows", plus 63 to be printable.
// Source: developers.google.com/maps/documentation/utilities/polylinealgorithm

/// What is wrong with an encoded polyline; offsets count bytes from its start.
public enum PolylineError: Error, Equatable, Sendable {
  /// It ends in the middle of a number, or with a latitude that has no longitude.
  case truncated(at: Int)
  /// Not one of the characters ? to ~.
  case invalidByte(UInt8, at: Int)
  /// A number of more than 35 bits (7 groups of five), which no coordinate needs.
  case numberTooLong(at: Int)
  /// A point that is not on Earth.
  case outOfRange(at: Int)
  /// More points than the caller allows.
  case tooManyPoints(limit: Int)
}

/// Encoded polylines: the `route` of a trip.
public enum Polyline {
  /// The places of an encoded polyline, at most `limit`.
  ///
  /// `precision` is the number of decimals, 0…7 (a precondition): 5 for Google's form, 6 for OSRM's and Valhalla's.
  /// Empty text is an empty line. The cost is linear in the text; memory is bounded by `limit`.
  public static func decode(
    utf8 text: some Sequence<UInt8>, precision: Int = 5, limit: Int
  ) throws(PolylineError) -> [Coordinate] {
    let scale = factor(precision)
    var points: [Coordinate] = []
    var latitude: Int64 = 0
    var longitude: Int64 = 0
    var bytes = text.makeIterator()
    var offset = 0
    while let first = bytes.next() {
      guard points.count < limit else { throw .tooManyPoints(limit: limit) }
      let start = offset
      latitude += try number(first: first, &bytes, &offset)
      guard let second = bytes.next() else { throw .truncated(at: offset) }
      longitude += try number(first: second, &bytes, &offset)
      guard let point = Coordinate(latitude: Double(latitude) / scale, longitude: Double(longitude) / scale)
      else { throw .outOfRange(at: start) }
      points.append(point)
    }
    return points
  }

  /// The places of an encoded polyline, at most `limit`.
  public static func decode(_ text: String, precision: Int = 5, limit: Int) throws(PolylineError) -> [Coordinate] {
    try decode(utf8: text.utf8, precision: precision, limit: limit)
  }

  /// The encoded form; each place is rounded to `precision` decimals (0…7, a precondition), halves away from zero.
  public static func encode(_ points: some Sequence<Coordinate>, precision: Int = 5) -> String {
    let scale = factor(precision)
    var bytes: [UInt8] = []
    var latitude: Int64 = 0
    var longitude: Int64 = 0
    for point in points {
      let newLatitude = Int64((point.latitude * scale).rounded())
      let newLongitude = Int64((point.longitude * scale).rounded())
      append(newLatitude - latitude, to: &bytes)
      append(newLongitude - longitude, to: &bytes)
      (latitude, longitude) = (newLatitude, newLongitude)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func factor(_ precision: Int) -> Double {
    precondition(precision >= 0 && precision <= 7)
    var factor = 1.0
    for _ in 0..<precision { factor *= 10 }
    return factor
  }

  private static func number<I: IteratorProtocol<UInt8>>(
    first: UInt8, _ bytes: inout I, _ offset: inout Int
  ) throws(PolylineError) -> Int64 {
    var byte = first
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      guard byte >= 63, byte <= 126 else { throw .invalidByte(byte, at: offset) }
      guard shift < 35 else { throw .numberTooLong(at: offset) }  // 7 groups: ±180° at 7 decimals is 33 bits
      value |= UInt64((byte - 63) & 0x1F) << shift
      shift += 5
      offset += 1
      if byte - 63 < 0x20 { break }
      guard let next = bytes.next() else { throw .truncated(at: offset) }
      byte = next
    }
    // Zigzag: the lowest bit is the sign.
    let half = Int64(value >> 1)
    return value & 1 == 1 ? ~half : half
  }

  private static func append(_ difference: Int64, to bytes: inout [UInt8]) {
    var value = UInt64(bitPattern: difference << 1 ^ difference >> 63)
    while value >= 0x20 {
      bytes.append(UInt8(truncatingIfNeeded: value & 0x1F | 0x20) + 63)
      value >>= 5
    }
    bytes.append(UInt8(truncatingIfNeeded: value) + 63)
  }
}
