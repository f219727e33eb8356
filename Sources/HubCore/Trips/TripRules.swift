// The numbers that decide what a trip's people are told: when the driver is near, what counts as a gap, how often an
// ETA is worth a message. One place, so that an operator's or a test's are passed in and none stands in the code.
// protocol/trips.md says what follows from them.

/// What holds on trips; the protocol's values by default.
public struct TripRules: Sendable, Equatable {
  // MARK: The summary

  /// A pause between two fixes that is longer is a gap. A driver that follows the hub's advice never pauses for longer
  /// than 30 s, and one that pauses for this long is about to be called offline.
  public var gapSeconds = 60.0

  // MARK: The driver's pace

  /// The time constant that a driver's speed is smoothed with: some traffic lights, not a whole trip.
  public var paceSeconds = 120.0
  /// Metres per second, of whom nothing is known yet: 29 km/h, a car in a town; and for how many seconds of driving
  /// that counts. It counts for less the more is known, and for nothing after `paceSeconds`.
  public var firstPace = 8.0
  public var firstPaceSeconds = 20.0
  /// Metres per second that an ETA reckons with at least, so that it does not explode at a standstill: walking.
  public var slowestPace = 1.5

  // MARK: ETAs

  /// An ETA is published again when one who counts down the last is wrong by more than so many seconds, or by more than
  /// this part of what is left where that is more, and by no more than the last of these. It is a fifth less than what
  /// is promised (protocol/trips.md), which leaves the rest to the estimate itself.
  public var etaErrorSeconds = 4.0
  public var etaErrorPart = 0.04
  public var etaErrorMostSeconds = 60.0
  /// Never sooner than this after the one before.
  public var etaIntervalSeconds = 5.0

  // MARK: Near the pickup and the dropoff

  /// The driver arrives when this near, by its ETA or as the crow flies, whichever comes first.
  public var arrivingSeconds = 120.0
  public var arrivingMeters = 300.0
  /// The driver is there when it has been within the radius for the dwell; a stay ends further out than it begins, so
  /// that a position that wanders does not start it again.
  public var arrivedMeters = 50.0
  public var leftMeters = 75.0
  public var dwellSeconds = 15.0

  // MARK: The route

  /// So many fixes in a row further than this from the route, and the driver has left it …
  public var offRouteMeters = 25.0
  public var offRouteFixes = 3
  /// … until so many in a row are within this.
  public var onRouteMeters = 15.0
  public var onRouteFixes = 2

  public init() {}
}
