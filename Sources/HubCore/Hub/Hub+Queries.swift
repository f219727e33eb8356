// Questions about drivers: one is answered at once, a search over some turns (Searches.swift).
import HubMessages

extension Hub {
  private var searchView: SearchView { SearchView(audience: audience, now: now) }

  mutating func answer(_ session: SessionRef, _ query: HubQuery, _ replyTo: MessageID?) {
    switch query {
    case .driver(let id):
      let found = drivers.find(id).map { QueryResult.driver(drivers.report(of: $0, at: now.timestamp)) }
      emit(.queryResult(session, found, replyTo: replyTo), to: session.outlet)
    case .list(let query):
      do throws(ErrorReply) { try list(query, for: session) } catch { reply(.error(error), to: session) }
    case .drivers(let search, let audience, let actor):
      let identity = actor.hashValue(seed: seed)
      do throws(ErrorReply) {
        try searches.checkRoom(for: actor, identity, session, limits: limits, counting: &counters)
      } catch {
        return reply(.error(error.replying(to: replyTo)), to: session)
      }
      searches.begin(
        RunningSearch(
          search, audience, maximumLimit: limits.queryHits, session: session, identity: identity, replyTo: replyTo),
        searchView)
    }
  }

  /// Throws at the limit of pages that are put together.
  private mutating func list(_ query: DriverListQuery, for session: SessionRef) throws(ErrorReply) {
    guard driverListings.count < limits.driverLists else {
      counters.count(full: .driverLists)
      throw ErrorReply(
        code: .rateLimited, message: "this hub puts \(limits.driverLists) lists of drivers together already",
        retryAfter: 1)
    }
    driverListings.append(DriverListing(query, for: session))
  }

  /// Goes on with the pages of drivers that were asked for.
  mutating func continueDriverListings() {
    for done in driverListings.advance(over: drivers, limit: limits.driversListedPerTurn) {
      // Between two turns a driver may be forgotten, and another have its place.
      let reports = done.found.filter { drivers.isInUse($0) }.map { driver in
        var report = drivers.report(of: driver, at: now.timestamp)
        report.predicted = nil
        report.confidence = drivers[driver].position?.confidence
        report.tripID = tripOfPosition(of: driver).flatMap { isOver($0) ? nil : trips[$0].id }
        return report
      }
      let cursor = done.next.map { "d" + String($0, radix: 36) }
      let result = QueryResult.drivers(DriverList(drivers: reports, cursor: cursor))
      emit(.queryResult(done.session, result, replyTo: nil), to: done.session.outlet)
    }
    if !driverListings.isEmpty { hasMoreDue = true }
  }

  mutating func advanceSearches() {
    guard !searches.isEmpty else { return }
    for done in searches.advance(in: drivers, searchView, budget: limits.queryBudget) {
      let search = done.running
      counters.searches += 1
      if search.turns > 0 { counters.searchesContinued += 1 }
      emit(.queryResult(search.session, search.result, replyTo: search.replyTo), to: search.session.outlet)
    }
    if !searches.isEmpty { hasMoreDue = true }
  }
}
