// The trip endpoints: one trip, lists, a trip requested over HTTP, and a change. Their answers are stored before they
// are sent, so that nobody sees what a crash could undo.
import HubMessages

extension Hub {
  mutating func answer(_ session: SessionRef, _ question: TripQuestion, _ replyTo: MessageID?) {
    do throws(ErrorReply) {
      switch question {
      case .show(let query): show(query, to: session, replyTo)
      case .list(let query):
        if channels.askClusterIfShared(FleetQuestion(query, session, replyTo)) { return }
        // The list waits until all changes so far are stored, which can take hours on a full disk.
        if storage.hasUnstored { try requireRoom(ErrorReply.unstoredQuestion) }
        try trips.list(query, for: session, replyTo, counting: &counters)
      case .begin(let report, let actor): try request(report, by: actor, for: session, replyTo)
      case .change(let change, let actor, let key):
        try self.change(change, by: actor, messageID: key, at: now.timestamp)
        showStored(change.tripID, isNew: false, to: session, replyTo)
      case .shares(let id, let question, let actor):
        emitStored(.trips(session, try answer(question, of: id, by: actor), replyTo: replyTo), to: session.outlet)
      case .offers(let id, let question, let actor):
        emitStored(.trips(session, try answer(question, of: id, by: actor), replyTo: replyTo), to: session.outlet)
      }
    } catch {
      channels.noteRefused(TripRequest(question, of: session), error, trips)
      refuseTrip(error.replying(to: replyTo), to: session) { .trips(session, .refused($0), replyTo: replyTo) }
    }
  }

  private mutating func show(_ query: TripQuery, to session: SessionRef, _ replyTo: MessageID?) {
    if channels.askClusterIfShared(FleetQuestion(query, session, replyTo), isHere: isHere(.trip(query.id))) { return }
    do throws(ErrorReply) {
      if channels.isUnstored(.trip(query.id), storage) { try requireRoom(ErrorReply.unstoredQuestion) }
      let input = HubInput.trips(session, .show(query), replyTo: replyTo)
      if channels.parkIfUnstored(input, for: .trip(query.id), &storage) { return }
      _ = try trips.checkAccess(of: query.actor, by: query.grant, to: .trip(query.id), at: now)
      let trip = try trips.findKnown(query.id)
      emit(.trips(session, .trip(trips[trip].report, isNew: false), replyTo: replyTo), to: session.outlet)
    } catch {
      emit(.trips(session, .refused(error.replying(to: replyTo)), replyTo: replyTo), to: session.outlet)
    }
  }

  /// Continues the requested lists.
  mutating func continueListings() {
    for done in trips.continueListings() {
      emitStored(.trips(done.session, done.answer, replyTo: done.replyTo), to: done.session.outlet)
    }
    if trips.hasListings { hasMoreDue = true }
  }

  /// Handles `requested` by ops over HTTP.
  private mutating func request(
    _ report: TripStatusReport, by actor: Actor?, for session: SessionRef, _ replyTo: MessageID?
  ) throws(ErrorReply) {
    try requireRoom("this hub cannot store trips now; send it again")
    let request = try offersRequest(in: report, by: actor ?? Actor(role: .ops, id: report.tripID))
    switch try trips.request(report, at: now, counting: &counters) {
    case .unchanged: showStored(report.tripID, isNew: false, to: session, replyTo)
    case .step(let step):
      commit(step)
      beginOffers(request, of: step.trip)
      showStored(report.tripID, isNew: true, to: session, replyTo)
      followUp(step)
    }
  }

  /// Makes, ends or lists shares of a trip (Trips/TripShares.swift).
  private mutating func answer(
    _ question: TripShareQuestion, of id: Identifier, by actor: Actor
  ) throws(ErrorReply) -> TripAnswer {
    let trip = try trips.findShared(id, by: actor, at: now.uptime)
    if question.isChange { try requireRoom("this hub cannot store that now; send it again") }
    let (answer, ended) = try trips.change(question, of: trip, at: now.timestamp)
    if question.isChange { recordTrip(trip, isUpdate: false) }
    if let ended, let channel = trips[trip].channel { channels.endShare(of: ended, on: channel) }
    return answer
  }

  private mutating func showStored(_ id: Identifier, isNew: Bool, to session: SessionRef, _ replyTo: MessageID?) {
    guard let trip = trips.find(id) else { return }
    emitStored(.trips(session, .trip(trips[trip].report, isNew: isNew), replyTo: replyTo), to: session.outlet)
  }
}

extension ErrorReply {
  fileprivate static var unstoredQuestion: String { "this hub cannot store what this is about now; ask again" }
}
