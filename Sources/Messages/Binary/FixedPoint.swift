// Fixed-point numbers of binary messages: whole steps of a unit. What the hub publishes lies on these steps already (it
// is rounded where it is made), and a division by the same power of ten gives back the same double that JSON's decimal
// gives.

enum FixedPoint {
  /// Steps in a metre, a metre per second, a degree of heading.
  static let hundredths = 100.0
  /// Steps in a degree of latitude or longitude: 1.1 cm.
  static let degrees = 1e7
  static let milliseconds = 1000.0

  /// More than anything that is measured. Up to here a number of steps is the same again after a division and a
  /// multiplication, which are off by half a unit in the last place each: by a quarter of a step together.
  private static let limit = 0x1p50

  /// The nearest number of steps of a value that can't be negative; what is beyond the range goes to its end.
  @inline(__always)
  static func count(_ value: Double, _ steps: Double) -> UInt64 {
    let scaled = value * steps + 0.5
    guard scaled >= 1 else { return 0 }  // NaN too
    return scaled < limit ? UInt64(scaled) : UInt64(limit)
  }

  /// The nearest number of steps of a value of either sign.
  @inline(__always)
  static func signed(_ value: Double, _ steps: Double) -> Int64 {
    let magnitude = Int64(count(value.magnitude, steps))
    return value < 0 ? -magnitude : magnitude
  }
}
