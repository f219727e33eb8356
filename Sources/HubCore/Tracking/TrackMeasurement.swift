// A fix as the filter sees it: small enough that one can be kept for each driver.
import HubGeo
import HubMessages

/// The members of a `Fix` that tracking uses, 36 bytes. What is absent is NaN: Float's precision (1e-7 of the value)
/// is far below what any phone measures, and there is one of these inside each tracker.
struct TrackMeasurement: Sendable, Equatable {
  var coordinate: Coordinate
  /// Of the fix, milliseconds since 1970.
  var milliseconds: Int64
  /// Metres, 68 %; NaN where absent or not positive.
  var accuracy: Float
  /// Metres per second, 0…`maximumSpeed`; NaN where absent or out of that range.
  var speed: Float
  /// Degrees, 0 ≤ heading < 360; NaN where absent or out of that range.
  var heading: Float

  /// Takes what is usable. A value no receiver can measure is as good as none, so it is dropped, not refused.
  init(_ fix: Fix, maximumSpeed: Double) {
    coordinate = fix.coordinate
    milliseconds = fix.timestamp.milliseconds
    accuracy = TrackMeasurement.kept(fix.accuracy) { $0 > 0 && $0.isFinite }
    speed = TrackMeasurement.kept(fix.speed) { $0 >= 0 && $0 <= maximumSpeed }
    heading = TrackMeasurement.kept(fix.heading) { $0 >= 0 && $0 < 360 }
  }

  @inline(__always)
  private static func kept(_ value: Double?, where isUsable: (Double) -> Bool) -> Float {
    guard let value, isUsable(value) else { return .nan }
    return Float(value)
  }
}
