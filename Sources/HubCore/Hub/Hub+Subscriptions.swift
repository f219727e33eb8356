// Subscriptions: a snapshot or what was missed, and then live publications.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  /// Subscribes a session to a channel, or refuses that. `isHere`: no other hub has to be asked for the channel.
  mutating func subscribe(_ input: SubscribeInput, isHere: Bool = false) {
    if !isHere, channels.isInCluster, !self.isHere(input.request.channel), channels.askClusterForOwner(input) { return }
    do throws(ErrorReply) {
      switch input.request.channel {
      case .area, .nearby, .box, .counts, .countsBlock: try watch(input)
      case .trips:
        try beginTrips()
        try open(input)
      case .trip, .driver, .fence, .fleet, .raw, .stats: try open(input)
      }
    } catch {
      refuseSubscription(input, error)
    }
  }

  /// Adds the subscriber and answers with the channel's present state.
  private mutating func open(_ input: SubscribeInput) throws(ErrorReply) {
    let (session, request) = (input.session, input.request)
    if channels.cannotStore(request.channel, storage) {
      throw unstored("this hub cannot store this channel's newest event now; subscribe again")
    }
    if channels.parkIfUnstored(.subscribe(input), for: request.channel, &storage) { return }
    let access = try trips.checkAccess(of: input.actor, by: input.grant, to: request.channel, at: now)
    guard let channel = channels.open(request.channel, for: input.actor.role) else { throw counters.refuseChannel() }
    let isOver = closeIfOver(request.channel)
    link(request.channel, to: channel)
    let isDriver = drivers.driver(of: session) != nil
    // The holder of a share sees nothing from before the share.
    let resume = input.actor.isShareHolder ? nil : request.resume
    let missed = channels.subscribe(session, to: channel, isDriver: isDriver, resume: resume)
    let snapshot = request.channel.snapshot(drivers, trips, at: now, after: channels.sequence(channel))
    backlog.spend(
      channels.answer(
        input, channel, snapshot, missed: missed, history: request.channel == .stats ? figures.seconds : nil,
        isParty: access == .party, isOver: isOver, at: now.timestamp, &storage, counting: &counters))
    if missed == nil, storage.hasRoom { carryOut(offers.repeated(to: input, drivers, trips)) }
    // The subscriber may make the driver send more often.
    if let driver = trips.driver(on: request.channel, among: drivers), drivers[driver].session != session {
      adviseSampling(driver, trip: lastTrip(of: driver))
    }
  }

  /// Begins the channel of all trips with its first subscriber. It stays, also over a restart, so that every event has
  /// a number and can be resumed from. Throws where that is not possible.
  private mutating func beginTrips() throws(ErrorReply) {
    guard channels.trips == nil else { return }
    try requireRoom("this hub cannot store that it counts trips' events; subscribe again")
    if !channels.beginTrips(&storage) { throw counters.refuseChannel() }
  }

  /// Sends a session whose grants have changed the channel's name, and whether the session is a party of its trip.
  mutating func name(_ handle: ChannelHandle, to session: SessionRef, _ actor: Actor) {
    let name = channels.name(Int(handle.index))
    let isParty = trips.access(of: actor, by: .onlyForParties, to: name, at: now) == .party
    emit(.named(session, handle, name, isParty: isParty), to: session.outlet)
  }

  mutating func refuseSubscription(_ input: SubscribeInput, _ refusal: ErrorReply) {
    emit(.subscriptionRefused(input.session, refusal.replying(to: input.messageID)), to: input.session.outlet)
  }

  mutating func unsubscribe(_ session: SessionRef, _ messageID: MessageID, _ channel: Channel) {
    if channels.parkIfUnstored(.unsubscribe(session, messageID, channel), for: channel, &storage) { return }
    channels.unsubscribe(session, messageID, channel, &storage, counting: &counters)
  }

  mutating func release(_ outlet: UInt32, _ handle: ChannelHandle) {
    switch channels.release(handle, of: outlet) {
    case .nothing: break
    case .channel(let name): link(name, to: nil)
    case .area(let area):
      areas.end(area)
      publishAreas()
    }
  }
}
