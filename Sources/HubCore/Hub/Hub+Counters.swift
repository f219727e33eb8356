// The hub's counters, and the sizes of its tables.

extension Hub {
  /// The counters with the present size of each table. Called once a second, where they are shown, to keep it out of
  /// turns.
  public mutating func shownCounters() -> HubCounters {
    var shown = counters.shown(drivers, trips, channels, fences, offers, credentials)
    shown.set(searches, driverListings, areas: (areas.count, areas.guestCount), backlog, lookups)
    return shown
  }
}

extension HubCounters {
  fileprivate func shown(
    _ drivers: borrowing Drivers, _ trips: borrowing Trips, _ channels: borrowing Channels,
    _ fences: borrowing Fences, _ offers: borrowing Offers, _ credentials: borrowing Credentials
  ) -> HubCounters {
    var shown = self
    drivers.countEntries(into: &shown)
    trips.countEntries(into: &shown)
    channels.countEntries(into: &shown)
    fences.countEntries(into: &shown)
    offers.countEntries(into: &shown)
    credentials.countEntries(into: &shown)
    return shown
  }

  fileprivate mutating func set(
    _ searches: Searches, _ listings: DriverListings, areas: (count: Int, guestCount: Int), _ backlog: Backlog,
    _ lookups: HistoryLookups
  ) {
    set(.areas, areas.count)
    set(.guests, areas.guestCount)
    set(.queries, searches.count)
    set(.driverLists, listings.count)
    set(.waitingFixes, max(backlog.fixes, lookups.fixes))
    set(.waitingResumes, backlog.waitingResumes)
  }

  /// Updates the sizes that are known without a look into a table.
  mutating func updateSizes(
    _ drivers: borrowing Drivers, _ trips: borrowing Trips, _ channels: borrowing Channels, answersHeld: Int
  ) {
    self.drivers = drivers.count
    self.trips = trips.count
    self.channels = channels.count
    eventsPublished = channels.eventsPublished
    deliveries = channels.deliveries
    driversOnline = drivers.onlineCount
    eventsKept = channels.eventCount
    self.answersHeld = answersHeld
  }
}
