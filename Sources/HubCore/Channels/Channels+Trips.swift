// The channel of all trips' events. It begins with its first subscriber and is numbered from then on, for good.
//
// Where hubs are several, one of them counts the events of all (Cluster/TripFeeds.swift): its own as they happen, and
// those that the others tell it of. The others number their own for that hub alone, and their sessions follow its
// channel. Whenever another hub counts, and wherever an event may be missing, one number is given to no event and none
// before it is kept: whoever comes with an older one is told that it has missed something.
//
// Others' events are not in this hub's journal. It has a number far ahead instead, up to which all may have been given;
// a hub that is read back goes on behind that.
import HubMessages

extension Channels {
  /// Numbers that are reserved at once.
  private static var reserve: UInt64 { 1 << 32 }

  /// The channel has all trips' events, and not this hub's alone.
  var countsTrips: Bool { !isInCluster || tripsThrough != nil }

  /// Begins the channel, and records that; false at the limit of channels.
  mutating func beginTrips(_ storage: inout HubStorage) -> Bool {
    guard let channel = table.findOrInsert(.trips) else { return false }
    setTrips(channel)
    count(from: channel, &storage)
    return true
  }

  /// The channel counts on from here, and that is recorded.
  private mutating func count(from channel: Int, _ storage: inout HubStorage) {
    if tripsThrough != nil {
      tripsThrough = table.sequence(channel) + Channels.reserve
      tell(.owned(.trips, takes: false))
    }
    storage.write(.channel(.trips, sequence: tripsThrough ?? table.sequence(channel)))
    table.begin(channel, ticket: storage.isOn ? storage.ticket : 0)
  }

  /// This hub counts all trips' events from now on, or counts them anew, or another one does. Whoever follows the
  /// channel is told that it may have missed something.
  mutating func countTrips(_ isHere: Bool, _ storage: inout HubStorage, counting counters: inout HubCounters) {
    tripsThrough = isHere ? tripsThrough ?? 0 : nil
    // Sessions that followed it at another hub.
    if isHere, trips == nil { setTrips(table.find(.trips)) }
    guard let channel = trips else { return }
    table.skip(channel)
    count(from: channel, &storage)
    tellMoved(.trips)
    guard isHere else { return followElsewhere(.trips) }
    if table.isFollowed(channel) {
      table.setFollowed(channel, false)
      tell(.unfollowed(.trips))
    }
    let answer = Subscribed(
      replyTo: ClusterOutput.unasked, channel: .trips, sequence: table.sequence(channel), epoch: epoch,
      recovered: false, snapshot: nil)
    let handle = ChannelHandle(index: UInt32(channel))
    emitStored(.channelRestarted(handle, answer), toSubscribersOf: channel, &storage, counting: &counters)
  }

  /// An event of another hub's trip, with the next number here.
  mutating func publish(
    ofOthers event: Publication, _ storage: inout HubStorage, counting counters: inout HubCounters
  ) {
    guard let channel = trips, let through = tripsThrough, case .tripUpdate(let update) = event.body else { return }
    if table.sequence(channel) >= through { countTrips(true, &storage, counting: &counters) }
    // While the disk takes nothing it would wait behind what is not stored, and they would be ever more.
    if storage.condition == .unavailable, storage.hasUnstored { return table.skip(channel) }
    publish(eventOn: channel, at: event.timestamp, isOthers: true, &storage, counting: &counters) {
      .tripUpdate(update.numbered($0))
    }
  }
}
