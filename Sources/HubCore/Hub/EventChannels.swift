// The channels of a driver and a trip: publishing ETAs, snapshots for new subscribers, followers.
import HubMessages

extension Channels {
  /// Publishes an ETA, and records it.
  mutating func publish(
    _ eta: PublishedETA, ofTrip trip: Int, _ trips: borrowing Trips, _ storage: inout HubStorage, at time: Timestamp
  ) {
    if storage.isOn, storage.hasRoom { storage.write(.eta(trips[trip].id, eta.durable)) }
    guard let channel = trips[trip].channel else { return }
    let update = eta.update(ofTrip: trips[trip].id, at: time, after: 0)
    publish(update, on: channel, storedThrough: storage.storedThrough, at: time)
  }

  /// Whether anybody but the driver itself follows its positions: on its own channel, or on that of the trip that its
  /// fixes name. The fleet's and areas' channels do not count, since they have every driver.
  @inline(__always)
  func isWatched(_ driver: Int, _ drivers: borrowing Drivers, trip: Int?, _ trips: borrowing Trips) -> Bool {
    let session = drivers[driver].session
    if let channel = drivers[driver].channel, hasListener(channel, besides: session) { return true }
    guard let trip, let channel = trips[trip].channel, !trips[trip].isClosed else { return false }
    return hasListener(channel, besides: session)
  }
}

extension Channel {
  /// A trip with its driver's newest position and ETA, or a driver's position; nil where nothing is known.
  func snapshot(
    _ drivers: borrowing Drivers, _ trips: borrowing Trips, at now: Moment, after: UInt64
  ) -> Subscribed.Snapshot? {
    switch self {
    case .trip(let id): trips.find(id).map { trips.snapshot(of: $0, among: drivers, at: now, after: after) }
    case .driver(let id):
      drivers.find(id).flatMap { trips.snapshot(ofDriver: $0, among: drivers, at: now, after: after) }
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats: nil
    }
  }
}
