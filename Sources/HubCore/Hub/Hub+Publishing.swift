// Events about drivers, trips and fences, and raw fixes: on which channels each is published.
import HubMessages

extension Hub {
  /// Publishes an event on a channel: numbered, kept for recovery, sent when stored. `body` gets its number.
  mutating func publishEvent(on channel: Int, _ body: (UInt64) -> Publication.Body) {
    channels.publish(eventOn: channel, at: now.timestamp, &storage, counting: &counters, body)
  }

  /// Emits an output; with `awaitsStorage`, once the state that it shows is stored.
  mutating func emit(_ output: HubOutput, to outlet: UInt32, awaitsStorage: Bool) {
    if awaitsStorage { emitStored(output, to: outlet) } else { emit(output, to: outlet) }
  }

  /// Publishes an event on the driver's channel, and on that of the trip that it serves and that its fixes named last.
  mutating func publishOfDriver(_ driver: Int, onTrip: Bool, _ body: (UInt64) -> Publication.Body) {
    if let channel = eventChannel(ofDriver: driver) { publishEvent(on: channel, body) }
    guard onTrip, let trip = lastTrip(of: driver), trips[trip].isServed(by: drivers[driver].compactID),
      let channel = eventChannel(ofTrip: trip)
    else { return }
    publishEvent(on: channel, body)
  }

  /// Publishes a raw fix with its outcome, for ops who have subscribed to the driver's raw fixes.
  @inline(never)
  mutating func publish(raw fix: Fix, _ outcome: FixOutcome, driver: Int) {
    let raw = drivers.rawFix(fix, outcome, of: driver)
    channels.publish(raw, on: Int(drivers[driver].rawChannel), at: now.timestamp)
  }

  /// Keeps and publishes the process's figures of the next seconds. With `isHistory` they only replace the kept ones.
  mutating func take(_ seconds: [HubFigures], isHistory: Bool = false) {
    figures.keep(seconds, isHistory: isHistory, atMost: limits.figures)
    if !isHistory { for second in seconds { channels.publish(second, at: now.timestamp) } }
  }

  /// The driver's channel, created if needed for an event; nil at the limit, or for a driver elsewhere.
  mutating func eventChannel(ofDriver driver: Int) -> Int? {
    if drivers[driver].isElsewhere { return nil }  // another hub numbers its events
    return eventChannel(drivers[driver].channel, .driver(drivers[driver].id))
  }

  /// The trip's channel, created if needed for an event; nil at the limit of channels.
  mutating func eventChannel(ofTrip trip: Int) -> Int? { eventChannel(trips[trip].channel, .trip(trips[trip].id)) }

  /// The fence's channel, created if needed for an event; nil at the limit of channels.
  mutating func eventChannel(ofFence id: Identifier) -> Int? { eventChannel(nil, .fence(id)) }

  private mutating func eventChannel(_ known: Int?, _ name: Channel) -> Int? {
    let channel = channels.forEvents(known, name, counting: &counters)
    if known == nil { link(name, to: channel) }
    return channel
  }

  /// Stores a channel's index with its driver or trip, to publish without a look-up; nil where there is none.
  mutating func link(_ name: Channel, to index: Int?) {
    switch name {
    case .trip(let id): if let trip = trips.find(id) { trips.link(trip, to: index) }
    case .driver(let id): if let driver = drivers.find(id) { drivers.link(driver, to: index) }
    case .raw(let id): if let driver = drivers.find(id) { drivers.link(driver, toRaw: index) }
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .stats: break
    }
  }
}
