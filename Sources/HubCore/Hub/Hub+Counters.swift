// What the hub shows of itself: its counters, and how full its tables are.

extension Hub {
  /// What the hub counts, with how many entries each table has now. Called where it is shown, once a second: a turn
  /// does not work out what nobody reads.
  public mutating func shownCounters() -> HubCounters {
    var shown = counters
    for table in HubTable.allCases { shown.tableEntries[Int(table.rawValue)] = entries(of: table) }
    return shown
  }

  private mutating func entries(of table: HubTable) -> Int {
    switch table {
    case .drivers: drivers.count
    case .trips: trips.count
    case .channels: channels.count
    case .events: channels.eventCount
    case .eventContents: channels.contentBytes
    case .profiles: drivers.profiles.count
    case .areas: areas.count
    case .queries: searches.count
    case .tripLists: listings.count
    case .routePoints: trips.legs.routePoints
    case .fences: fences.count
    case .fencePositions: fences.table.positions
    case .roamingFences: fences.table.roaming.count
    case .fenceStays: fences.stays.count
    case .fencePairs: fences.pairs.count
    case .fixTimes: drivers.countWithFixTimes
    case .missedFixes: drivers.missedFixes
    case .waitingFixes: max(backlog.fixes, lookups.fixes)
    case .waitingResumes: backlog.waitingResumes
    }
  }

  /// The sizes that are known without a look into a table.
  mutating func updateSizes() {
    counters.drivers = drivers.count
    counters.trips = trips.count
    counters.channels = channels.count
    counters.driversOnline = drivers.onlineCount
    counters.profiles = drivers.profiles.count
    counters.areasWatched = areas.watchedCount
    counters.fences = fences.count
    counters.fenceStays = fences.stays.count
    counters.fencePairs = fences.pairs.count
    counters.eventsKept = channels.eventCount
    counters.answersHeld = storage.held.answers
  }
}
