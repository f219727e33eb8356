// The thresholds of trips' notices: when the driver is near, what counts as a gap, when an ETA is published. They are
// passed in, so that operators and tests can set them. protocol/trips.md describes their effect.

/// The thresholds of trips, by default the protocol's.
public struct TripRules: Sendable, Equatable {
  // MARK: The summary

  /// A longer pause between two fixes is a gap. A driver that follows the hub's advice pauses for at most 30 s, and one
  /// that pauses for this long is about to become offline.
  public var gapSeconds = 60.0

  // MARK: The driver's pace

  /// The time constant of a driver's average speed: some traffic lights, not a whole trip.
  public var paceSeconds = 120.0
  /// The assumed speed of an unknown driver (m/s): 29 km/h, a car in a town; and the seconds of driving that it counts
  /// for. Its weight falls with observations, to nothing after `paceSeconds`.
  public var firstPace = 8.0
  public var firstPaceSeconds = 20.0
  /// The least speed (m/s) of an ETA, so that it does not explode at a stop: walking.
  public var slowestPace = 1.5

  // MARK: ETAs

  /// An ETA is published again when a reader's countdown is wrong by more than so many seconds, or this fraction of the
  /// rest where that is more, up to the last of these. These are a fifth below the protocol's promise
  /// (protocol/trips.md), which leaves the rest to the estimate.
  public var etaErrorSeconds = 4.0
  public var etaErrorFraction = 0.04
  public var etaErrorCapSeconds = 60.0
  /// The least time between two of them, in seconds.
  public var etaIntervalSeconds = 5.0

  // MARK: Near the pickup and the dropoff

  /// The driver is arriving when this near, by its ETA or by great-circle distance, whichever is first.
  public var arrivingSeconds = 120.0
  public var arrivingMeters = 300.0
  /// The driver has arrived when it has been within the radius for the dwell time; a stay ends farther out than it
  /// begins, so that a wandering position does not restart it.
  public var arrivedMeters = 50.0
  public var leftMeters = 75.0
  public var dwellSeconds = 15.0

  // MARK: The route

  /// The driver has left the route after so many consecutive fixes farther from it than this …
  public var offRouteMeters = 25.0
  public var offRouteFixes = 3
  /// … and has returned after so many consecutive fixes within this.
  public var onRouteMeters = 15.0
  public var onRouteFixes = 2
  /// A route that ends farther than this from the dropoff is not followed.
  public var routeEndMeters = 10_000.0

  public init() {}
}
