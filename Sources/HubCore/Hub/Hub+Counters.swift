// The hub's counters, and the sizes of its tables.

extension Hub {
  /// The counters with what the tables know. Called once a second, where they are shown, to keep it out of turns.
  public func shownCounters() -> HubCounters {
    var shown = TableSizes.shown(counters, drivers, trips, channels, fences, offers, credentials)
    TableSizes.set(searches, driverListings, areas, backlog, lookups, storage, in: &shown)
    return shown
  }
}

/// Sizes of the hub's tables, for its counters.
enum TableSizes {
  fileprivate static func shown(
    _ counters: HubCounters, _ drivers: borrowing Drivers, _ trips: borrowing Trips, _ channels: borrowing Channels,
    _ fences: borrowing Fences, _ offers: borrowing Offers, _ credentials: borrowing Credentials
  ) -> HubCounters {
    var shown = counters
    drivers.countEntries(into: &shown)
    trips.countEntries(into: &shown)
    channels.countEntries(into: &shown)
    fences.countEntries(into: &shown)
    offers.countEntries(into: &shown)
    credentials.countEntries(into: &shown)
    return shown
  }

  fileprivate static func set(
    _ searches: Searches, _ listings: DriverListings, _ areas: borrowing AreaTable, _ backlog: Backlog,
    _ lookups: HistoryLookups, _ storage: borrowing HubStorage, in shown: inout HubCounters
  ) {
    shown.set(.areas, areas.count)
    shown.set(.guests, areas.guestCount)
    shown.set(.queries, searches.count)
    shown.set(.driverLists, listings.count)
    shown.set(.waitingFixes, max(backlog.fixes, lookups.fixes))
    shown.set(.waitingResumes, backlog.waitingResumes)
    shown.fixesWaiting = backlog.fixes + lookups.fixes
    shown.answersHeld = storage.held.answers
  }
}
