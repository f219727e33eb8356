// How long until a driver reaches its target. A protocol, to allow for a road router: `TripLegs.estimate` alone chooses
// the type. Calls are static, since one is made with every fix.
import HubGeo
import HubMessages

/// The rest of a driver's way to its target.
struct Leg {
  var place: Coordinate
  var target: UnitVector
  /// Great-circle metres.
  var crowMeters: Double
  /// The driver's average speed in m/s; never 0.
  var pace: Double
}

/// The estimate for the rest of a leg.
struct Estimate: Equatable {
  /// An upper limit of routes' lengths: 2.5 times round the Earth. More could not be stored.
  static let longestMeters = 1e8

  /// 0 to `longestMeters`.
  let meters: Double
  /// Seconds from the position to the target.
  let seconds: Double
  let basis: ETABasis

  init(meters: Double, _ leg: Leg, _ basis: ETABasis) {
    self.meters = min(max(0, meters), Estimate.longestMeters)
    seconds = self.meters / leg.pace
    self.basis = basis
  }
}

protocol ETAEstimator {
  func estimate(_ leg: Leg) -> Estimate
}

/// The last published ETA, and when a new one is worth publishing: the arrival time is constant while the driver moves
/// as expected, and only the seconds run down.
struct PublishedETA: Equatable {
  var target: TripTarget
  var basis: ETABasis
  var meters: Double
  /// By the hub's wall clock.
  var arrival: Timestamp
  /// Uptime, ns.
  var publishedAt: Int64

  var durable: DurableETA { DurableETA(target: target, basis: basis, meters: meters, arrival: arrival) }

  init(target: TripTarget, basis: ETABasis, meters: Double, arrival: Timestamp, publishedAt: Int64) {
    (self.target, self.basis, self.meters, self.arrival, self.publishedAt) = (
      target, basis, meters, arrival, publishedAt
    )
  }

  /// Restores a stored ETA. The next one comes no sooner than if this one had been published at `uptime`.
  init(_ durable: DurableETA, publishedAt uptime: Int64) {
    self.init(
      target: durable.target, basis: durable.basis, meters: durable.meters, arrival: durable.arrival,
      publishedAt: uptime)
  }

  /// The publication: the arrival time is fixed.
  func update(ofTrip id: Identifier, at time: Timestamp, after: UInt64) -> ETAUpdate {
    ETAUpdate(
      tripID: id, target: target, eta: TrackMath.rounded(max(0, arrival.seconds(since: time)), to: 1),
      distance: TrackMath.rounded(meters, to: 1), arrivalTime: arrival, basis: basis, after: after)
  }

  /// Whether a newly computed arrival differs so much from what a reader counts down to that it is to be published.
  func isOutdated(by arrival: Timestamp, target: TripTarget, basis: ETABasis, at now: Moment, rules: TripRules) -> Bool
  {
    guard now.uptime - publishedAt >= nanoseconds(rules.etaIntervalSeconds) else { return false }
    if target != self.target || basis != self.basis { return true }
    let error = abs(arrival.seconds(since: self.arrival))
    let left = arrival.seconds(since: now.timestamp)
    return error > max(rules.etaErrorSeconds, min(rules.etaErrorFraction * left, rules.etaErrorCapSeconds))
  }
}
