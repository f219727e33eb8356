// Channels of other hubs: relays what their owners publish to the sessions of this hub.
//
// A trip's or driver's channel has one owner, which numbers its events. Other hubs follow it: the cluster brings the
// owner's publications, with the owner's numbers and epoch, and sessions get them unchanged. So a session does not
// notice where the owner is, and what this hub shows of a followed channel always came from its owner.
import HubMessages

extension Channels {
  var isInCluster: Bool { clusterOutlet != nil }

  /// Whether sessions of this hub are subscribed.
  func isWatched(_ name: Channel) -> Bool { table.find(name).map { !outletsOfSessions($0).isEmpty } ?? false }

  /// Whether this hub answers for all hubs of a cluster-wide channel.
  func isHere(_ name: Channel) -> Bool { !isInCluster || (name == .trips ? numbersTrips : isWatched(name)) }

  /// Whether this hub owns a channel: its trip or driver is here, or every hub has one of its own.
  func isHere(_ name: Channel, _ drivers: borrowing Drivers, _ trips: borrowing Trips) -> Bool {
    switch name {
    case .trip(let id): trips.find(id) != nil
    case .driver(let id), .raw(let id): drivers.find(id).map { !drivers[$0].isElsewhere } ?? false
    case .stats, .trips: isHere(name)
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet: true
    }
  }

  /// Outlets with a subscribed session: all but the cluster's.
  func outletsOfSessions(_ channel: Int) -> OutletSet {
    var outlets = table.outlets(channel)
    if let clusterOutlet { outlets.remove(Int(clusterOutlet)) }
    return outlets
  }

  /// Outlets for this hub's own events: on a followed channel sessions get the owner's instead.
  func outletsOfOwn(_ channel: Int) -> OutletSet {
    guard table.isFollowed(channel), let clusterOutlet else { return table.outlets(channel) }
    var own = OutletSet()
    if table.outlets(channel).contains(Int(clusterOutlet)) { own.insert(Int(clusterOutlet)) }
    return own
  }

  /// Sends to the outlet of the other hubs, if there is one.
  mutating func sendToCluster(_ output: ClusterOutput) {
    if let clusterOutlet { emit(.cluster(output), to: clusterOutlet) }
  }

  /// Has the cluster look for the owner of a channel that is not here. False, without doing so, for all trips' channel
  /// on behalf of another hub: every hub has its own.
  mutating func askClusterForOwner(_ input: SubscribeInput) -> Bool {
    let isOfHub = input.session.outlet == clusterOutlet
    if isOfHub, input.request.channel == .trips { return false }
    sendToCluster(isOfHub ? .notHere(input.session) : .subscribe(input))
    return true
  }

  /// Asks all hubs of the cluster. False where this hub answers alone: the subject is here, or another hub asks.
  mutating func askClusterIfShared(_ question: FleetQuestion, isHere: Bool = false) -> Bool {
    guard let clusterOutlet, !isHere, question.session.outlet != clusterOutlet else { return false }
    sendToCluster(.ask(question))
    return true
  }

  /// Has the cluster look for the hub of a trip or a driver that is not here. False for a request of another hub, which
  /// this one handles.
  mutating func forwardToOwner(_ request: TripRequest) -> Bool {
    guard let clusterOutlet, request.session.outlet != clusterOutlet else { return false }
    sendToCluster(.tripRequest(request))
    return true
  }

  /// Gives this hub's figures of a second to the others' outlet, which returns those of all hubs. False where there are
  /// no others.
  mutating func sendFiguresToCluster(_ second: HubFigures) -> Bool {
    guard isInCluster else { return false }
    sendToCluster(.second(second, watched: WatchedFeeds(stats: isWatched(.stats), fleet: isWatched(.fleet))))
    return true
  }

  /// Sends an offer to the hub of a driver or a trip that is not here, once it is stored.
  mutating func send(_ offer: SentOffer, _ storage: inout HubStorage, counting counters: inout HubCounters) {
    guard let clusterOutlet else { return }
    let output = HubOutput.cluster(.tripRequest(.offer(.nobody, offer)))
    emitStored(output, to: clusterOutlet, &storage, counting: &counters)
  }

