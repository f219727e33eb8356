// Fixed-point numbers of binary messages: integer steps of a unit. The hub's published values are rounded to these
// steps, and dividing by the same power of ten gives the same double as JSON's decimal.

enum FixedPoint {
  /// Steps in a metre, a metre per second, a degree of heading.
  static let hundredths = 100.0
  /// Steps in a degree of latitude or longitude: 1.1 cm.
  static let degrees = 1e7
  static let milliseconds = 1000.0

  /// The nearest number of steps of a non-negative value, at most 2^50, which is beyond anything measured. Up to there
  /// it survives a division and a multiplication, which err by half a unit in the last place each, together by a
  /// quarter of a step.
  @inline(__always)
  static func count(_ value: Double, _ steps: Double) -> UInt64 {
    let scaled = value * steps + 0.5
    guard scaled >= 1 else { return 0 }  // NaN too
    return UInt64(min(scaled, 0x1p50))
  }

  /// The nearest number of steps of a signed value.
  @inline(__always)
  static func signed(_ value: Double, _ steps: Double) -> Int64 {
    let magnitude = Int64(count(value.magnitude, steps))
    return value < 0 ? -magnitude : magnitude
  }
}
