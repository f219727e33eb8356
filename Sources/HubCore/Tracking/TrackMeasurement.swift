// A fix as the filter sees it: small enough to store one for each driver.
import HubGeo
import HubMessages

/// The members of a `Fix` that tracking uses, 36 bytes. Absent values are NaN. Float's precision (1e-7 of the value)
/// exceeds that of any phone, and each tracker stores one of these.
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

  /// Takes usable values. A value that no receiver can measure counts as absent; the fix is not refused for it.
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