  /// Puts a question about families of tokens, or sessions, to the hubs of the cluster that have them. False where this
  /// one answers it alone.
  mutating func askClusterIfShared(_ request: CredentialRequest, isHere: Bool) -> Bool {
    guard let clusterOutlet, !isHere, request.session.outlet != clusterOutlet else { return false }
    sendToCluster(.credentials(request))
    return true
  }

  /// Answers a question about tokens. New tokens of another hub's family do not wait for this hub's disk: they are
  /// stored there, and a delayed repetition would count as a second use.
  mutating func answer(
    _ session: SessionRef, _ answer: CredentialAnswer, isOfOthers: Bool, _ storage: inout HubStorage,
    counting counters: inout HubCounters
  ) {
    let output = HubOutput.credentials(session, answer)
    let isStored = isOfOthers && answer.isStoredElsewhere || storage.condition == .unavailable && answer.isList
    if isStored { return emit(output, to: session.outlet) }
    emitStored(output, to: session.outlet, &storage, counting: &counters)
  }

  /// Publishes a change of the revocations to all outlets, also before it is stored: the disk may be full for hours,
  /// and a token that is refused too early, should a crash undo it, harms nobody.
  mutating func publishRevocations(_ change: RevocationChange?) {
    guard let change else { return }
    for outlet in allOutlets { emit(.revoked(change), to: outlet) }
  }

  /// The channel, if its publications come from another hub.
  private func followed(_ name: Channel) -> Int? {
    guard let channel = table.find(name), table.isFollowed(channel) else { return nil }
    return channel
  }

  /// Emits to the sessions that follow another hub's channel.
  mutating func emit(onFollowed name: Channel, _ output: (ChannelHandle) -> HubOutput) {
    guard let channel = followed(name) else { return }
    emit(output(ChannelHandle(index: UInt32(channel))), toSessionsOf: channel)
  }

  private mutating func emit(_ output: HubOutput, toSessionsOf channel: Int) {
    var outlets = outletsOfSessions(channel)
    while let outlet = outlets.popFirst() { emit(output, to: UInt32(outlet)) }
  }

  // MARK: Owners

  /// Makes this hub's sessions follow another hub's channel.
  mutating func followElsewhere(_ name: Channel) {
    guard isInCluster, let channel = table.find(name), !table.isFollowed(channel),
      !outletsOfSessions(channel).isEmpty
    else { return }
    table.setFollowed(channel, true, .outdated)
    sendFollow(channel)
  }

  private mutating func sendFollow(_ channel: Int, eventsOnly: Bool = false) {
    let point = hasOwnNumbers(channel) ? ResumePoint(since: table.sequence(channel), epoch: epoch) : nil
    sendToCluster(.follow(table.name(channel), point, eventsOnly: eventsOnly))
  }

  /// Whether sessions have this hub's numbers of the channel.
  private func hasOwnNumbers(_ channel: Int) -> Bool {
    table.numbering(channel) != .others && !outletsOfSessions(channel).isEmpty
  }

  /// Makes the hub itself follow another hub's channel; of a trip, whose positions and ETAs this hub's driver makes,
  /// only the moves. False at the limit of channels.
  mutating func want(_ name: Channel) -> Bool {
    guard let channel = table.findOrInsert(name) else { return false }
    _ = table.setWanted(channel, true)
    table.setFollowed(channel, true, table.numbering(channel))
    // This is sent even if sessions follow it already: the owner's answer repeats the present state.
    sendFollow(channel, eventsOnly: wantsEventsOnly(channel))
    return true
  }

  /// Whether only the hub itself follows the channel of a trip.
  private func wantsEventsOnly(_ channel: Int) -> Bool {
    guard table.isWanted(channel), case .trip = table.name(channel) else { return false }
    return outletsOfSessions(channel).isEmpty
  }

  /// A session of an outlet unsubscribed from another hub's channel; the hub itself may still follow it.
  mutating func lowerInterest(_ channel: Int, after outlet: UInt32) {
    guard outlet != clusterOutlet, outletsOfSessions(channel).isEmpty else { return }
    table.setFollowed(channel, true)
    if wantsEventsOnly(channel) { sendFollow(channel, eventsOnly: true) }
  }

