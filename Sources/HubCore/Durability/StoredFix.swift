// One fix in a journal: what the phone measured and what the hub published, in 56 bytes at fixed offsets.
//
// Integers, because journals are read for years and on other machines, and take half of a Double's bytes. The
// resolutions below are finer than any phone's measurement; those of published values are the protocol's, so a
// published position is restored exactly. The largest number of each width means "absent"; larger values are stored as
// the largest but one.
//
//     at  bytes                                        at  bytes
//      0  8  timestamp, ms since 1970                  37  1  source, 255 for none
//      8  4  latitude, 1e-7° (1.1 cm)                  38  1  disposition
//     12  4  longitude, 1e-7°                          39  1  confidence
//     16  4  accuracy, mm                              40  4  published latitude, 1e-7°
//     20  4  speed, mm/s                               44  4  published longitude, 1e-7°
//     24  4  heading, 1e-7°                            48  4  published accuracy, cm
//     28  4  altitude, mm (signed; the least: none)    52  2  published speed, cm/s
//     32  2  heading accuracy, 0.01°                   54  2  published heading, 0.01°
//     34  2  speed accuracy, cm/s
//     36  1  battery, 0.5 %
public import HubGeo
public import HubMessages

/// A fix as it was stored.
public struct StoredFix: Sendable, Equatable {
  /// The outcome of a fix.
  public enum Disposition: UInt8, Sendable {
    /// Published when it came.
    case live = 1
    /// Not newer than the driver's newest: part of the track, not published.
    case history = 2
    /// A leap ahead in time, held back: not published, unless a `confirmed` one with the same timestamp follows.
    case held = 3
    /// The fix with this timestamp was held back and is published now. `measured` has only the published coordinate;
    /// the measurement is in the `held` one.
    case confirmed = 4
  }

  public var disposition: Disposition
  public var measured: Fix
  /// The published position; nil for history and held fixes.
  public var position: StoredPosition?

  public init(disposition: Disposition, measured: Fix, position: StoredPosition?) {
    self.disposition = disposition
    self.measured = measured
    self.position = position
  }
}

/// A position as it was published.
public struct StoredPosition: Sendable, Equatable {
  public var coordinate: Coordinate
  public var speed: Double?
  public var heading: Double?
  public var accuracy: Double
  public var confidence: Confidence

  public init(
    coordinate: Coordinate, speed: Double?, heading: Double?, accuracy: Double, confidence: Confidence
  ) {
    self.coordinate = coordinate
    self.speed = speed
    self.heading = heading
    self.accuracy = accuracy
    self.confidence = confidence
  }
}

extension Position {
  /// The position as published, at the time `published` where that differs from its own. Its turn rate is not stored,
  /// nor whether its coordinate was extrapolated.
  init(_ stored: StoredPosition, at timestamp: Timestamp, published: Timestamp? = nil) {
    self.init(
      coordinate: stored.coordinate, speed: stored.speed, heading: stored.heading, accuracy: stored.accuracy,
      confidence: stored.confidence, timestamp: timestamp)
    if let published { self.published = published }
  }
}

// MARK: - Bytes

extension StoredFix {
  /// Bytes of one fix.
  static let size = 56

  /// Writes a fix. About 100 instructions; allocates nothing.
  @inline(__always)
  static func write(
    _ fix: Fix, _ disposition: Disposition, _ position: Position?, into bytes: UnsafeMutableRawBufferPointer
  ) {
    precondition(bytes.count >= size)
    func store(_ number: some FixedWidthInteger & BitwiseCopyable, _ offset: Int) {
      unsafe bytes.storeBytes(of: number.littleEndian, toByteOffset: offset, as: type(of: number))
    }
    store(fix.timestamp.milliseconds, 0)
    store(StoredNumber.degrees(fix.coordinate.latitude), 8)
    store(StoredNumber.degrees(fix.coordinate.longitude), 12)
    store(StoredNumber.scaled(fix.accuracy, by: 1000, UInt32.self), 16)
    store(StoredNumber.scaled(fix.speed, by: 1000, UInt32.self), 20)
    store(StoredNumber.scaled(fix.heading, by: 1e7, UInt32.self), 24)
    store(StoredNumber.altitude(fix.altitude), 28)
    store(StoredNumber.scaled(fix.headingAccuracy, by: 100, UInt16.self), 32)
    store(StoredNumber.scaled(fix.speedAccuracy, by: 100, UInt16.self), 34)
    store(StoredNumber.scaled(fix.batteryLevel, by: 200, UInt8.self), 36)
    store(fix.source?.rawValue ?? UInt8.max, 37)
    store(disposition.rawValue, 38)
    guard let position else {
      for offset in stride(from: 40, to: size, by: 8) { store(UInt64(0), offset) }
      return store(UInt8(0), 39)
    }
    unsafe position.write(into: bytes, at: 39)
  }

  /// Reads a fix from the first 56 of `bytes`; nil where they are no valid one.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= StoredFix.size else { return nil }
    func load<Number: FixedWidthInteger & BitwiseCopyable>(_: Number.Type, _ offset: Int) -> Number {
      unsafe Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
    guard let (disposition, timestamp, coordinate) = unsafe StoredFix.head(of: bytes) else { return nil }
    let altitude = load(Int32.self, 28)
    self.disposition = disposition
    measured = unsafe Fix(
      coordinate: coordinate, timestamp: timestamp,
      accuracy: StoredNumber.value(load(UInt32.self, 16), per: 1000),
      heading: StoredNumber.value(load(UInt32.self, 24), per: 1e7),
      speed: StoredNumber.value(load(UInt32.self, 20), per: 1000),
      altitude: altitude == .min ? nil : Double(altitude) / 1000,
      headingAccuracy: StoredNumber.value(load(UInt16.self, 32), per: 100),
      speedAccuracy: StoredNumber.value(load(UInt16.self, 34), per: 100),
      source: FixSource(rawValue: bytes[37]),
      batteryLevel: StoredNumber.value(bytes[36], per: 200))
    guard unsafe StoredFix.isPublished(bytes) else { return }
    guard let published = unsafe StoredFix.position(of: bytes) else { return nil }
    position = published
  }

