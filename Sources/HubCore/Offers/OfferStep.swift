// Decisions of the offers: recorded first, then published.
import HubMessages

enum OfferStep {
  /// The present state of a search.
  case changed(DurableOffers)
  case forgotten(Identifier)
  /// A trip is offered to a driver.
  case made(Offer.Terms, of: Identifier, to: Int)
  /// The driver's offer is withdrawn; nil for a driver that is not known here.
  case withdrawn(Offer.Withdrawal, SentOffer, from: Int?)
  /// An offer of this hub has ended. (The trip's own event says that a driver has accepted.)
  case ended(OfferOutcome)
  /// A message to the hub of a driver or a trip elsewhere.
  case sent(SentOffer)
  /// A driver here has accepted another hub's trip, which is then followed, as it keeps the driver busy.
  case acceptedElsewhere(trip: Identifier, by: Int)
  /// All hubs are asked for drivers.
  case gather(DriverSearch, for: Handle, of: Identifier)
  /// No driver is left to ask.
  case unserved(trip: Int)

  /// Writes its record, or publishes it.
  func carryOut(
    _ drivers: inout Drivers, _ trips: inout Trips, _ channels: inout Channels, _ storage: inout HubStorage,
    _ distant: inout DistantTrips, counting counters: inout HubCounters, at now: Moment
  ) {
    let time = now.timestamp
    switch self {
    case .acceptedElsewhere(let trip, let driver):
      let naming = DistantTrips.Beginning(trip: trip, isGranted: false, time: time)
      distant.accept(naming, by: driver, &drivers, &channels, at: now)
    case .changed(let search): storage.write(.offers(search))
    case .forgotten(let trip): storage.write(.offersForgotten(trip))
    case .ended(let outcome): counters.offers[Int(outcome.rawValue)] += 1
    case .sent(let offer): channels.send(offer, &storage, counting: &counters)
    case .gather(let search, let handle, let trip):
      channels.sendToCluster(.ask(FleetQuestion(search, for: handle, of: trip)))
    case .made(let terms, let trip, let driver):
      guard let channel = channels.eventChannel(of: driver, &drivers, counting: &counters) else { return }
      channels.publish(eventOn: channel, at: time, &storage, counting: &counters) {
        .offer(Offer(tripID: trip, state: .made(terms), sequence: $0))
      }
    case .withdrawn(let reason, let offer, let driver):
      let trip = offer.tripID
      guard let driver, !drivers[driver].isElsewhere else {
        return channels.send(offer, &storage, counting: &counters)
      }
      guard let channel = channels.eventChannel(of: driver, &drivers, counting: &counters) else { return }
      channels.publish(eventOn: channel, at: time, &storage, counting: &counters) {
        .offer(Offer(tripID: trip, state: .withdrawn(reason), sequence: $0))
      }
    case .unserved(let trip):
      counters.tripsUnserved += 1
      guard let channel = channels.eventChannel(of: trip, &trips, counting: &counters) else { return }
      channels.publish(eventOn: channel, at: time, &storage, counting: &counters) {
        .notification(
          Notification(
            kind: .unserved, title: "No driver", body: "No driver has taken the trip.", driverID: nil, sequence: $0))
      }
    }
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