  /// The hub itself stops following. Where no hub has the channel (`isNowhere`), and none had it when its sessions
  /// subscribed, these wait for the hub that begins it, which may be this one. Gives the channel, if others still use
  /// it.
  @discardableResult mutating func unwant(_ name: Channel, isNowhere: Bool = false) -> Int? {
    guard let channel = table.find(name), table.isWanted(channel) else { return table.find(name) }
    if isNowhere && table.numbering(channel) == .own || table.outlets(channel).isEmpty {
      table.setFollowed(channel, false)
      sendToCluster(.unfollowed(name))
      wait(for: name)
    }
    return table.setWanted(channel, false) ? nil : channel
  }

  /// Has the cluster look for the hub that begins a channel, if no hub has it and sessions here are subscribed to it.
  mutating func wait(for name: Channel) {
    guard name.hasOwner, let channel = table.find(name), !table.isFollowed(channel), isWatched(name) else { return }
    sendToCluster(.waiting(name))
  }

  /// A driver has moved to another hub: followers here, of this hub and of others, look for it there.
  mutating func move(driver id: Identifier) {
    for name in [Channel.driver(id), .raw(id)] {
      sendMoved(name)
      followElsewhere(name)
    }
  }

  /// A driver is forgotten: followers at other hubs look for it, and sessions here wait for the hub that has it next.
  mutating func forget(driver id: Identifier) {
    guard isInCluster else { return }
    sendToCluster(.released(.driver(id)))
    for name in [Channel.driver(id), .raw(id)] {
      sendMoved(name)
      wait(for: name)
    }
  }

  /// Has other hubs' followers of a channel look for its owner again.
  mutating func sendMoved(_ name: Channel) {
    guard let clusterOutlet, let channel = table.find(name), table.outlets(channel).contains(Int(clusterOutlet)) else {
      return
    }
    sendToCluster(.moved(ChannelHandle(index: UInt32(channel)), name))
  }

  /// This hub takes over a channel that it followed: sessions get its numbers.
  mutating func takeOver(_ name: Channel, _ snapshot: Subscribed.Snapshot?) {
    guard let channel = followed(name) else { return }
    if table.numbering(channel) != .own {
      let answer = Subscribed(
        replyTo: ClusterOutput.unsolicited, channel: name, sequence: table.sequence(channel), epoch: epoch,
        recovered: false, snapshot: snapshot)
      emit(.channelRestarted(ChannelHandle(index: UInt32(channel)), answer), toSubscribersOf: channel)
    }
    table.setFollowed(channel, false)
    sendToCluster(.unfollowed(name))
    _ = table.setWanted(channel, false)
  }

  /// Publishes a position on one channel, where driver and trip are at two hubs.
  mutating func publish(
    _ location: DriverLocation, of driver: Int, on channel: Int?, received: Int64, at time: Timestamp,
    storedThrough ticket: UInt64
  ) {
    guard let channel, !table.outlets(channel).isEmpty else { return }
    var location = location
    location.after = table.sequence(channel, storedThrough: ticket)
    let delivery = Delivery(
      channel: ChannelHandle(index: UInt32(channel)), conflationKey: UInt64(channel) << 32 | UInt64(driver + 1),
      received: received, publication: publication(.driverLocation(location), on: table.name(channel), at: time))
    count(deliveries: table.outlets(channel).count)
    emit(.delivery(delivery), toSubscribersOf: channel)
  }

  /// Publishes a position of a driver whose trip is at another hub on the driver's and the fleet's channel.
  mutating func publish(
    _ location: DriverLocation, of driver: Int, _ drivers: borrowing Drivers, received: Int64, at time: Timestamp,
    storedThrough ticket: UInt64
  ) {
    publish(location, of: driver, on: drivers[driver].channel, received: received, at: time, storedThrough: ticket)
    guard let fleet else { return }
    var location = location
    location.status = drivers[driver].status
    publish(location, of: driver, on: fleet, received: received, at: time, storedThrough: ticket)
  }

  // MARK: What the owner says

  /// The outcome for a session that a channel's owner has accepted.
  enum Acceptance {
    case subscribed
    /// The channel has moved here meanwhile.
    case isHere
    /// There is no room for the channel.
    case full
  }

