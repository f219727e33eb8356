// Questions about drivers: answered from the index, a bounded part in each turn, so that no position waits for them.
import HubGeo
import HubMessages

extension Hub {
  mutating func answer(_ session: SessionRef, _ query: HubQuery, _ replyTo: MessageID?) {
    switch query {
    case .driver(let id):
      let found = findDriver(id).map { QueryResult.driver(report(of: $0)) }
      emit(.queryResult(session, found, replyTo: replyTo), to: session.loop)
    case .drivers(let search, let audience, let actor):
      let identity = identityHash(of: actor)
      if let refusal = refusalOfQuery(by: actor, identity, session, replyTo) {
        counters.searchesRefused += 1
        return reply(.error(refusal), to: session)
      }
      searchesBySession[session, default: 0] += 1
      searchesByIdentity[identity, default: 0] += 1
      searchesBegun += 1
      var running = RunningSearch(
        search, audience, maximumLimit: limits.queryHits, session: session, identity: identity, replyTo: replyTo)
      if audience == .everybody {
        running.tieBreak = self.audience.tieBreak(search: searchesBegun, at: now.uptime)
      }
      searches.append(SearchBox(running))
    }
  }

  /// An identity as tables of the hub know it: a hash with the hub's seed, by which nobody can choose to be another's.
  func identityHash(of actor: Actor) -> UInt64 { actor.id.text.hashValue(seed: seed ^ UInt64(actor.role.rawValue)) }

  /// Why there is no room for one more query; nil where there is.
  private mutating func refusalOfQuery(
    by actor: Actor, _ identity: UInt64, _ session: SessionRef, _ replyTo: MessageID?
  ) -> ErrorReply? {
    var refusal = ErrorReply(
      code: .rateLimited, message: "too many queries are under way", replyTo: replyTo, retryAfter: 1)
    if searchesBySession[session, default: 0] >= limits.queriesPerSession {
      counters.count(.queriesPerSession)
      refusal.message = "a session has at most \(limits.queriesPerSession) queries under way"
    } else if searchesByIdentity[identity, default: 0] >= limits.queriesPerIdentity[actor.role] {
      counters.count(.queriesPerIdentity)
      refusal.message = actor.role.queriesLimit(limits.queriesPerIdentity)
      refusal.isOwnLimit = true
    } else if searches.count >= actor.role.share(of: limits.queries) {
      counters.count(full: .queries)
    } else {
      return nil
    }
    return refusal
  }

  /// Goes on with what is under way, one after the other, until the turn's budget is gone. Who needs more than that has
  /// its next turn when all others had theirs.
  mutating func advanceSearches() {
    guard !searches.isEmpty else { return }
    var all: [SearchBox] = []
    swap(&all, &searches)
    var budget = limits.queryBudget
    var place = 0
    var unfinished: [SearchBox] = []
    while place < all.count, mayBegin(all[place].running, isFirst: place == 0, budget) {
      let box = all[place]
      if advance(&box.running, &budget) {
        finish(box.running)
        budget.candidates = max(0, budget.candidates - Hub.searchWeight)
      } else {
        box.running.turns += 1
        unfinished.append(box)
      }
      place += 1
    }
    searches = all[place...] + unfinished
    if !searches.isEmpty { hasMoreDue = true }
  }

  /// A search for the nearest needs no second way if it has the budget for the first: it waits for a turn that has it.
  private func mayBegin(_ search: borrowing RunningSearch, isFirst: Bool, _ left: SearchBudget) -> Bool {
    guard !isFirst else { return true }
    guard case .nearest = search.phase else { return left.cells > 0 && left.candidates > 0 }
    return left.cells > limits.queryBudget.cells / 2 && left.candidates > limits.queryBudget.candidates / 2
  }

  private mutating func finish(_ search: RunningSearch) {
    counters.searches += 1
    let left = searchesBySession[search.session, default: 0] - 1
    searchesBySession[search.session] = left > 0 ? left : nil
    let leftOfIdentity = searchesByIdentity[search.identity, default: 0] - 1
    searchesByIdentity[search.identity] = leftOfIdentity > 0 ? leftOfIdentity : nil
    if search.turns > 0 { counters.searchesContinued += 1 }
    let isArea = if case .nearby = search.search.area { false } else { true }
    let list = DriverList(drivers: search.reports, more: isArea ? max(0, search.matches - search.reports.count) : 0)
    emit(.queryResult(search.session, .drivers(list), replyTo: search.replyTo), to: search.session.loop)
  }

  /// True where the search is over.
  private func advance(_ search: inout RunningSearch, _ budget: inout SearchBudget) -> Bool {
    while budget.cells > 0, budget.candidates > 0 {
      switch search.phase {
      case .nearest: findNearest(&search, &budget)
      case .scanning(let cursor, let pass): scan(&search, from: cursor, pass, &budget)
      case .reporting(let next):
        if report(&search, from: next, &budget) { return true }
      }
    }
    return false
  }

