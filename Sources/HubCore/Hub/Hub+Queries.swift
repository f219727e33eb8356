// Queries for drivers: one driver is answered at once, a search over some turns (Searches.swift).
import HubMessages

extension Hub {
  private var searchView: SearchView { SearchView(audience: audience, now: now) }

  mutating func answer(_ session: SessionRef, _ query: HubQuery, _ replyTo: MessageID?) {
    let isHere = if case .driver(let id) = query { self.isHere(.driver(id)) } else { false }
    if channels.askClusterIfShared(FleetQuestion(query, session, replyTo), isHere: isHere) { return }
    do throws(ErrorReply) {
      switch query {
      case .driver(let id):
        let found = drivers.find(id).map { QueryResult.driver(trips.report($0, of: drivers, replyTo, at: now)) }
        emit(.queryResult(session, found, replyTo: replyTo), to: session.outlet)
      case .list(let query): try driverListings.begin(query, for: session, limits, counting: &counters)
      case .drivers(let search, let audience, let actor):
        let search = RunningSearch(
          search, audience, maximumLimit: limits.queryHits, session: session, identity: actor.hashValue(seed: seed),
          replyTo: replyTo)
        try searches.begin(search, actor.role, searchView, limits, counting: &counters)
      }
    } catch {
      reply(.error(error.replying(to: replyTo)), to: session)
    }
  }

  /// Continues the requested pages of drivers.
  mutating func continueDriverListings() {
    for done in driverListings.advance(over: drivers, limit: limits.driversListedPerTurn) {
      let list = trips.list(done.found, of: drivers, cursor: done.cursor, at: now)
      emit(.queryResult(done.session, .drivers(list), replyTo: nil), to: done.session.outlet)
    }
    if !driverListings.isEmpty { hasMoreDue = true }
  }

  mutating func advanceSearches() {
    for done in searches.advance(in: drivers, searchView, budget: limits.queryBudget) {
      let search = done.running
      counters.searches += 1
      if search.turns > 0 { counters.searchesContinued += 1 }
      emit(.queryResult(search.session, search.result, replyTo: search.replyTo), to: search.session.outlet)
    }
    if !searches.isEmpty { hasMoreDue = true }
  }
}
