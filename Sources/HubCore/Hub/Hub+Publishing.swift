// Events about drivers, trips and fences, and raw fixes: on which channels each is published.
import HubMessages

extension Hub {
  /// Publishes an event on a channel: numbered, kept for recovery, sent when stored. `body` gets its number.
  mutating func publishEvent(on channel: Int, _ body: (UInt64) -> Publication.Body) {
    channels.publish(eventOn: channel, at: now.timestamp, &storage, counting: &counters, body)
  }

  /// `isStored`: it shows state that must be stored first. A refusal for want of storage must not wait.
  mutating func emit(_ output: HubOutput, to outlet: UInt32, isStored: Bool) {
    if isStored { emitStored(output, to: outlet) } else { emit(output, to: outlet) }
  }

  /// Publishes an event on the driver's channel, and on that of the active trip that its fixes named last.
  mutating func publishOfDriver(_ driver: Int, onTrip: Bool, _ body: (UInt64) -> Publication.Body) {
    if let channel = eventChannel(ofDriver: driver) { publishEvent(on: channel, body) }
    guard onTrip, let trip = lastTrip(of: driver), !trips[trip].status.isFinal,
      let channel = eventChannel(ofTrip: trip)
    else { return }
    publishEvent(on: channel, body)
  }

  /// Publishes a raw fix with its outcome, where ops have subscribed to the driver's.
  @inline(never)
  mutating func publish(raw fix: Fix, _ outcome: FixOutcome, driver: Int) {
    let raw = drivers.rawFix(fix, outcome, of: driver)
    channels.publish(raw, on: Int(drivers[driver].rawChannel), at: now.timestamp)
  }

  /// The driver's channel, created if needed and kept for events; nil at the limit, or for a driver elsewhere.
  mutating func eventChannel(ofDriver driver: Int) -> Int? {
    channels.eventChannel(of: driver, &drivers, counting: &counters)
  }

  /// The trip's channel, created if needed and kept for its events; nil at the limit of channels.
  mutating func eventChannel(ofTrip trip: Int) -> Int? { channels.eventChannel(of: trip, &trips, counting: &counters) }

  /// The fence's channel, created if needed and kept for its events; nil at the limit of channels.
  mutating func eventChannel(ofFence id: Identifier) -> Int? {
    channels.forEvents(nil, .fence(id), counting: &counters)
  }
}
