// Events about drivers, trips and fences, and fixes as they were measured: on which channels each is published.
import HubMessages

extension Hub {
  /// Publishes an event on a channel: numbered, kept for recovery, shown when it is stored. `body` gets its number.
  mutating func publishEvent(on channel: Int, _ body: (UInt64) -> Publication.Body) {
    channels.publish(eventOn: channel, at: now.timestamp, &storage, counting: &counters, body)
  }

  /// `isStored`: it tells of what must be stored first. That nothing can be stored must be heard at once.
  mutating func emit(_ output: HubOutput, to outlet: UInt32, isStored: Bool) {
    if isStored { emitStored(output, to: outlet) } else { emit(output, to: outlet) }
  }

  /// Publishes an event on the driver's channel, and on that of the trip that its fixes named last, while that goes on.
  mutating func publishOfDriver(_ driver: Int, onTrip: Bool, _ body: (UInt64) -> Publication.Body) {
    if let channel = eventChannel(ofDriver: driver) { publishEvent(on: channel, body) }
    guard onTrip, let trip = lastTrip(of: driver), !trips[trip].status.isFinal,
      let channel = eventChannel(ofTrip: trip)
    else { return }
    publishEvent(on: channel, body)
  }

  /// A fix as it was measured, with the outcome, where ops have asked for the driver's.
  @inline(never)
  mutating func publish(raw fix: Fix, _ outcome: FixOutcome, driver: Int) {
    let raw = drivers.rawFix(fix, outcome, of: driver)
    channels.publish(raw, on: Int(drivers[driver].rawChannel), at: now.timestamp)
  }

  /// The driver's channel, made and kept for its events; nil at the limit of channels, and where it is not here.
  mutating func eventChannel(ofDriver driver: Int) -> Int? {
    drivers.eventChannel(of: driver, &channels, counting: &counters)
  }

  /// The trip's channel, made and kept for its events; nil at the limit of channels.
  mutating func eventChannel(ofTrip trip: Int) -> Int? { trips.eventChannel(of: trip, &channels, counting: &counters) }

  /// The fence's channel, made and kept for its events; nil at the limit of channels.
  mutating func eventChannel(ofFence id: Identifier) -> Int? {
    channels.forEvents(nil, .fence(id), counting: &counters)
  }
}
