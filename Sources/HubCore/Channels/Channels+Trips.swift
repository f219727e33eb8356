// The channel of all trips' events. It begins with its first subscriber and stays numbered from then on.
//
// In a cluster one hub numbers the events of all (Cluster/TripFeeds.swift): its own, and those that others send it. The
// others number their own for that hub alone, and their sessions follow its channel. When another hub takes over, and
// wherever an event may be missing, one number is skipped and no earlier event is kept: a client that resumes from an
// older one learns that it missed something.
//
// Other hubs' events are not in this hub's journal. It stores a number far ahead, up to which all may have been used; a
// restarted hub continues behind that.
import HubMessages

extension Channels {
  /// Numbers that are reserved at a time.
  private static var reserve: UInt64 { 1 << 32 }

  /// Whether this hub's channel numbers the events of all hubs' trips, and not this hub's alone.
  var numbersTrips: Bool { !isInCluster || tripsThrough != nil }

  /// Begins the channel and records it; false at the limit of channels.
  mutating func beginTrips(_ storage: inout HubStorage) -> Bool {
    guard let channel = table.findOrInsert(.trips) else { return false }
    setTrips(channel)
    beginNumbering(from: channel, &storage)
    return true
  }

  /// Begins the channel's numbers here, and records it.
  private mutating func beginNumbering(from channel: Int, _ storage: inout HubStorage) {
    if tripsThrough != nil {
      tripsThrough = table.sequence(channel) + Channels.reserve
      sendToCluster(.owned(.trips, seizes: false))
    }
    storage.write(.channel(.trips, sequence: tripsThrough ?? table.sequence(channel)))
    table.begin(channel, ticket: storage.isOn ? storage.ticket : 0)
  }

  /// Starts or restarts the numbering of all trips' events here, or ends it where another hub numbers them now.
  /// Subscribers are notified that they may have missed events.
  mutating func numberTrips(_ isHere: Bool, _ storage: inout HubStorage, counting counters: inout HubCounters) {
    tripsThrough = isHere ? tripsThrough ?? 0 : nil
    // The channel exists already if sessions here followed it at another hub.
    if isHere, trips == nil { setTrips(table.find(.trips)) }
    guard let channel = trips else { return }
    table.skip(channel)
    beginNumbering(from: channel, &storage)
    sendMoved(.trips)
    guard isHere else { return followElsewhere(.trips) }
    if table.isFollowed(channel) {
      table.setFollowed(channel, false)
      sendToCluster(.unfollowed(.trips))
    }
    let answer = Subscribed(
      replyTo: ClusterOutput.unsolicited, channel: .trips, sequence: table.sequence(channel), epoch: epoch,
      recovered: false, snapshot: nil)
    let handle = ChannelHandle(index: UInt32(channel))
    emitStored(.channelRestarted(handle, answer), toSubscribersOf: channel, &storage, counting: &counters)
  }

  /// Publishes an event of another hub's trip with the next number.
  mutating func publish(
    ofOthers event: Publication, _ storage: inout HubStorage, counting counters: inout HubCounters
  ) {
    guard let channel = trips, let through = tripsThrough, case .tripUpdate(let update) = event.body else { return }
    if table.sequence(channel) >= through { numberTrips(true, &storage, counting: &counters) }
    // While the disk is full it would wait for storage, and the number of waiting events would grow.
    if storage.condition == .unavailable, storage.hasUnstored { return table.skip(channel) }
    publish(eventOn: channel, at: event.timestamp, isOthers: true, &storage, counting: &counters) {
      .tripUpdate(update.numbered($0))
    }
  }
}
