// A search in one turn: through the drivers of the index, then hit by hit to reports.
import HubGeo
import HubMessages

extension RunningSearch {
  /// Whether this turn has budget for it. A search for the nearest with its full budget in one turn needs no second
  /// pass, so it waits for such a turn.
  func mayBegin(isFirst: Bool, _ left: SearchBudget, of whole: SearchBudget) -> Bool {
    guard !isFirst else { return true }
    guard case .nearest = phase else { return left.cells > 0 && left.candidates > 0 }
    return left.cells > whole.cells / 2 && left.candidates > whole.candidates / 2
  }

  /// True where the search is complete.
  mutating func advance(in drivers: borrowing Drivers, _ view: SearchView, _ budget: inout SearchBudget) -> Bool {
    while budget.cells > 0, budget.candidates > 0 {
      switch phase {
      case .nearest: findNearest(in: drivers, view, &budget)
      case .scanning(let cursor, let pass): scan(drivers, view, from: cursor, pass, &budget)
      case .reporting(let next): if report(drivers, view, from: next, &budget) { return true }
      }
    }
    return false
  }

  /// The result as it is answered.
  var result: QueryResult {
    let isArea = if case .nearby = search.area { false } else { true }
    // Hits are subtracted, not reports: some of the hits may have left since.
    return .drivers(DriverList(drivers: reports, more: isArea ? matches - hits.count : 0))
  }

  // MARK: Searching

  private mutating func findNearest(in drivers: borrowing Drivers, _ view: SearchView, _ budget: inout SearchBudget) {
    let (filter, audience) = (search.filter, audience)
    // This search cannot be interrupted, so it may take what `limit` hits need, of what this turn has left.
    var share = budget
    share.candidates = min(budget.candidates, max(limit * 5 / 4, budget.candidates / weight))
    let given = share.candidates
    let outcome = drivers.index.nearest(
      to: center, limit: limit, withinMeters: boundMeters + slackMeters, spending: &share, into: &hits
    ) { driver, label in drivers.matches(driver, label, filter, audience, at: view.now.timestamp) }
    budget.cells = share.cells
    budget.candidates = max(0, budget.candidates - (given - share.candidates) * weight)
    let isFull = hits.count == limit
    // A rider's hit is shown up to the slack nearer or farther than it is.
    let farthest = hits.lazy.map(\.distanceMeters).max() ?? 0
    let reach = farthest + 2 * slackMeters
    switch (outcome, audience) {
    case (.complete, .ops) where filter.includesStale: scanStale()
    case (.complete, .ops):
      DriverHit.sort(&hits, from: 0)
      phase = .reporting(0)
    case (.complete, .riders) where hits.isEmpty: phase = .reporting(0)
    case (.complete, .riders), (.exhausted, _): scan(within: isFull ? reach : .infinity)
    }
  }

  private mutating func scan(
    _ drivers: borrowing Drivers, _ view: SearchView, from cursor: SearchCursor, _ pass: Pass,
    _ budget: inout SearchBudget
  ) {
    let given = SearchBudget(cells: max(1, budget.cells / cellWeight), candidates: max(1, budget.candidates / weight))
    var share = given
    let next: SearchCursor?
    switch pass {
    case .current: next = scan(drivers.index, drivers, view, from: cursor, &share)
    case .stale: next = scan(drivers.staleIndex, drivers, view, from: cursor, &share)
    }
    budget.cells = max(0, budget.cells - (given.cells - share.cells) * cellWeight)
    budget.candidates = max(0, budget.candidates - (given.candidates - share.candidates) * weight)
    if let next {
      phase = .scanning(next, pass)
      // Where the budget of cells is used up the turn is over, whatever else is left.
      if share.candidates > 0 { budget.cells = 0 } else { budget.candidates = 0 }
    } else if pass == .current, search.filter.includesStale {
      phase = .scanning(.start, .stale)
    } else {
      endScan()
    }
  }

  private mutating func scan(
    _ index: borrowing DriverIndex, _ drivers: borrowing Drivers, _ view: SearchView, from cursor: SearchCursor,
    _ budget: inout SearchBudget
  ) -> SearchCursor? {
    var running = self
    // Moved out, or it would be copied on write.
    hits = []
    marks = HitMarks()
    defer { self = running }
    return index.traverse(from: cursor, spending: &budget) { cell in
      running.mayHave(cell)
    } visit: { entry in
      running.look(at: entry, index, drivers, view)
    }
  }

  @inline(__always)
  private mutating func look(
    at entry: DriverIndex.Entry, _ index: borrowing DriverIndex, _ drivers: borrowing Drivers, _ view: SearchView
  ) {
    guard drivers.matches(entry.driver, entry.label, search.filter, audience, at: view.now.timestamp) else { return }
    var vector = entry.vector
    if audience == .riders {
      guard let place = index.position(of: entry.driver) else { return }
      let shown = PublicGrid.snapped(place)
      guard has(shown) else { return }
      vector = UnitVector(shown)
    } else if case .nearby = search.area {
    } else {
      guard let place = index.position(of: entry.driver), has(place) else { return }
    }
    let distance = point.vector.distance(to: vector)
    guard distance <= boundMeters else { return }
    take(DriverHit(driver: entry.driver, distanceMeters: distance, tie: tie(of: entry.driver)))
  }

  // MARK: Reports

  /// The cost of one report, in candidates: a driver's record is rarely in cache, its extrapolation takes some sines
  /// and a rider's pseudonym a hash, and the report is in new memory.
  private var reportWeight: Int { audience == .ops ? 24 : 32 }

  /// True where all hits are reported.
  private mutating func report(
    _ drivers: borrowing Drivers, _ view: SearchView, from first: Int, _ budget: inout SearchBudget
  ) -> Bool {
    if first == 0 { reports.reserveCapacity(hits.count) }
    let last = min(hits.count, first + max(1, budget.candidates / reportWeight))
    budget.candidates = max(0, budget.candidates - (last - first) * reportWeight)
    for index in first..<last {
      if let report = report(of: hits[index].driver, drivers, view) { reports.append(report) }
    }
    phase = .reporting(last)
    return last == hits.count
  }

  /// The driver's report; nil where it has gone, or no longer matches.
  private func report(of driver: UInt32, _ drivers: borrowing Drivers, _ view: SearchView) -> DriverReport? {
    let isThere =
      drivers.index.contains(driver) || search.filter.includesStale && drivers.staleIndex.contains(driver)
    let label = drivers.label(of: Int(driver))
    guard isThere, drivers.matches(driver, label, search.filter, audience, at: view.now.timestamp) else { return nil }
    var report: DriverReport
    switch audience {
    case .ops:
      report = drivers.report(of: Int(driver), at: view.now.timestamp)
      report.isOnline = search.filter.includesStale ? report.isOnline : nil
    case .riders: report = drivers.publicReport(of: Int(driver), view)
    }
    guard let place = report.position?.coordinate else { return nil }
    let distance = point.vector.distance(to: UnitVector(place))
    let unit = audience == .ops ? 100.0 : 1
    report.distance = (distance * unit).rounded() / unit
    return report
  }
}
