// Why a fix is refused, and the limits that an operator may set.
public import HubMessages

/// Why a fix was refused. Raw values are dense, so that counters can be an array.
public enum FixRefusal: UInt8, Error, CaseIterable {
  /// The phone states an accuracy over `TrackingRules.maximumAccuracyMeters`.
  case inaccurate
  /// Within `TrackingRules.nullIslandDegrees` of 0°, 0°: what broken software sends for "no position".
  case nullIsland
  /// Too far from the track, by its statistics (see `MotionFilter`).
  case gated
  /// So far away that the driver would have moved faster than `TrackingRules.maximumSpeed`.
  case tooFast

  /// The wire's code for it.
  public var code: ErrorCode {
    switch self {
    case .inaccurate, .nullIsland, .gated, .tooFast: .implausibleLocation
    }
  }

  /// The message for the sender.
  var explanation: String {
    switch self {
    case .inaccurate: "the fix's accuracy radius is too large to be of use"
    case .nullIsland: "the fix is at 0, 0, which is what broken software sends for no position"
    case .gated: "the fix is too far from where the track says the driver must be"
    case .tooFast: "the fix implies a speed that no vehicle has"
    }
  }

  /// The label of its counter.
  public var name: StaticString {
    switch self {
    case .inaccurate: "inaccurate"
    case .nullIsland: "null_island"
    case .gated: "gated"
    case .tooFast: "too_fast"
    }
  }
}

/// The limits that an operator may set; the same for all drivers, so they are passed in and not stored.
public struct TrackingRules: Sendable, Equatable {
  /// Fixes with a larger reported accuracy (metres, 68 %) are refused.
  public var maximumAccuracyMeters: Double
  /// Metres per second. No vehicle is faster; a position that implies more needs four fixes that agree, or two after
  /// 20 s.
  public var maximumSpeed: Double
  /// How much further than the hub's clock a fix may step ahead before it is held, in milliseconds.
  public var leapMilliseconds: Int64

  public init(
    maximumAccuracyMeters: Double = 100, maximumSpeed: Double = 90, leapMilliseconds: Int64 = 600_000
  ) {
    self.maximumAccuracyMeters = maximumAccuracyMeters
    self.maximumSpeed = maximumSpeed
    self.leapMilliseconds = leapMilliseconds
  }

  public static let standard = TrackingRules()

  /// 5.6 m: values that round to 0.0000, since some software computes its "no position" from sums.
  public static let nullIslandDegrees = 0.000_05
}
