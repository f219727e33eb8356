// What must hold of the simulated hub's counters and tables, whatever has happened.
import HubMessages

@testable import HubCore

extension Simulation {
  /// Every fix that came ends in exactly one counter, and the positions published are the fixes accepted.
  func checkCounters() throws(SimulationFailure) {
    let counters = hub.shownCounters()
    let ended =
      counters.fixesAccepted - counters.fixesReleased + counters.fixesHistory + counters.fixesDuplicate
      + counters.fixesHeld + counters.fixesRefused.reduce(0, +) + counters.fixesUnreadable + counters.fixesForbidden
      + counters.fixesOrphaned + counters.fixesPutOff
    guard ended == counters.fixesReceived else {
      throw fail("\(counters.fixesReceived) fixes came, \(ended) are counted")
    }
    guard counters.positionsPublished == counters.fixesAccepted else { throw fail("not one position for each fix") }
    guard counters.entries(.events) <= limits.events, counters.entries(.channels) <= limits.channels,
      counters.entries(.trips) <= limits.trips, counters.entries(.drivers) <= limits.drivers
    else { throw fail("a table is over its limit") }
  }

  /// Who counts as online was heard of in the last 60 s, or 2.5 of its intervals, and a trip that ended longer ago is
  /// closed.
  func checkPresence() throws(SimulationFailure) {
    var online = 0
    for driver in Cast.driverIDs {
      guard let index = hub.drivers.find(driver), !hub.drivers[index].isStale else { continue }
      online += 1
      let heard = max(hub.drivers[index].lastFix, hub.drivers[index].samplingAdvised)
      let advised = 2.5 * Double(hub.drivers[index].samplingInterval)
      let sent = min(2.5 * Double(hub.drivers[index].sendingInterval), 900)
      let silence = Int64((2 + max(60, advised, sent)) * 1e9)
      if uptime >= heard + silence { throw fail("\(driver) is silent and still online") }
    }
    let counted = hub.shownCounters().driversOnline
    if online != counted { throw fail("\(counted) online, counted \(online)") }
    for trip in 0..<Cast.trips {
      guard let ended = model.trips[trip]?.ended, let index = hub.trips.find(Cast.tripIDs[trip]) else { continue }
      if uptime >= ended + 62_000_000_000, !hub.trips[index].isClosed { throw fail("trip \(trip) is not closed") }
      if uptime < ended + 60_000_000_000, hub.trips[index].isClosed { throw fail("trip \(trip) was closed early") }
      if uptime >= ended + 86_402_000_000_000 { throw fail("trip \(trip) is not forgotten") }
    }
  }

  /// Each combination of vehicle type and tags is there once, while a driver has it.
  private func checkProfiles() throws(SimulationFailure) {
    var inUse: Set<Int32> = []
    for driver in Cast.driverIDs {
      if let index = hub.drivers.find(driver), hub.drivers[index].profile >= 0 {
        inUse.insert(hub.drivers[index].profile)
      }
    }
    guard hub.drivers.profiles.count == inUse.count else {
      throw fail("\(hub.drivers.profiles.count) profiles, \(inUse.count) in use")
    }
  }

  /// The tables hold what the model says, and nothing else.
  func checkTables() throws(SimulationFailure) {
    try checkProfiles()
    try checkFences()
    var events = 0
    var channels = 0
    for topic in 0..<Cast.topics {
      guard let index = hub.channels.find(Cast.channels[topic]) else {
        if model.subscribers[topic].contains(where: { $0 > 0 }) { throw fail("\(Cast.channels[topic]) is gone") }
        continue
      }
      let record = hub.channels.record(index)
      channels += 1
      events += record.events.count
      var outlets = OutletSet()
      for loop in model.subscribers[topic].indices where model.subscribers[topic][loop] > 0 { outlets.insert(loop) }
      if record.outlets != outlets || record.subscribers != model.subscribers[topic].reduce(0, +) {
        throw fail("\(Cast.channels[topic]) has \(record.subscribers) subscribers, not \(model.subscribers[topic])")
      }
    }
    if channels != hub.channels.count || events != hub.channels.eventCount { throw fail("channels or events are lost") }
    if hub.trips.count != model.trips.count(where: { $0 != nil }) { throw fail("\(hub.trips.count) trips") }
    for driver in 0..<Cast.drivers {
      guard let index = hub.drivers.find(Cast.driverIDs[driver]) else { continue }
      let active = model.trips.count { $0?.driver == driver && $0!.status.occupiesDriver }
      if Int(hub.drivers[index].activeTrips) != active, hub.counters.hits(.drivers) == 0 {
        throw fail("driver \(driver) has \(hub.drivers[index].activeTrips) trips, not \(active)")
      }
      if hub.drivers[index].session != model.sessions[driver] { throw fail("driver \(driver) has another session") }
    }
  }

  /// With nothing under way, every subscriber has seen everything.
  func checkViews() throws(SimulationFailure) {
    for loop in loops {
      for (slot, state) in loop.slots.enumerated() {
        for topic in 0..<Cast.topics {
          guard let seen = state.views[topic] else { continue }
          guard let index = hub.channels.find(Cast.channels[topic]), hub.channels.sequence(index) == seen else {
            throw fail("loop \(loop.number), slot \(slot) has seen \(seen) of \(Cast.channels[topic])")
          }
        }
      }
    }
  }

  func checkNothingLeft() throws(SimulationFailure) {
    let counters = hub.shownCounters()
    guard counters.entries(.drivers) == 0, counters.driversOnline == 0, counters.entries(.trips) == 0,
      counters.entries(.channels) == 0, counters.entries(.events) == 0, hub.drivers.count == 0, hub.trips.count == 0,
      hub.deadlines.count == 0,
      hub.drivers.fixTimes.count == 0, hub.drivers.profiles.count == 0, hub.drivers.index.count == 0,
      hub.fences.count == 0, hub.fences.stays.count == 0, hub.fences.pairs.count == 0,
      hub.fences.table.index.cellCount == 0
    else { throw fail("something is left at the end: \(counters), \(hub.deadlines.count) deadlines") }
  }
}
