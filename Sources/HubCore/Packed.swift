// Optionals that take no more bytes than their values: in the records of which there are a million, an `Int64?` takes
// 16 bytes with its padding.
import HubGeo
import HubMessages

/// A type with a value that never occurs, which stands for nil.
protocol HasSpareValue: BitwiseCopyable, Equatable, Sendable {
  static var spare: Self { get }
}

/// A stored optional in the bytes of its value.
@propertyWrapper
struct Packed<Value: HasSpareValue>: BitwiseCopyable, Equatable, Sendable {
  private var value = Value.spare

  init() {}
  init(wrappedValue: Value?) { value = wrappedValue ?? .spare }

  var wrappedValue: Value? {
    @inline(__always) get { value == .spare ? nil : value }
    @inline(__always) set { value = newValue ?? .spare }
  }
}

/// Of times: an uptime, or a clock's milliseconds.
extension Int64: HasSpareValue { static var spare: Int64 { .min } }
extension Timestamp: HasSpareValue { static var spare: Timestamp { Timestamp(milliseconds: .min) } }
/// Of lengths and speeds, which are finite.
extension Double: HasSpareValue { static var spare: Double { -.infinity } }
extension Handle: HasSpareValue { static var spare: Handle { Handle(index: .max, generation: 0) } }
extension SessionRef: HasSpareValue { static var spare: SessionRef { .nobody } }

/// A stored optional index of a table, in four bytes.
@propertyWrapper
struct PackedIndex: BitwiseCopyable, Sendable {
  private var value: Int32 = -1

  init() {}

  var wrappedValue: Int? {
    @inline(__always) get { value < 0 ? nil : Int(value) }
    @inline(__always) set { value = newValue.map { Int32($0) } ?? -1 }
  }
}

/// A stored optional coordinate, in the bytes of one.
@propertyWrapper
struct PackedPlace: BitwiseCopyable, Equatable, Sendable {
  /// Degrees; `spare`, which no coordinate has, for nil.
  private var latitude = Double.spare
  private var longitude = 0.0

  init() {}
  init(wrappedValue: Coordinate?) { self.wrappedValue = wrappedValue }

  var wrappedValue: Coordinate? {
    @inline(__always) get { Coordinate(latitude: latitude, longitude: longitude) }
    @inline(__always) set {
      latitude = newValue?.latitude ?? .spare
      longitude = newValue?.longitude ?? 0
    }
  }
}
