// The thresholds of fences, in one file like TripRules.swift. protocol/fences.md describes their effect.
import HubMessages

/// The thresholds of fences, by default the protocol's.
public struct FenceRules: Sendable, Equatable {
  /// Metres: a position with a larger accuracy radius (68 %) decides nothing.
  public var accuracyMeters = 50.0
  /// A stay ends beyond the border by this fraction of the fence's size, up to `exitCapMeters`: a tenth of a country
  /// is no hysteresis but another fence.
  public var exitFraction = 0.1
  public var exitCapMeters = 1_000.0
  /// … and by at least this, and by the position's accuracy radius.
  public var exitMeters = 20.0
  /// A driver is notified of speeding again after it was at or below this fraction of the limit, and not sooner than
  /// this after the last time.
  public var speedingResetFraction = 0.9
  public var speedingSeconds = 60.0

  public init() {}

  /// Metres beyond the border of a shape of this size where a stay ends, for an exact position.
  func exitMeters(size: Double) -> Double { max(exitMeters, min(size * exitFraction, exitCapMeters)) }
}
