// The feeds of one client and their readers.
//
// A feed is subscribed from its first reader to its last. All readers of a feed get everything; for a later one the
// client asks the hub again, and only the new reader gets the snapshot. A reader that is too slow gets a gap and a
// snapshot, without effect on others.
import HubBytes
import HubClientCore
import HubGeo
import HubMessages

/// Used only on the client's thread.
final class FeedTable {
  /// A followed trip.
  private struct TripEntry {
    var readers: [ObjectIdentifier: (reader: FeedReader<TripEvent>, wantsSnapshot: Bool)] = [:]
    /// The hub has answered: an unrecovered answer means missed events from now on.
    var hasBegun = false
    var isToBeAsked = true
    /// The newest position and ETA, which a recovered answer lacks; nil where a later `trip_update` has outdated them.
    var position: Position?
    var eta: ETA?
  }

  /// A shown part of the map.
  private struct AreaEntry {
    var readers: [ObjectIdentifier: FeedReader<AreaMap>] = [:]
    var channel: Channel
    var map = AreaMap()
    var isToBeAsked = true
  }

  private var trips: [Channel: TripEntry] = [:]
  private var areas: [InlineText: AreaEntry] = [:]
  private var count = 0
  private var isAnythingToBeAsked = false

  // MARK: Readers

  func add(_ reader: FeedReader<TripEvent>, to channel: Channel) {
    guard count < FeedTable.maximumReaders else {
      reader.push(.ended(.refused(FeedTable.tooMany)))
      return reader.finish()
    }
    count += 1
    trips[channel, default: TripEntry()].readers[ObjectIdentifier(reader)] = (reader, true)
    trips[channel]?.isToBeAsked = true
    isAnythingToBeAsked = true
  }

  func remove(_ key: ObjectIdentifier, from channel: Channel, _ session: ClientSession) {
    guard trips[channel]?.readers.removeValue(forKey: key) != nil else { return }
    count -= 1
    guard trips[channel]?.readers.isEmpty == true else { return }
    trips[channel] = nil
    session.unsubscribe(channel)
  }

  func add(_ reader: FeedReader<AreaMap>, to view: InlineText, showing channel: Channel) {
    if let error = FeedTable.mistake(in: channel) { return reader.finish(error) }
    guard count < FeedTable.maximumReaders else { return reader.finish(FeedTable.tooMany) }
    count += 1
    if areas[view] == nil { areas[view] = AreaEntry(channel: channel) }
    isAnythingToBeAsked = true
    areas[view]?.readers[ObjectIdentifier(reader)] = reader
    // A later reader begins with what the others see.
    if let map = areas[view]?.map, map.tick > 0 { reader.push(map, slot: 0) }
  }

  func remove(_ key: ObjectIdentifier, from view: InlineText, _ session: ClientSession) {
    guard areas[view]?.readers.removeValue(forKey: key) != nil else { return }
    count -= 1
    guard areas[view]?.readers.isEmpty == true else { return }
    areas[view] = nil
    session.hide(view)
  }

  /// Shows another part of the map, if anybody reads. An invalid one ends the loops.
  func move(_ view: InlineText, to channel: Channel, _ session: ClientSession) {
    guard areas[view] != nil, areas[view]?.channel != channel else { return }
    if let error = FeedTable.mistake(in: channel) {
      session.hide(view)
      return endArea(view, error)
    }
    areas[view]?.channel = channel
    areas[view]?.isToBeAsked = true
    isAnythingToBeAsked = true
  }

  /// The error of an area that is invalid for every hub; nil for none.
  private static func mistake(in channel: Channel) -> HubError? {
    guard case .nearby(_, let radius) = channel, !(radius > 0 && radius.isFinite) else { return nil }
    return HubError(.badValue, "the radius is \(radius) m: it must be above 0")
  }

  /// Subscribes what is not subscribed yet.
  func reconcile(_ session: ClientSession) {
    guard isAnythingToBeAsked else { return }
    isAnythingToBeAsked = false
    for channel in trips.keys where trips[channel]?.isToBeAsked == true {
      trips[channel]?.isToBeAsked = false
      if !session.subscribe(channel) { end(channel, .refused(FeedTable.tooMany)) }
    }
    for (view, entry) in areas where entry.isToBeAsked {
      areas[view]?.isToBeAsked = false
      if !session.show(entry.channel, as: view) { endArea(view, FeedTable.tooMany) }
    }
  }

  static let tooMany = HubError(.full, "too many feeds are read at once", retry: .later(after: nil))

  // MARK: What the hub says