  // MARK: Searching

  private func findNearest(_ search: inout RunningSearch, _ budget: inout SearchBudget) {
    let (filter, audience) = (search.search.filter, search.audience)
    // It can't be interrupted: what it may look at is as much as one turn has time for, but enough for so many hits.
    var share = budget
    share.candidates = min(budget.candidates, max(search.limit * 5 / 4, budget.candidates / search.weight))
    let given = share.candidates
    let outcome = index.nearest(
      to: search.center, limit: search.limit, withinMeters: search.boundMeters + search.slackMeters,
      spending: &share, into: &search.hits
    ) { driver, label in matches(driver, label, filter, audience) }
    budget.cells = share.cells
    budget.candidates = max(0, budget.candidates - (given - share.candidates) * search.weight)
    let isFull = search.hits.count == search.limit
    // Of riders' hits, each is shown up to the slack nearer or farther than it is.
    let farthest = search.hits.lazy.map(\.distanceMeters).max() ?? 0
    let reach = farthest + 2 * search.slackMeters
    switch (outcome, audience) {
    case (.complete, .ops) where filter.includesStale: search.scanStale()
    case (.complete, .ops):
      DriverHit.sort(&search.hits, from: 0)
      search.phase = .reporting(0)
    case (.complete, .everybody) where search.hits.isEmpty: search.phase = .reporting(0)
    case (.complete, .everybody), (.exhausted, _): search.scan(within: isFull ? reach : .infinity)
    }
  }

  private func scan(
    _ search: inout RunningSearch, from cursor: SearchCursor, _ pass: RunningSearch.Pass, _ budget: inout SearchBudget
  ) {
    let given = SearchBudget(
      cells: max(1, budget.cells / search.cellWeight), candidates: max(1, budget.candidates / search.weight))
    var share = given
    let next: SearchCursor?
    switch pass {
    case .current: next = scan(index, &search, from: cursor, &share)
    case .stale: next = scan(staleIndex, &search, from: cursor, &share)
    }
    budget.cells = max(0, budget.cells - (given.cells - share.cells) * search.cellWeight)
    budget.candidates = max(0, budget.candidates - (given.candidates - share.candidates) * search.weight)
    if let next {
      search.phase = .scanning(next, pass)
      // Where the cells have run out the turn is over, whatever is left of the rest.
      if share.candidates > 0 { budget.cells = 0 } else { budget.candidates = 0 }
    } else if pass == .current, search.search.filter.includesStale {
      search.phase = .scanning(.start, .stale)
    } else {
      search.endScan()
    }
  }

  private func scan(
    _ index: borrowing DriverIndex, _ search: inout RunningSearch, from cursor: SearchCursor,
    _ budget: inout SearchBudget
  ) -> SearchCursor? {
    var running = search
    // What it changes is its own then, or it would be copied.
    search.hits = []
    search.marks = HitMarks()
    defer { search = running }
    return index.traverse(from: cursor, limit: .max, spending: &budget) { cell in
      running.mayHave(cell)
    } visit: { entry in
      look(at: entry, index, &running)
      return false
    }
  }

  @inline(__always)
  private func look(
    at entry: DriverIndex.Entry, _ index: borrowing DriverIndex, _ search: inout RunningSearch
  ) {
    guard matches(entry.driver, entry.label, search.search.filter, search.audience) else { return }
    var vector = entry.vector
    if search.audience == .everybody {
      guard let place = index.position(of: entry.driver) else { return }
      let shown = PublicGrid.snapped(place)
      guard search.has(shown) else { return }
      vector = UnitVector(shown)
    } else if case .nearby = search.search.area {
    } else {
      guard let place = index.position(of: entry.driver), search.has(place) else { return }
    }
    let distance = search.point.vector.distance(to: vector)
    guard distance <= search.boundMeters else { return }
    search.take(DriverHit(driver: entry.driver, distanceMeters: distance, tie: search.tie(of: entry.driver)))
  }

  /// Whether a driver is what is asked for, and to be seen by who asks.
  @inline(__always)
  private func matches(_ driver: UInt32, _ label: DriverLabel, _ filter: DriverFilter, _ audience: Audience) -> Bool {
    if audience == .everybody, label.status != .available { return false }
    if let status = filter.status, label.status != status { return false }
    if filter.vehicleType != nil || !filter.tags.isEmpty {
      guard profiles.matches(label.profile, vehicleType: filter.vehicleType, tags: filter.tags) else { return false }
    }
    guard let maxAge = filter.maxAge else { return true }
    guard let newest = drivers[Int(driver)].position?.timestamp else { return false }
    let age = drivers[Int(driver)].clock.age(of: newest, at: now.timestamp)
    // What a rider may not see it may not find out by asking with one `maxAge` after the other.
    return (audience == .ops ? age : PublicAudience.rounded(age: age)) <= maxAge
  }

