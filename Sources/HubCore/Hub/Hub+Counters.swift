// What the hub shows of itself: its counters, and how full its tables are.

extension Hub {
  /// What the hub counts, with how many entries each table has now. Called where it is shown, once a second: a turn
  /// does not work out what nobody reads.
  public mutating func shownCounters() -> HubCounters {
    var shown = counters
    drivers.countEntries(into: &shown)
    trips.countEntries(into: &shown)
    channels.countEntries(into: &shown)
    fences.countEntries(into: &shown)
    credentials.countEntries(into: &shown)
    shown.set(.areas, areas.count)
    shown.set(.queries, searches.count)
    shown.set(.driverLists, driverListings.count)
    shown.set(.waitingFixes, max(backlog.fixes, lookups.fixes))
    shown.set(.waitingResumes, backlog.waitingResumes)
    return shown
  }

  /// What is known without a look into a table.
  mutating func updateSizes() { counters.updateSizes(drivers, trips, channels, answersHeld: storage.held.answers) }
}

extension HubCounters {
  fileprivate mutating func updateSizes(
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
