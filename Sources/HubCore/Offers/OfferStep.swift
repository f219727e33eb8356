// What the offers have decided: recorded first, then published.
import HubMessages

enum OfferStep {
  /// A search as it is from now on.
  case changed(DurableOffers)
  case forgotten(Identifier)
  /// A trip is offered to a driver.
  case made(Offer.Terms, of: Identifier, to: Int)
  /// The driver's offer holds no more; nil for a driver that is not known any more.
  case withdrawn(Offer.Withdrawal, of: Identifier, from: Int?)
  /// The driver has accepted: the trip's own event says so.
  case accepted
  /// Nobody is left to be asked.
  case unserved(trip: Int)

  /// Writes the record of it, or publishes it.
  func carryOut(
    _ drivers: inout Drivers, _ trips: inout Trips, _ channels: inout Channels, _ storage: inout HubStorage,
    counting counters: inout HubCounters, at time: Timestamp
  ) {
    switch self {
    case .changed(let search): storage.write(.offers(search))
    case .forgotten(let trip): storage.write(.offersForgotten(trip))
    case .accepted: counters.offers[Int(OfferOutcome.accepted.rawValue)] += 1
    case .made(let terms, let trip, let driver):
      guard let channel = drivers.eventChannel(of: driver, &channels, counting: &counters) else { return }
      channels.publish(eventOn: channel, at: time, &storage, counting: &counters) {
        .offer(Offer(tripID: trip, state: .made(terms), sequence: $0))
      }
    case .withdrawn(let reason, let trip, let driver):
      counters.offers[Int(OfferOutcome(reason).rawValue)] += 1
      guard let driver, let channel = drivers.eventChannel(of: driver, &channels, counting: &counters) else { return }
      channels.publish(eventOn: channel, at: time, &storage, counting: &counters) {
        .offer(Offer(tripID: trip, state: .withdrawn(reason), sequence: $0))
      }
    case .unserved(let trip):
      counters.tripsUnserved += 1
      guard let channel = trips.eventChannel(of: trip, &channels, counting: &counters) else { return }
      channels.publish(eventOn: channel, at: time, &storage, counting: &counters) {
        .notification(
          Notification(
            kind: .unserved, title: "No driver", body: "No driver has taken the trip.", driverID: nil, sequence: $0))
      }
    }
  }
}

/// How an offer ends, for operators.
public enum OfferOutcome: UInt8, Sendable, CaseIterable {
  case accepted, declined, expired, withdrawn

  init(_ reason: Offer.Withdrawal) {
    switch reason {
    case .declined: self = .declined
    case .expired: self = .expired
    case .taken, .cancelled, .unavailable, .stopped: self = .withdrawn
    }
  }

  public var name: StaticString {
    switch self {
    case .accepted: "accepted"
    case .declined: "declined"
    case .expired: "expired"
    case .withdrawn: "withdrawn"
    }
  }
}
