// A trip's pickup, dropoff and route may be changed until its driver has arrived at the destination: by its rider, by
// ops, and by the driver of a trip that has no rider.
//
// A route leads from the pickup to the dropoff. Where one of these changes and no new route comes with it, the trip has
// none from then on: a driver is not to be guided to where nobody waits.
import HubMessages

/// What a change was answered with, on the socket and over HTTP.
private enum ChangeOutcome {
  case done(trip: Int)
  case refused(ErrorReply)
}

extension Hub {
  /// One `trip_change`.
  mutating func handle(_ input: TripChangeInput) {
    let move = moveHash(input.messageID, of: input.actor)
    switch change(input.change, by: input.actor, at: input.timestamp, move: move) {
    case .done: replyStored(.ack(Ack(replyTo: input.messageID)), to: input.session)
    case .refused(var error):
      error.replyTo = input.messageID
      // The state that it names may not be stored yet; that nothing can be stored must be heard at once.
      if error.status == nil { return reply(.error(error), to: input.session) }
      replyStored(.error(error), to: input.session)
    }
  }

  /// `PATCH /v1/trips/{id}`.
  mutating func change(_ change: TripChange, by actor: Actor, for session: SessionRef) {
    switch self.change(change, by: actor, at: now.timestamp, move: nil) {
    case .done(let trip):
      emitStored(.trips(session, .trip(trips[trip].report, isNew: false), replyTo: nil), to: session.loop)
    case .refused(let error):
      let answer = HubOutput.trips(session, .refused(error), replyTo: nil)
      if error.status == nil { return emit(answer, to: session.loop) }
      emitStored(answer, to: session.loop)
    }
  }

  private mutating func change(
    _ change: TripChange, by actor: Actor, at time: Timestamp, move: UInt64?
  ) -> ChangeOutcome {
    guard storage.hasRoom else {
      counters.refusedForStorage += 1
      return refused(.storageFull, "this hub cannot store changes now; send it again", retryAfter: 5)
    }
    guard let trip = findTrip(change.tripID) else {
      counters.tripMovesRefused += 1
      return refused(.unknownTrip, "this hub knows no trip \(change.tripID)")
    }
    if let move, trips[trip].recentMoves.contains(move) { return .done(trip: trip) }
    guard mayChange(trip, actor) else {
      counters.tripMovesRefused += 1
      return refused(.forbidden, "\(actor.role.name) \(actor.id) may not change trip \(change.tripID)")
    }
    let status = trips[trip].status
    guard status < .arrivedDestination else {
      counters.tripMovesRefused += 1
      let message = "a trip changes until arrived_destination; this one is in \(status.name)"
      return .refused(ErrorReply(code: .invalidTransition, message: message, status: status))
    }
    let bytes = change.route?.polyline.utf8.count ?? 0
    guard bytes == 0 || channels.contentBytes + 2 * bytes <= actor.role.share(of: limits.eventContentBytes) else {
      counters.count(full: .eventContents)
      return refused(.storageFull, "this hub keeps no more routes in its events", retryAfter: 60)
    }
    apply(change, to: trip, at: time, move: move)
    return .done(trip: trip)
  }

  private func refused(_ code: ErrorCode, _ message: String, retryAfter: Double? = nil) -> ChangeOutcome {
    .refused(ErrorReply(code: code, message: message, retryAfter: retryAfter))
  }

  /// Who may begin the trip: its rider, ops, and a driver where it has no rider.
  private func mayChange(_ trip: Int, _ actor: Actor) -> Bool {
    switch trips[trip].party(of: actor) {
    case .ops, .rider: true
    case .driver: trips[trip].riderID == nil
    case .stranger: false
    }
  }

  /// Takes over what differs, tells of it, and what it means for the driver. What differs in nothing is neither told
  /// nor stored.
  private mutating func apply(_ change: TripChange, to trip: Int, at time: Timestamp, move: UInt64?) {
    var update = TripUpdate(
      tripID: change.tripID, status: trips[trip].status, previousStatus: nil, driverID: trips[trip].driverID,
      timestamp: time, location: nil, sequence: 0)
    if change.pickup != trips[trip].pickup { update.pickup = change.pickup }
    if change.dropoff != trips[trip].dropoff { update.dropoff = change.dropoff }
    if change.route != trips[trip].route { update.route = change.route?.polyline }
    trips[trip].lastHeard = now.uptime
    // Nothing to remember: said again, it changes nothing again.
    guard update.isChange else { return }
    if let move { trips[trip].recentMoves.insert(move) }
    let isElsewhere = update.pickup != nil || update.dropoff != nil
    if let pickup = update.pickup { trips[trip].pickup = pickup }
    if let dropoff = update.dropoff { trips[trip].dropoff = dropoff }
    if let route = change.route { trips[trip].route = route } else if isElsewhere { trips[trip].route = nil }
    forgetNotices(update, trip: trip)
    // The ETA was for another place or way: the next one is news, and a restart must not bring this one back.
    trips[trip].told = nil
    counters.tripChanges += 1
    recordTrip(trip)
    publish(update, of: trip)
    releaseGuide(trip)
    guideAfterMove(trip)
  }

  /// What people were told of a place where the driver no longer goes is told again of the new one.
  private mutating func forgetNotices(_ update: TripUpdate, trip: Int) {
    if update.pickup != nil { trips[trip].progress.notices.subtract([.pickupNear, .pickupReached]) }
    let leadsElsewhere = update.dropoff != nil || update.route != nil && trips[trip].dropoff == nil
    if leadsElsewhere { trips[trip].progress.notices.subtract([.dropoffNear, .dropoffReached]) }
    trips[trip].progress.notices.remove(.offRoute)
  }
}
