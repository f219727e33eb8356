// The channels on which events about a driver and a trip are published; and what a driver's channel shows of it.
import HubMessages

extension Drivers {
  /// The driver's channel, made and kept for its events; nil at the limit of channels, and where it is not here.
  mutating func eventChannel(
    of driver: Int, _ channels: inout Channels, counting counters: inout HubCounters
  ) -> Int? {
    if self[driver].isElsewhere { return nil }  // another hub numbers its events
    let channel = channels.forEvents(self[driver].channel, .driver(self[driver].id), counting: &counters)
    link(driver, to: channel)
    return channel
  }

  /// A driver's newest position for its new subscriber; nil where there is none.
  func snapshot(of driver: Int, _ trips: borrowing Trips, at now: Moment, after: UInt64) -> Subscribed.Snapshot? {
    guard self[driver].position != nil else { return nil }
    let trip = self[driver].positionTrip.flatMap { trips.current($0) }.map { trips[$0].id }
    return Subscribed.Snapshot(position: self[driver].location(trip: trip, at: now.timestamp, after: after))
  }
}

extension Trips {
  /// The trip's channel, made and kept for its events; nil at the limit of channels.
  mutating func eventChannel(
    of trip: Int, _ channels: inout Channels, counting counters: inout HubCounters
  ) -> Int? {
    let channel = channels.forEvents(self[trip].channel, .trip(self[trip].id), counting: &counters)
    link(trip, to: channel)
    return channel
  }
}
