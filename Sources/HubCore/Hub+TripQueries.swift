// The trip endpoints: one trip, lists of them, and a trip that is asked for over HTTP. What they answer is stored:
// nobody is shown what a crash could undo.
import HubBytes
import HubGeo
import HubMessages

/// A list that is being put together, some turns long.
struct TripListing {
  var session: SessionRef
  var query: TripListQuery
  var replyTo: MessageID?
  var found: [TripReport] = []
}

extension Hub {
  mutating func answer(_ session: SessionRef, _ question: TripQuestion, _ replyTo: MessageID?) {
    switch question {
    case .show(let query): show(query, to: session, replyTo)
    case .list(let query): list(query, for: session, replyTo)
    case .begin(let report): begin(report, for: session, replyTo)
    case .change(let change, let actor): self.change(change, by: actor, for: session)
    }
  }

  private mutating func answer(_ answer: TripAnswer, to session: SessionRef, _ replyTo: MessageID?) {
    emitStored(.trips(session, answer, replyTo: replyTo), to: session.loop)
  }

  /// At once: that nothing can be stored must be heard just then.
  private mutating func refuse(
    _ session: SessionRef, _ replyTo: MessageID?, _ code: ErrorCode, _ message: String, retryAfter: Double? = nil
  ) {
    let error = ErrorReply(code: code, message: message, replyTo: replyTo, retryAfter: retryAfter)
    emit(.trips(session, .refused(error), replyTo: replyTo), to: session.loop)
  }

  private mutating func refuseUnstored(_ session: SessionRef, _ replyTo: MessageID?) {
    counters.refusedForStorage += 1
    refuse(
      session, replyTo, .storageFull, "this hub cannot store what this is about now; ask again", retryAfter: 5)
  }

  // MARK: One trip

  private mutating func show(_ query: TripQuery, to session: SessionRef, _ replyTo: MessageID?) {
    if !storage.hasRoom, isUnstored(.trip(query.id)) { return refuseUnstored(session, replyTo) }
    if waits(.trips(session, .show(query), replyTo: replyTo), for: .trip(query.id)) { return }
    guard access(of: query.actor, by: query.grant, to: .trip(query.id)) != .forbidden else {
      // The same words whether or not there is such a trip.
      return refuse(session, replyTo, .forbidden, "your credential does not open this trip, or the trip is over")
    }
    guard let trip = findTrip(query.id) else {
      return refuse(session, replyTo, .unknownTrip, "this hub knows no trip \(query.id)")
    }
    emit(.trips(session, .trip(trips[trip].report, isNew: false), replyTo: replyTo), to: session.loop)
  }

  // MARK: Lists

  /// Takes a list on; the answer comes with this turn or a later one.
  private mutating func list(_ query: TripListQuery, for session: SessionRef, _ replyTo: MessageID?) {
    guard listings.count < limits.tripLists else {
      counters.count(full: .tripLists)
      return refuse(
        session, replyTo, .rateLimited, "this hub puts \(limits.tripLists) lists of trips together already",
        retryAfter: 1)
    }
    // It would wait with all that is not stored.
    guard storage.hasRoom || storage.newest <= storage.storedThrough else { return refuseUnstored(session, replyTo) }
    listings.append(TripListing(session: session, query: query, replyTo: replyTo))
  }

  /// Goes on with the lists that were asked for, a bounded number of trips a turn. Who asks for a rare state among a
  /// million trips waits some hundred turns; nobody else waits for him.
  ///
  /// A list shows each trip as it was when it was looked at. Trips that begin meanwhile are not in it.
  mutating func continueListings() {
    var budget = limits.tripsListedPerTurn
    while budget > 0, !listings.isEmpty {
      var listing = listings.removeFirst()
      if let next = look(&listing, &budget) {
        listing.query.below = next
        listings.append(listing)  // behind the others: a short one need not wait for a long one
      }
    }
    if !listings.isEmpty { hasMoreDue = true }
  }

  /// Looks at as many trips as the budget allows. Answers, or gives the number to go on below.
  private mutating func look(_ listing: inout TripListing, _ budget: inout Int) -> UInt64? {
    let query = listing.query
    var found = listing.found
    var position = query.below
    var isAtEnd = true
    tripOrder.visit(below: position) { entry in
      guard budget > 0, found.count < query.limit else {
        isAtEnd = false
        return false
      }
      budget -= 1
      position = entry.number
      let trip = Int(entry.trip)
      if query.matches(status: trips[trip].status, driverID: trips[trip].driverID, updated: trips[trip].updated) {
        var report = trips[trip].report
        report.route = nil  // a page of routes could be megabytes
        found.append(report)
      }
      return true
    }
    if !isAtEnd, found.count < query.limit {
      listing.found = found
      return position
    }
    answer(.list(found, next: isAtEnd ? nil : position), to: listing.session, listing.replyTo)
    return nil
  }

  // MARK: A trip that is asked for

  /// `requested`, by ops over HTTP. The same id with the same content again is answered again and changes nothing.
  private mutating func begin(_ report: TripStatusReport, for session: SessionRef, _ replyTo: MessageID?) {
    guard storage.hasRoom else {
      counters.refusedForStorage += 1
      return refuse(
        session, replyTo, .storageFull, "this hub cannot store trips now; send it again", retryAfter: 5)
    }
    let content = contentHash(of: report)
    if let trip = findTrip(report.tripID) {
      guard trips[trip].recentMoves.contains(content) else {
        counters.tripMovesRefused += 1
        let message = "there is a trip \(report.tripID) of other content, in \(trips[trip].status.name)"
        return answer(
          .refused(ErrorReply(code: .invalidTransition, message: message, replyTo: replyTo)), to: session, replyTo)
      }
      return answer(.trip(trips[trip].report, isNew: false), to: session, replyTo)
    }
    guard let trip = begin(report, by: .ops, rider: report.riderID, driver: report.driverID) else {
      return refuse(session, replyTo, .storageFull, "this hub's trip table is full", retryAfter: 60)
    }
    noteMove(of: trip, content, from: nil, at: report.location)
    answer(.trip(trips[trip].report, isNew: true), to: session, replyTo)
    adviseSampling(ofTrip: trip)
  }

  /// Of all that a request says but its timestamp, which a repetition may set anew. It stands among the trip's moves,
  /// so it is as durable as they are; a trip has no more moves than those have room for.
  private func contentHash(of report: TripStatusReport) -> UInt64 {
    var hash = InlineText("POST")!.hashValue(seed: seed)
    func add(_ word: UInt64) {
      let product = (hash ^ word).multipliedFullWidth(by: 0xA076_1D64_78BD_642F)
      hash = product.high ^ product.low
    }
    for id in [report.driverID, report.riderID] {
      hash = (id?.text ?? InlineText()).hashValue(seed: hash)
    }
    for place in [report.pickup, report.dropoff, report.location] {
      add(place == nil ? 1 : 2)
      add(place?.latitude.bitPattern ?? 0)
      add(place?.longitude.bitPattern ?? 0)
    }
    add(report.route == nil ? 1 : 2)
    for byte in (report.route?.polyline ?? "").utf8 { add(UInt64(byte)) }
    return hash
  }
}