  // MARK: Reports

  /// What one report costs of the budget, in candidates: a driver's record is rarely in cache, its prediction takes
  /// some sines and a rider's pseudonym a hash, and the report lies in memory that nobody has touched yet.
  private static func reportWeight(_ audience: Audience) -> Int { audience == .ops ? 24 : 32 }
  /// What a search costs besides: it is taken up, answered and forgotten.
  private static var searchWeight: Int { 64 }

  /// True where all hits are made into reports.
  private func report(_ search: inout RunningSearch, from first: Int, _ budget: inout SearchBudget) -> Bool {
    if first == 0 { search.reports.reserveCapacity(search.hits.count) }
    let weight = Hub.reportWeight(search.audience)
    let last = min(search.hits.count, first + max(1, budget.candidates / weight))
    budget.candidates = max(0, budget.candidates - (last - first) * weight)
    for hit in search.hits[first..<last] {
      if let report = report(of: Int(hit.driver), search) { search.reports.append(report) }
    }
    search.phase = .reporting(last)
    return last == search.hits.count
  }

  /// The driver as the search shows it; nil where it has gone, or changed, while that was under way.
  private func report(of driver: Int, _ search: RunningSearch) -> DriverReport? {
    let handle = UInt32(driver)
    let isThere = index.contains(handle) || search.search.filter.includesStale && staleIndex.contains(handle)
    guard isThere, matches(handle, label(of: driver), search.search.filter, search.audience) else { return nil }
    var report: DriverReport
    switch search.audience {
    case .ops:
      report = self.report(of: driver)
      report.isOnline = search.search.filter.includesStale ? report.isOnline : nil
    case .everybody: report = publicReport(of: driver)
    }
    guard let place = report.position?.coordinate else { return nil }
    let distance = search.point.vector.distance(to: UnitVector(place))
    let unit = search.audience == .ops ? 100.0 : 1
    report.distance = (distance * unit).rounded() / unit
    return report
  }

  /// A driver as ops and the driver itself see it.
  func report(of driver: Int) -> DriverReport {
    var report = DriverReport(driverID: drivers[driver].id, status: drivers[driver].status)
    let profile = profiles.profile(drivers[driver].profile)
    report.vehicleType = profile.vehicleType
    report.tags = profile.tags
    if let newest = drivers[driver].position {
      report.position = DriverReport.Place(
        coordinate: newest.coordinate, heading: newest.heading, speed: newest.speed, accuracy: newest.accuracy,
        age: drivers[driver].clock.age(of: newest.timestamp, at: now.timestamp), timestamp: newest.published,
        timeSource: newest.timeSource)
    }
    report.predicted = predicted(driver)
    report.isOnline = !drivers[driver].isStale
    return report
  }

  /// A driver as riders see it: what `PublicAudience` says.
  private func publicReport(of driver: Int) -> DriverReport {
    let pseudonym = audience.pseudonym(
      of: drivers[driver].id, lastTripEnded: drivers[driver].lastTripEnded, at: now.timestamp)
    var report = DriverReport(driverID: PublicAudience.name(pseudonym), status: drivers[driver].status)
    report.vehicleType = profiles.profile(drivers[driver].profile).vehicleType
    if let newest = drivers[driver].position {
      let age = drivers[driver].clock.age(of: newest.timestamp, at: now.timestamp)
      report.position = DriverReport.Place(
        coordinate: PublicGrid.snapped(newest.coordinate), heading: nil, speed: nil, accuracy: nil,
        age: PublicAudience.rounded(age: age), timestamp: nil)
    }
    return report
  }

  /// Where an online driver should be now; nil where that is where it was, and where the fix is older than
  /// `Position.longestPrediction`.
  private func predicted(_ driver: Int) -> Coordinate? {
    guard !drivers[driver].isStale, let newest = drivers[driver].position else { return nil }
    let time = drivers[driver].clock.sessionTime(at: now.timestamp)
    guard time.seconds(since: newest.timestamp) <= Position.longestPrediction else { return nil }
    let place = newest.predicted(at: time).published
    return place == newest.coordinate ? nil : place
  }

  // MARK: Labels

  @inline(__always)
  func label(of driver: Int) -> DriverLabel {
    let status = drivers[driver].activeTrips > 0 ? DriverStatus.onTrip : drivers[driver].reported
    return DriverLabel(status: status, profile: drivers[driver].profile)
  }

  /// What the driver is has changed while it stays where it is.
  mutating func relabel(_ driver: Int) {
    let label = label(of: driver)
    index.label(UInt32(driver), label)
    staleIndex.label(UInt32(driver), label)
  }
}
