// Requests about offers. The offers decide (Offers/Offers.swift); their decisions are recorded and published here.
import HubMessages

extension Hub {
  /// Records and publishes the decisions of the offers.
  mutating func carryOut(_ steps: [OfferStep]) {
    for step in steps {
      switch step {
      case .record(let record): storage.write(record)
      case .countOutcome(let outcome): counters.offers[Int(outcome.rawValue)] += 1
      case .sendToHub(let offer): channels.send(offer, &storage, counting: &counters)
      case .askCluster(let question): channels.sendToCluster(.ask(question))
      case .followAccepted(let trip, let driver):
        _ = lookUp(DistantTrips.Beginning(trip: trip, isGranted: false, time: now.timestamp), by: driver)
        distant.accept(trip, by: driver)
      case .notifyDriver(let state, let trip, let driver, let sent):
        if drivers[driver].isElsewhere {
          if let sent { channels.send(sent, &storage, counting: &counters) }
        } else if let channel = eventChannel(ofDriver: driver) {
          publishEvent(on: channel) { .offer(Offer(tripID: trip, state: state, sequence: $0)) }
        }
      case .notifyUnserved(let trip):
        counters.tripsUnserved += 1
        if let channel = eventChannel(ofTrip: trip) {
          publishEvent(on: channel) { .notification(.unserved(sequence: $0)) }
        }
      }
    }
  }

  mutating func answer(
    _ question: OffersQuestion, of id: Identifier, by actor: Actor
  ) throws(ErrorReply) -> TripAnswer {
    if question.isChange { try requireRoom("this hub cannot store offers now; send it again") }
    let trip = try trips.findKnown(id)
    let asker = OfferAsker(actor, seed: seed)
    let done = try offers.answer(question, of: trip, trips, by: asker, at: now.timestamp, counting: &counters)
    carryOut(done.steps)
    return done.answer
  }

  mutating func handle(_ session: SessionRef, _ messageID: MessageID, _ decline: OfferDecline, by driver: Identifier) {
    do throws(ErrorReply) {
      try requireRoom("this hub cannot store that now; send it again")
      carryOut(try offers.decline(trip: try trips.findKnown(decline.tripID), decline.tripID, by: driver))
      acknowledge(Ack(replyTo: messageID), .offerDecline, since: now.uptime, to: session)
    } catch {
      refuse(session, error, replyTo: messageID)
    }
  }
}
