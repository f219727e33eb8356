// The numbers that decide when a driver is in a fence and what it is told: one place, as TripRules.swift.
// protocol/fences.md says what follows from them.
import HubMessages

/// What holds at fences; the protocol's values by default.
public struct FenceRules: Sendable, Equatable {
  /// Metres: a position that is less sure of its place (68 %) decides nothing.
  public var accuracyMeters = 50.0
  /// A stay ends this part of the fence's size outside of its border, as far as that is not more than `exitMostMeters`:
  /// a tenth of a country is no hysteresis but another fence.
  public var exitPart = 0.1
  public var exitMostMeters = 1_000.0
  /// … and never nearer than this, nor than the position's accuracy.
  public var exitMeters = 20.0
  /// A driver is told again that it is speeding when it was at this part of the limit or below since, and not sooner
  /// than this after the last time.
  public var speedingEndsPart = 0.9
  public var speedingSeconds = 60.0

  public init() {}

  /// Metres outside of a border of a shape of this size where a stay in it ends, for an exact position.
  func exitMeters(size: Double) -> Double { max(exitMeters, min(size * exitPart, exitMostMeters)) }
}
