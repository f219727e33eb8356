// Decisions of the offers, which the hub records first, then publishes (Hub.carryOut).
import HubMessages

/// One step of a decision. Steps are carried out in order: where a search has changed, its record comes before the
/// events that show it.
enum OfferStep {
  case record(DurableRecord)
  /// A driver's offer is made or withdrawn. A driver that has gone to another hub is notified there, if `sent` is
  /// given.
  case notifyDriver(Offer.State, of: Identifier, to: Int, sent: SentOffer? = nil)
  /// An offer of this hub has ended. (The trip's own event says that a driver has accepted.)
  case countOutcome(OfferOutcome)
  /// A message to the hub of a driver or a trip elsewhere.
  case sendToHub(SentOffer)
  /// A driver here has accepted another hub's trip, which is then followed, as it keeps the driver busy.
  case followAccepted(trip: Identifier, by: Int)
  /// All hubs are asked for drivers.
  case askCluster(FleetQuestion)
  /// No driver is left to ask.
  case notifyUnserved(trip: Int)

  /// Records the present state of a search.
  static func recordSearch(_ search: OfferSearch) -> OfferStep { .record(.offers(search.durable)) }
}

extension Notification {
  /// No driver has taken a trip.
  static func unserved(sequence: UInt64) -> Notification {
    Notification(
      kind: .unserved, title: "No driver", body: "No driver has taken the trip.", driverID: nil, sequence: sequence)
  }
}

/// How an offer ends, for metrics.
public enum OfferOutcome: UInt8, Sendable, CaseIterable {
  case accepted, declined, expired, withdrawn

  init(_ reason: Offer.Withdrawal) {
    switch reason {
    case .declined: self = .declined
    case .expired: self = .expired
    case .taken, .cancelled, .unavailable, .stopped: self = .withdrawn
    }
  }

  /// Its label in metrics.
  public var name: StaticString {
    switch self {
    case .accepted: "accepted"
    case .declined: "declined"
    case .expired: "expired"
    case .withdrawn: "withdrawn"
    }
  }
}
