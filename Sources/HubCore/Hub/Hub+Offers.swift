// Requests about offers. The offers decide (Offers/Offers.swift); their decisions are recorded and published
// (Hub.carryOut).
import HubMessages

extension Hub {
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
      emitStored(.reply(session, .ack(Ack(replyTo: messageID))), to: session.outlet)
    } catch {
      refuse(session, error, replyTo: messageID)
    }
  }
}