  func subscribed(_ answer: Subscribed) {
    if let view = answer.viewID {
      areas[view]?.map.show(answer.cells ?? [])
      return
    }
    guard var entry = trips[answer.channel] else { return }
    if !answer.recovered { (entry.position, entry.eta) = (answer.snapshot?.position, answer.snapshot?.eta) }
    let snapshot = TripSnapshot(trip: answer.snapshot?.trip, position: entry.position, eta: entry.eta)
    for (key, (reader, wantsSnapshot)) in entry.readers {
      let isGap = entry.hasBegun && !answer.recovered && !wantsSnapshot
      if isGap || wantsSnapshot {
        FeedTable.push(isGap ? [.gap, .snapshot(snapshot)] : [.snapshot(snapshot)], to: reader)
      }
      entry.readers[key] = (reader, false)
    }
    entry.hasBegun = true
    trips[answer.channel] = entry
  }

  func unsubscribed(_ answer: Unsubscribed) {
    guard !answer.isAsked else { return }
    switch answer.reason {
    case .asked: break
    case nil: end(answer.channel, .refused(HubError(.refused, "the hub has ended it for a reason of a newer hub")))
    case .tripEnded: end(answer.channel, .tripEnded)
    case .grantEnded: end(answer.channel, .grantEnded)
    case .revoked: end(answer.channel, .revoked)
    }
  }

  /// Ends the feeds whose subscriptions the session has removed, since the hub has refused them.
  func refused(_ error: HubError, _ session: ClientSession) {
    for channel in Array(trips.keys) where trips[channel]?.isToBeAsked == false && !session.isSubscribed(channel) {
      end(channel, .refused(error))
    }
    for view in Array(areas.keys) where areas[view]?.isToBeAsked == false && !session.isShown(view) {
      endArea(view, error)
    }
  }

  func published(_ publication: borrowing Publication) {
    let channel = publication.channel
    switch publication.body {
    case .driverLocation(let location):
      trips[channel]?.position = location
      push(.position(location), channel, slot: 1)
    case .etaUpdate(let eta):
      trips[channel]?.eta = eta
      push(.eta(eta), channel, slot: 2)
    case .tripUpdate(let update):
      trips[channel]?.eta = nil
      if trips[channel]?.position?.driverID != update.driverID { trips[channel]?.position = nil }
      push(.update(update), channel)
    case .notification(let notice): push(.notice(notice), channel)
    case .areaUpdate(let update):
      for view in Array(areas.keys) where areas[view]?.map.shows(update.cell) == true {
        apply(update, to: view)
      }
    // For control rooms, whose page is the hub's own (Sources/Pages).
    case .rawFix, .countsUpdate, .stats, .offer: break
    }
  }

  /// Changes a map, and gives it to its readers. A full view has 256 updates a second: maps that are unread are taken
  /// back first, so that the change copies the map, O(its drivers), only where a reader has the last one.
  private func apply(_ update: AreaUpdate, to view: InlineText) {
    for reader in areas[view]?.readers.values ?? [:].values { reader.withdraw(slot: 0) }
    areas[view]?.map.apply(update)
    guard let entry = areas[view] else { return }
    for reader in entry.readers.values { reader.push(entry.map, slot: 0) }
  }

  /// A reader that waits for its snapshot finds the event in that.
  private func push(_ event: TripEvent, _ channel: Channel, slot: UInt8? = nil) {
    for (key, (reader, wantsSnapshot)) in trips[channel]?.readers ?? [:]
    where !wantsSnapshot && !reader.push(event, slot: slot) {
      reader.push(.gap)
      trips[channel]?.readers[key] = (reader, true)
      trips[channel]?.isToBeAsked = true
      isAnythingToBeAsked = true
    }
  }

  /// Appends what a reader must not miss: without room, it replaces everything unread, behind a gap.
  private static func push(_ events: [TripEvent], to reader: FeedReader<TripEvent>) {
    for event in events where !reader.push(event) {
      reader.push(.gap)
      if event != .gap { reader.push(event) }
    }
  }

  // MARK: The end

  private func end(_ channel: Channel, _ reason: TripEvent.EndReason) {
    for (reader, _) in trips.removeValue(forKey: channel)?.readers.values ?? [:].values {
      count -= 1
      FeedTable.push([.ended(reason)], to: reader)
      reader.finish()
    }
  }

  /// Ends all loops that read an area.
  private func endArea(_ view: InlineText, _ error: HubError) {
    for reader in areas.removeValue(forKey: view)?.readers.values ?? [:].values {
      count -= 1
      reader.finish(error)
    }
  }

  /// The client has ended.
  func end(_ error: HubError) {
    for channel in Array(trips.keys) { end(channel, .refused(error)) }
    for view in Array(areas.keys) { endArea(view, error) }
  }
}
