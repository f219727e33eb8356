// Questions about drivers: one is answered at once, a search over some turns (Searches.swift).
import HubMessages

extension Hub {
  private var searchView: SearchView { SearchView(audience: audience, now: now) }

  mutating func answer(_ session: SessionRef, _ query: HubQuery, _ replyTo: MessageID?) {
    switch query {
    case .driver(let id):
      let found = drivers.find(id).map { QueryResult.driver(drivers.report(of: $0, at: now.timestamp)) }
      emit(.queryResult(session, found, replyTo: replyTo), to: session.outlet)
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
