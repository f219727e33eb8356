// The values of records: each as bytes, and read back with checks; invalid values are refused.
import HubBytes
import HubGeo
import HubMessages

/// A value that has one form in records.
protocol Recorded {
  func write(into bytes: inout ByteBuffer)
  init(from reader: inout RecordReader) throws(RecordError)
}

extension ByteBuffer {
  /// Appends values, one behind the other.
  mutating func record<each Value: Recorded>(_ values: repeat each Value) {
    repeat (each values).write(into: &self)
  }
}

extension RecordReader {
  /// The next value; its type is that of the assignment. Where that is an optional and the record has the value itself,
  /// without the byte for its presence, name the type (`try read() as FenceNotice`).
  mutating func read<Value: Recorded>() throws(RecordError) -> Value { try Value(from: &self) }

  /// A counter; values of 2^62 and more are refused.
  mutating func count() throws(RecordError) -> UInt64 {
    let count: UInt64 = try read()
    guard count < 1 << 62 else { throw failure(.number) }
    return count
  }

  /// Metres.
  mutating func distance() throws(RecordError) -> Double {
    let meters: Double = try read()
    guard meters >= 0, meters < 1e9 else { throw failure(.distance) }
    return meters
  }

  mutating func finite(in range: ClosedRange<Double>) throws(RecordError) -> Double {
    let value: Double = try read()
    guard range.contains(value) else { throw failure(.number) }
    return value
  }
}

// MARK: Numbers

extension Recorded where Self: FixedWidthInteger & BitwiseCopyable {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) { unsafe withUnsafeBytes(of: littleEndian) { unsafe bytes.append($0) } }

  init(from reader: inout RecordReader) throws(RecordError) {
    unsafe self.init(littleEndian: try reader.take(MemoryLayout<Self>.size).loadUnaligned(as: Self.self))
  }
}

extension UInt8: Recorded {}
extension UInt16: Recorded {}
extension UInt32: Recorded {}
extension UInt64: Recorded {}
extension Int64: Recorded {}

extension Bool: Recorded {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) { bytes.append(UInt8(self ? 1 : 0)) }

  init(from reader: inout RecordReader) throws(RecordError) {
    switch try reader.read() as UInt8 {
    case 0: self = false
    case 1: self = true
    case _: throw reader.failure(.optional)
    }
  }
}

/// Bit for bit; the reader checks the range.
extension Double: Recorded {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) { bitPattern.write(into: &bytes) }

  init(from reader: inout RecordReader) throws(RecordError) { self.init(bitPattern: try reader.read()) }
}

// MARK: Words

extension Recorded where Self: RawRepresentable, RawValue == UInt8 {
  func write(into bytes: inout ByteBuffer) { bytes.append(rawValue) }

  init(from reader: inout RecordReader) throws(RecordError) {
    guard let word = Self(rawValue: try reader.read()) else { throw reader.failure(.status) }
    self = word
  }
}

extension RecordKind: Recorded {}
extension Role: Recorded {}
extension TripStatus: Recorded {}
extension TripTarget: Recorded {}
extension ETABasis: Recorded {}
extension DriverStatus: Recorded {}
extension Notification.Kind: Recorded {}
extension Fence.Kind: Recorded {}
extension FenceNotice.Reason: Recorded {}

// MARK: Texts

extension InlineText: Recorded {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) {
    UInt16(count).write(into: &bytes)
    unsafe withBytes { unsafe bytes.append($0) }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    guard let text = unsafe InlineText(try reader.takeText()) else { throw reader.failure(.text) }
    self = text
  }
}

extension Identifier: Recorded {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) { text.write(into: &bytes) }

  init(from reader: inout RecordReader) throws(RecordError) {
    guard let identifier = unsafe Identifier(try reader.takeText()) else { throw reader.failure(.identifier) }
    self = identifier
  }
}

extension MessageID: Recorded {
  func write(into bytes: inout ByteBuffer) { text.write(into: &bytes) }

  init(from reader: inout RecordReader) throws(RecordError) {
    guard let id = unsafe MessageID(try reader.takeText()) else { throw reader.failure(.text) }
    self = id
  }
}

/// A text of any length: its length in four bytes, then UTF-8.
extension String: Recorded {
  func write(into bytes: inout ByteBuffer) {
    UInt32(utf8.count).write(into: &bytes)
    bytes.append(utf8: self)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    guard let text = unsafe String(validating: try reader.take(Int(try reader.read() as UInt32)), as: UTF8.self) else {
      throw reader.failure(.text)
    }
    self = text
  }
}

// MARK: Times and places

extension Timestamp: Recorded {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) { milliseconds.write(into: &bytes) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(milliseconds: try reader.read())
    guard Timestamp.accepted.contains(self) else { throw reader.failure(.timestamp) }
  }
}

extension Coordinate: Recorded {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) {
    latitude.write(into: &bytes)
    longitude.write(into: &bytes)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    guard let coordinate = Coordinate(latitude: try reader.read(), longitude: try reader.read()) else {
      throw reader.failure(.coordinate)
    }
    self = coordinate
  }
}

extension Route: Recorded {
  func write(into bytes: inout ByteBuffer) { polyline.write(into: &bytes) }

  init(from reader: inout RecordReader) throws(RecordError) {
    let polyline: String = try reader.read()
    do throws(Route.Fault) {
      try self.init(polyline: polyline)
    } catch {
      throw reader.failure(.text)
    }
  }
}

/// Channels with events: a letter and an id, which is empty for a channel without one.
extension Channel: Recorded {
  func write(into bytes: inout ByteBuffer) {
    switch self {
    case .trip(let id): bytes.record(UInt8(ascii: "t"), id)
    case .driver(let id): bytes.record(UInt8(ascii: "d"), id)
    case .fence(let id): bytes.record(UInt8(ascii: "f"), id)
    case .trips: bytes.record(UInt8(ascii: "a"), UInt16(0))
    case .area, .nearby, .box, .counts, .countsBlock, .fleet, .raw, .stats:
      preconditionFailure("channels of state have no events")
    }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    switch Unicode.Scalar(try reader.read() as UInt8) {
    case "t": self = .trip(try reader.read())
    case "d": self = .driver(try reader.read())
    case "f": self = .fence(try reader.read())
    case "a":
      guard try reader.read() as UInt16 == 0 else { throw reader.failure(.channel) }
      self = .trips
    case _: throw reader.failure(.channel)
    }
  }
}

// MARK: Several and none

/// 0, or 1 and the value.
extension Optional: Recorded where Wrapped: Recorded {
  @inline(__always)
  func write(into bytes: inout ByteBuffer) {
    (self != nil).write(into: &bytes)
    if let self { self.write(into: &bytes) }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    self = try reader.read() ? .some(try reader.read()) : nil
  }
}

/// A count of one byte, and the values.
extension Array: Recorded where Element: Recorded {
  func write(into bytes: inout ByteBuffer) {
    UInt8(count).write(into: &bytes)
    for element in self { element.write(into: &bytes) }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    self = []
    for _ in 0..<(try reader.read() as UInt8) { append(try reader.read()) }
  }
}
