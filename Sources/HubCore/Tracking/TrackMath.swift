// The few mathematical functions of the C library that tracking needs.
//
// Swift's standard library has square roots but no trigonometry. This is the one file of the tracker that imports
// Glibc; it uses pure functions of numbers only, so the module still does no I/O and reads no clock.
import Glibc
import HubGeo

/// Trigonometry in degrees, logarithm, exponential function and rounding, as the tracker uses them.
enum TrackMath {
  static let radiansPerDegree = Double.pi / 180

  @inline(__always) static func sine(degrees: Double) -> Double { sin(degrees * radiansPerDegree) }

  @inline(__always) static func cosine(degrees: Double) -> Double { cos(degrees * radiansPerDegree) }

  /// The direction of (east, north) in degrees clockwise from north, 0 ≤ result < 360.
  @inline(__always) static func bearing(east: Double, north: Double) -> Double {
    let degrees = atan2(east, north) / radiansPerDegree
    let turned = degrees < 0 ? degrees + 360 : degrees
    return turned < 360 ? turned : 0  // −1e-17 + 360 rounds to 360
  }

  @inline(__always) static func logarithm(_ value: Double) -> Double { log(value) }

  @inline(__always) static func exponential(_ value: Double) -> Double { exp(value) }

  /// A difference of directions by the short way round.
  @inline(__always) static func wrapped(_ degrees: Float) -> Float {
    if degrees > 180 { return degrees - 360 }
    if degrees < -180 { return degrees + 360 }
    return degrees
  }

  /// A difference of longitudes by the short way round: −180 ≤ result ≤ 180 for arguments of valid longitudes.
  @inline(__always) static func wrapped(_ longitude: Double) -> Double {
    if longitude > 180 { return longitude - 360 }
    if longitude < -180 { return longitude + 360 }
    return longitude
  }

  /// `value` to the nearest multiple of 1 / `unit`, as the Double nearest to that decimal.
  ///
  /// Adds and subtracts 1.5 · 2^52, where a Double's last bit is 1: `rounded()` is a call on x86-64 without SSE
  /// 4.1.
  @inline(__always) static func rounded(_ value: Double, to unit: Double) -> Double {
    (value * unit + 0x1.8p52 - 0x1.8p52) / unit
  }
}

extension Coordinate {
  /// To 1e-7°, as coordinates are written.
  @inline(__always) var published: Coordinate {
    let (latitude, longitude) = (TrackMath.rounded(latitude, to: 1e7), TrackMath.rounded(longitude, to: 1e7))
    guard let rounded = Coordinate(latitude: latitude, longitude: longitude) else {
      preconditionFailure("rounding can't leave a range of whole degrees")
    }
    return rounded
  }
}