  /// The owner has accepted a session. `isHere`: this hub is the owner now.
  mutating func follow(
    _ input: SubscribeInput, _ answer: Subscribed, _ missed: [Publication], isParty: Bool, isHere: Bool
  ) -> Acceptance {
    sendToCluster(.followed(answer.channel))
    let isMoved = isHere && followed(answer.channel) == nil
    guard !isMoved, let channel = open(answer.channel, for: input.actor.role) else {
      sendToCluster(.unfollowed(answer.channel))
      return isMoved ? .isHere : .full
    }
    // Sessions that waited here have this hub's sequence numbers until the owner has answered again.
    let isOwn = hasOwnNumbers(channel)
    table.setFollowed(channel, true, isOwn ? .outdated : .others)
    if isOwn { sendFollow(channel) }
    table.addSubscriber(channel, outlet: Int(input.session.outlet))
    let handle = ChannelHandle(index: UInt32(channel))
    var answer = answer
    answer.isEventsOnly = input.request.isEventsOnly
    emit(.subscribed(input.session, handle, answer, missed: missed, isParty: isParty), to: input.session.outlet)
    return .subscribed
  }

  /// Sends what sessions have missed or, where that is not known, a snapshot.
  mutating func resume(_ answer: Subscribed, _ missed: [Publication]) {
    guard let channel = followed(answer.channel) else { return }
    let handle = ChannelHandle(index: UInt32(channel))
    table.setFollowed(channel, true, outletsOfSessions(channel).isEmpty ? .own : .others)
    if answer.recovered {
      for publication in missed { relay(publication, on: channel) }
    } else {
      emit(.channelRestarted(handle, answer), toSessionsOf: channel)
    }
    guard case .trip = answer.channel, let driver = answer.snapshot?.trip?.driverID else { return }
    emit(.channelClaimed(handle, answer.channel, by: driver), toSubscribersOf: channel)
  }

  /// A driver is here from now on, whichever hub has it, or with `seizes: false` if none has.
  mutating func arrive(_ id: Identifier, _ arrival: UInt16, seizes: Bool, _ snapshot: Subscribed.Snapshot?) {
    takeOver(.driver(id), snapshot)
    takeOver(.raw(id), nil)
    sendToCluster(.owned(.driver(id), seizes: seizes, arrival: arrival))
  }

  mutating func relay(
    _ publication: Publication, _ storage: inout HubStorage, counting counters: inout HubCounters
  ) {
    if tripsThrough != nil, publication.channel == .trips {
      return publish(ofOthers: publication, &storage, counting: &counters)
    }
    if let channel = followed(publication.channel) { relay(publication, on: channel) }
  }

  /// Relays an owner's position to subscribers, and another hub's driver to the sessions that follow the whole fleet.
  mutating func relay(_ position: PublishedPosition) {
    if position.channel == .fleet {
      guard let fleet else { return }
      var position = position
      position.location.after = table.sequence(fleet)
      // The highest bit keeps this key apart from those of this hub's drivers and of other channels.
      put(position, on: fleet, key: 1 << 63 | table.hash(.driver(position.location.driverID)) >> 1)
    } else if let channel = followed(position.channel) {
      put(position, on: channel, key: UInt64(channel) << 32 | 1)
    }
  }

  /// Relays an owner's publication to subscribers. Events keep their numbers; a newer position or ETA replaces an older
  /// one, as at the owner.
  private mutating func relay(_ publication: Publication, on channel: Int) {
    let key: UInt32 =
      switch publication.body {
      case .driverLocation: 1
      case .etaUpdate: .max
      case .rawFix: table.nextRawFixKey(channel)
      case .tripUpdate, .notification, .offer, .areaUpdate, .countsUpdate, .stats: 0
      }
    let made = self.publication(publication.body, on: publication.channel, at: publication.timestamp)
    let conflationKey = key == 0 ? 0 : UInt64(channel) << 32 | UInt64(key)
    let handle = ChannelHandle(index: UInt32(channel))
    emit(
      .delivery(Delivery(channel: handle, conflationKey: conflationKey, received: 0, publication: made)),
      toSessionsOf: channel)
    count(deliveries: outletsOfSessions(channel).count)
  }
}

extension Channel {
  /// Whether it is of a trip or a driver, which another hub may have.
  var hasOwner: Bool {
    switch self {
    case .trip, .driver, .raw: true
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .stats: false
    }
  }
}