  /// Whether 56 bytes are a fix that `init` accepts; faster.
  static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    unsafe head(of: bytes) != nil && (!isPublished(bytes) || position(of: bytes) != nil)
  }

  /// Disposition, time and measured coordinate from the 56 bytes of a fix; nil where one of them is invalid.
  private static func head(of bytes: UnsafeRawBufferPointer) -> (Disposition, Timestamp, Coordinate)? {
    let timestamp = unsafe Timestamp(milliseconds: milliseconds(of: bytes))
    guard let disposition = unsafe Disposition(rawValue: bytes[38]), Timestamp.accepted.contains(timestamp),
      let coordinate = unsafe StoredNumber.coordinate(
        Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int32.self)),
        Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: 12, as: Int32.self)))
    else { return nil }
    return (disposition, timestamp, coordinate)
  }

  /// The published position, of the 56 bytes of a published fix.
  static func position(of bytes: UnsafeRawBufferPointer) -> StoredPosition? { unsafe StoredPosition(bytes, at: 39) }

  /// Whether a fix was published, of its 56 bytes.
  static func isPublished(_ bytes: UnsafeRawBufferPointer) -> Bool {
    unsafe bytes[38] == Disposition.live.rawValue || bytes[38] == Disposition.confirmed.rawValue
  }

  /// The timestamp alone (ms since 1970), of the 56 bytes of a fix.
  static func milliseconds(of bytes: UnsafeRawBufferPointer) -> Int64 {
    unsafe Int64(littleEndian: bytes.loadUnaligned(as: Int64.self))
  }
}

extension Position {
  /// Writes what is published of it, the 17 bytes of a `StoredPosition`.
  @inline(__always)
  func write(into bytes: UnsafeMutableRawBufferPointer, at start: Int) {
    precondition(start + StoredPosition.size <= bytes.count)
    func store(_ number: some FixedWidthInteger & BitwiseCopyable, _ offset: Int) {
      unsafe bytes.storeBytes(of: number.littleEndian, toByteOffset: start + offset, as: type(of: number))
    }
    store(confidence.rawValue, 0)
    store(StoredNumber.degrees(coordinate.latitude), 1)
    store(StoredNumber.degrees(coordinate.longitude), 5)
    store(StoredNumber.scaled(accuracy, by: 100, UInt32.self), 9)
    store(StoredNumber.scaled(speed, by: 100, UInt16.self), 13)
    store(StoredNumber.scaled(heading, by: 100, UInt16.self), 15)
  }
}

extension StoredPosition {
  /// Bytes of one: those from 39 on of a fix.
  static let size = 17

  /// Reads a position from 17 of `bytes`; nil where they are no valid one.
  init?(_ bytes: UnsafeRawBufferPointer, at start: Int) {
    guard start + StoredPosition.size <= bytes.count else { return nil }
    func load<Number: FixedWidthInteger & BitwiseCopyable>(_: Number.Type, _ offset: Int) -> Number {
      unsafe Number(littleEndian: bytes.loadUnaligned(fromByteOffset: start + offset, as: Number.self))
    }
    guard let confidence = unsafe Confidence(rawValue: bytes[start]),
      let place = StoredNumber.coordinate(load(Int32.self, 1), load(Int32.self, 5)),
      let accuracy = StoredNumber.value(load(UInt32.self, 9), per: 100)
    else { return nil }
    self.init(
      coordinate: place, speed: StoredNumber.value(load(UInt16.self, 13), per: 100),
      heading: StoredNumber.value(load(UInt16.self, 15), per: 100), accuracy: accuracy, confidence: confidence)
  }
}

/// Numbers in their stored form: integers in a unit each.
private enum StoredNumber {
  @inline(__always)
  static func degrees(_ value: Double) -> Int32 { Int32(rounded(value * 1e7)) }

  static func coordinate(_ latitude: Int32, _ longitude: Int32) -> Coordinate? {
    Coordinate(latitude: Double(latitude) / 1e7, longitude: Double(longitude) / 1e7)
  }

  @inline(__always)
  static func scaled<Number: FixedWidthInteger & UnsignedInteger>(
    _ value: Double?, by unit: Double, _: Number.Type
  ) -> Number {
    guard let value else { return .max }
    let largest = Double(UInt64(Number.max) - 1)
    // Through an Int64: the generic conversion of a Double takes a hundred instructions.
    return Number(truncatingIfNeeded: Int64(rounded(min(max(value * unit, 0), largest))))
  }

  @inline(__always)
  static func altitude(_ value: Double?) -> Int32 {
    guard let value else { return .min }
    return Int32(rounded(min(max(value * 1000, Double(Int32.min + 1)), Double(Int32.max))))
  }

  @inline(__always)
  static func value<Number: FixedWidthInteger>(_ number: Number, per unit: Double) -> Double? {
    number == .max ? nil : Double(number) / unit
  }

  /// `value` to the nearest whole number, as `TrackMath.rounded` computes it.
  @inline(__always)
  private static func rounded(_ value: Double) -> Double { value + 0x1.8p52 - 0x1.8p52 }
}
