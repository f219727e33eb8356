// How long until a driver is where it is going to. Behind a protocol, so that a road router can follow: one more type
// that answers; which one is asked is said in one place (`TripLegs.estimate`). Calls are static, for one is made with
// every fix.
import HubGeo
import HubMessages

/// The rest of a driver's way to its target.
struct Leg {
  var place: Coordinate
  var target: UnitVector
  /// Metres as the crow flies.
  var crowMeters: Double
  /// Metres per second that the driver gets on with; never 0.
  var pace: Double
}

/// What is left of a leg.
struct Estimate: Equatable {
  /// No way is longer, whatever a route says: 2.5 times round the Earth. What is more could not be stored.
  static let longestMeters = 1e8

  /// 0 to `longestMeters`.
  let meters: Double
  /// From the position on.
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

/// What was told last, and when it is worth telling again: what changes is the time of arrival, for as long as a driver
/// gets on as expected, that stays while the seconds run down.
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

  /// As it was read back: the next one comes no sooner than if it had been told at the start.
  init(_ durable: DurableETA, publishedAt uptime: Int64) {
    self.init(
      target: durable.target, basis: durable.basis, meters: durable.meters, arrival: durable.arrival,
      publishedAt: uptime)
  }

  /// What is published of it: the time of arrival stands.
  func update(ofTrip id: Identifier, at time: Timestamp, after: UInt64) -> ETAUpdate {
    ETAUpdate(
      tripID: id, target: target, eta: TrackMath.rounded(max(0, arrival.seconds(since: time)), to: 1),
      distance: TrackMath.rounded(meters, to: 1), arrivalTime: arrival, basis: basis, after: after)
  }

  /// Whether an arrival that is reckoned now is so far from what a reader believes who counts down, that it is to be
  /// published.
  func isOutdated(by arrival: Timestamp, target: TripTarget, basis: ETABasis, at now: Moment, rules: TripRules) -> Bool
  {
    guard now.uptime - publishedAt >= nanoseconds(rules.etaIntervalSeconds) else { return false }
    if target != self.target || basis != self.basis { return true }
    let error = abs(arrival.seconds(since: self.arrival))
    let left = arrival.seconds(since: now.timestamp)
    return error > max(rules.etaErrorSeconds, min(rules.etaErrorPart * left, rules.etaErrorMostSeconds))
  }
}
