// Subscriptions: how things stand, and from where on what follows is live.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  /// Counts the subscriber and answers with the channel as it stands. `isHere`: no other hub has it.
  mutating func subscribe(_ input: SubscribeInput, isHere: Bool = false) {
    let (session, request) = (input.session, input.request)
    if !isHere, clusterOutlet != nil, asksElsewhere(input) { return }
    switch request.channel {
    case .area, .nearby, .box, .counts, .countsBlock: return watchArea(input)
    case .trips: guard beginTrips(for: input) else { return }
    case .trip, .driver, .fence, .fleet, .raw, .stats: break
    }
    if channels.cannotStore(request.channel, storage) {
      counters.refusedForStorage += 1
      return refuseSubscription(
        input, .storageFull, "this hub cannot store this channel's newest event now; subscribe again",
        retryAfter: ErrorReply.storageRetryAfter)
    }
    if channels.waits(.subscribe(input), for: request.channel, &storage) { return }
    let access = access(of: input.actor, by: input.grant, to: request.channel)
    guard access != .forbidden else {
      // The same words whether or not there is such a trip.
      return refuseSubscription(input, .forbidden, "your credential does not open this channel, or its trip is over")
    }
    guard let channel = channels.open(request.channel, for: input.actor.role) else {
      counters.count(full: .channels)
      return refuseSubscription(input, .rateLimited, "this hub's channel table is full", retryAfter: 60)
    }
    let isOver = closeIfOver(request.channel)
    link(request.channel, to: channel)
    let isDriver = drivers.driver(of: session) != nil
    // The holder of a share sees nothing from before it came.
    let resume = TripShare.isHolder(input.actor.id) ? nil : request.resume
    let missed = channels.subscribe(session, to: channel, isDriver: isDriver, resume: resume)
    let snapshot = snapshot(of: request.channel, after: channels.sequence(channel))
    backlog.spend(
      channels.answer(
        input, channel, snapshot, missed: missed, history: request.channel == .stats ? figures.seconds : nil,
        isParty: access == .party, at: now.timestamp))
    if isOver {
      emit(.channelEnded(ChannelHandle(index: UInt32(channel)), request.channel, .tripEnded), to: session.outlet)
    }
    if !isDriver { adviseSampling(onChannel: request.channel) }
  }

  /// The channel of all trips begins with its first subscriber and goes on for good, also over a restart: then nobody
  /// who comes back has missed an event that got no number. False, and refused, where that cannot be.
  private mutating func beginTrips(for input: SubscribeInput) -> Bool {
    guard channels.trips == nil else { return true }
    guard storage.hasRoom else {
      counters.refusedForStorage += 1
      refuseSubscription(
        input, .storageFull, "this hub cannot store that it counts trips' events; subscribe again",
        retryAfter: ErrorReply.storageRetryAfter)
      return false
    }
    guard channels.beginTrips(&storage) else {
      counters.count(full: .channels)
      refuseSubscription(input, .rateLimited, "this hub's channel table is full", retryAfter: 60)
      return false
    }
    return true
  }

  func access(of actor: Actor, by grant: ChannelGrant, to channel: Channel) -> ChannelAccess {
    guard case .trip(let id) = channel, let trip = trips.find(id) else {
      return grant == .onlyForParties || TripShare.isHolder(actor.id) ? .forbidden : .granted
    }
    return trips[trip].access(of: actor, by: grant, at: now)
  }

  /// A session's grants have changed: which channel is it, and does the session have part in it?
  mutating func name(_ handle: ChannelHandle, to session: SessionRef, _ actor: Actor) {
    let name = channels.name(Int(handle.index))
    let isParty = access(of: actor, by: .onlyForParties, to: name) == .party
    emit(.named(session, handle, name, isParty: isParty), to: session.outlet)
  }

  mutating func refuseSubscription(
    _ input: SubscribeInput, _ code: ErrorCode, _ message: String, retryAfter: Double? = nil
  ) {
    let error = ErrorReply(code: code, message: message, replyTo: input.messageID, retryAfter: retryAfter)
    emit(.subscriptionRefused(input.session, error), to: input.session.outlet)
  }

  mutating func unsubscribe(_ session: SessionRef, _ messageID: MessageID, _ channel: Channel) {
    if channels.waits(.unsubscribe(session, messageID, channel), for: channel, &storage) { return }
    channels.unsubscribe(session, messageID, channel)
  }

  mutating func release(_ outlet: UInt32, _ handle: ChannelHandle) {
    switch channels.release(handle, of: outlet) {
    case .nothing: break
    case .channel(let name, let wasFollowed):
      link(name, to: nil)
      if wasFollowed, let outlet = clusterOutlet { emit(.cluster(.unfollowed(name)), to: outlet) }
    case .followed(let name):
      if let outlet = clusterOutlet { emit(.cluster(.unfollowed(name)), to: outlet) }
    case .area(let area): areas.end(area)
    }
  }

  /// The channel's driver or trip is told its index, so that publishing needs no look-up.
  private mutating func link(_ name: Channel, to channel: Int?) {
    switch name {
    case .trip(let id): if let trip = trips.find(id) { trips.link(trip, to: channel) }
    case .driver(let id): if let driver = drivers.find(id) { drivers.link(driver, to: channel) }
    case .raw(let id): if let driver = drivers.find(id) { drivers.link(driver, toRaw: channel) }
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .stats: break
    }
  }

  /// A trip with its driver's newest position and ETA, or a driver's position; nil where nothing is known.
  func snapshot(of channel: Channel, after: UInt64) -> Subscribed.Snapshot? {
    switch channel {
    case .trip(let id):
      guard let trip = trips.find(id) else { return nil }
      let position = position(onTrip: trip, after: after)
      let eta = position == nil ? nil : trips[trip].currentETA
      return Subscribed.Snapshot(
        trip: trips[trip].state, position: position, eta: eta?.update(ofTrip: id, at: now.timestamp, after: after))
    case .driver(let id):
      guard let driver = drivers.find(id), drivers[driver].position != nil else { return nil }
      let trip = tripOfPosition(of: driver).map { trips[$0].id }
      return Subscribed.Snapshot(position: drivers[driver].location(trip: trip, at: now.timestamp, after: after))
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats:
      return nil
    }
  }

  /// The newest position of the trip's driver, if its fix named this trip and the trip is not over.
  private func position(onTrip trip: Int, after: UInt64) -> DriverLocation? {
    guard !isOver(trip), let driver = driver(ofTrip: trip), tripOfPosition(of: driver) == trip else { return nil }
    return drivers[driver].location(trip: trips[trip].id, at: now.timestamp, after: after)
  }
}
