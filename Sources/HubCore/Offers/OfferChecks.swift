// Requests for offers, and why a trip is not offered to drivers.
import HubMessages

/// The identity that requests offers.
struct OfferAsker {
  let actor: Actor
  /// `Actor.hashValue`, for the limits of one identity.
  let hash: UInt64

  init(_ actor: Actor, seed: UInt64) {
    self.actor = actor
    hash = actor.hashValue(seed: seed)
  }
}

extension ErrorReply {
  fileprivate static let offersWithoutPickup = ErrorReply(
    code: .badMessage, message: "offers need the trip's pickup: drivers near it are asked")
}

extension Offers {
  /// The offers that a request for a trip includes; nil where it includes none, or repeats one for a known trip. Throws
  /// where they can't be made; then the trip isn't begun either.
  func request(
    in report: TripStatusReport, isKnown: Bool, by asker: OfferAsker, counting counters: inout HubCounters
  ) throws(ErrorReply) -> OffersRequest? {
    guard let criteria = report.offer, !isKnown else { return nil }
    if asker.actor.role == .driver {
      throw ErrorReply(code: .forbidden, message: "a driver's own trip is offered to no others")
    }
    if report.driverID != nil {
      throw ErrorReply(code: .badMessage, message: "a trip that names its driver is offered to no others")
    }
    if report.pickup == nil { throw .offersWithoutPickup }
    let request = OffersRequest(criteria, by: asker, key: nil)
    try checkRoom(for: request, counting: &counters)
    return request
  }

  /// Answers a question about a trip's offers, and gives the steps to carry out.
  mutating func answer(
    _ question: OffersQuestion, of trip: Int, _ trips: borrowing Trips, by asker: OfferAsker, at time: Timestamp,
    counting counters: inout HubCounters
  ) throws(ErrorReply) -> (answer: TripAnswer, steps: [OfferStep]) {
    let id = trips[trip].id
    switch question {
    case .show: return (.offers(try report(ofTrip: trip, id), isNew: false), [])
    case .begin(let criteria, let key):
      let request = OffersRequest(criteria, by: asker, key: key)
      if try isRepeated(request, trip, trips[trip]) { return (.offers(try report(ofTrip: trip, id), isNew: false), []) }
      try trips[trip].checkOffers()
      try checkRoom(for: request, counting: &counters)
      let steps = begin(request, trip: trips.handle(of: trip), id, at: time)
      return (.offers(try report(ofTrip: trip, id), isNew: true), steps)
    case .stop:
      _ = try report(ofTrip: trip, id)
      return (.offersStopped, stop(trip))
    }
  }
}

extension Trip {
  fileprivate func checkOffers() throws(ErrorReply) {
    if status.isFinal { throw ErrorReply(invalidIn: status, "trip \(id) is over") }
    if driverID != nil || status != .requested {
      throw ErrorReply(invalidIn: status, "trip \(id) has a driver already")
    }
    if pickup == nil { throw .offersWithoutPickup }
  }
}
