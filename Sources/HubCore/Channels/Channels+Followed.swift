// Channels of other hubs: what their owners publish, for the sessions of this hub that follow them.
//
// A channel of a trip or a driver has one owner, which numbers its events. Elsewhere it is followed: the cluster brings
// the owner's publications, with the owner's numbers and epoch, and they are given to the sessions as they are. So a
// session does not notice where the owner is. What this hub shows of a followed channel always came from its owner.
import HubMessages

extension Channels {
  var isInCluster: Bool { clusterOutlet != nil }
  /// The key of the next fix as it was measured.
  var unreadKey: UInt32 { UInt32(publicationNumber % HubLimits.unreadRawFixes) + 1 }

  /// Whether sessions of this hub are subscribed.
  func isWatched(_ name: Channel) -> Bool { table.find(name).map { !outletsOfSessions($0).isEmpty } ?? false }

  /// Whether what all hubs have together is answered here at once.
  func isHere(_ name: Channel) -> Bool { !isInCluster || (name == .trips ? countsTrips : isWatched(name)) }

  /// Whether a channel is this hub's own: its trip or driver is here, or it is of a kind that every hub has itself.
  func isHere(_ name: Channel, _ drivers: borrowing Drivers, _ trips: borrowing Trips) -> Bool {
    switch name {
    case .trip(let id): trips.find(id) != nil
    case .driver(let id), .raw(let id): drivers.find(id).map { !drivers[$0].isElsewhere } ?? false
    case .stats, .trips: isHere(name)
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet: true
    }
  }

  /// Outlets with a subscriber, without that of the other hubs.
  func outletsOfSessions(_ channel: Int) -> OutletSet {
    var outlets = table.outlets(channel)
    if let clusterOutlet { outlets.remove(Int(clusterOutlet)) }
    return outlets
  }

  /// Outlets to which this hub's own events go: where another one has the channel, sessions have them from there.
  func outletsOfOwn(_ channel: Int) -> OutletSet {
    guard table.isFollowed(channel), let clusterOutlet else { return table.outlets(channel) }
    var own = OutletSet()
    if table.outlets(channel).contains(Int(clusterOutlet)) { own.insert(Int(clusterOutlet)) }
    return own
  }

  /// Tells the other hubs' outlet, where there are other hubs.
  mutating func tell(_ output: ClusterOutput) {
    if let clusterOutlet { emit(.cluster(output), to: clusterOutlet) }
  }

  /// Has the cluster look for the owner of a channel that is not here. False for the trips that another hub asks for:
  /// every hub has its own.
  mutating func looksElsewhere(_ input: SubscribeInput) -> Bool {
    let isOfHub = input.session.outlet == clusterOutlet
    if isOfHub, input.request.channel == .trips { return false }
    tell(isOfHub ? .notHere(input.session) : .subscribe(input))
    return true
  }

  /// Puts a question to all hubs of the cluster. False where this one answers it alone: what it is about is here, or
  /// another hub asks.
  mutating func gathers(_ question: FleetQuestion, isHere: Bool = false) -> Bool {
    guard let clusterOutlet, !isHere, question.session.outlet != clusterOutlet else { return false }
    tell(.ask(question))
    return true
  }

  /// Has the cluster look for the hub that has a trip, or a driver, which is not here. False for what this hub handles:
  /// what comes from another one is for this.
  mutating func forwards(_ request: TripRequest) -> Bool {
    guard let clusterOutlet, request.session.outlet != clusterOutlet else { return false }
    tell(.tripRequest(request))
    return true
  }

  /// Tells the hub of a driver or a trip that is not here of an offer, once that is stored.
  mutating func send(_ offer: SentOffer, _ storage: inout HubStorage, counting counters: inout HubCounters) {
    guard let clusterOutlet else { return }
    let output = HubOutput.cluster(.tripRequest(.offer(.nobody, offer)))
    emitStored(output, to: clusterOutlet, &storage, counting: &counters)
  }

  /// Puts a question about families of tokens, or sessions, to the hubs of the cluster that have them. False where this
  /// one answers it alone.
  mutating func gathers(_ request: CredentialRequest, isHere: Bool) -> Bool {
    guard let clusterOutlet, !isHere, request.session.outlet != clusterOutlet else { return false }
    tell(.credentials(request))
    return true
  }

  /// Answers a question about tokens. New tokens of another hub's family do not wait for this one's disk: they are
  /// stored there, and asked for later the question would count as a second use.
  mutating func answer(
    _ session: SessionRef, _ answer: CredentialAnswer, isOfOthers: Bool, _ storage: inout HubStorage,
    counting counters: inout HubCounters
  ) {
    let output = HubOutput.credentials(session, answer)
    if isOfOthers, answer.isStoredElsewhere { return emit(output, to: session.outlet) }
    emitStored(output, to: session.outlet, &storage, counting: &counters)
  }

  /// Tells all who check tokens what has changed of the revocations.
  mutating func tell(
    _ change: RevocationChange?, _ storage: inout HubStorage, counting counters: inout HubCounters
  ) {
    guard let change else { return }
    for outlet in allOutlets { emitStored(.revoked(change), to: outlet, &storage, counting: &counters) }
  }

  /// The channel, if its publications come from another hub.
  private func followed(_ name: Channel) -> Int? {
    guard let channel = table.find(name), table.isFollowed(channel) else { return nil }
    return channel
  }

  /// To the sessions that follow a channel of another hub.
  mutating func emit(onFollowed name: Channel, _ output: (ChannelHandle) -> HubOutput) {
    guard let channel = followed(name) else { return }
    emit(output(ChannelHandle(index: UInt32(channel))), toSessionsOf: channel)
  }

  private mutating func emit(_ output: HubOutput, toSessionsOf channel: Int) {
    var outlets = outletsOfSessions(channel)
    while let outlet = outlets.popFirst() { emit(output, to: UInt32(outlet)) }
  }

  // MARK: Who has the channel

  /// Sessions that are subscribed here to what is at another hub follow it there from now on.
  mutating func followElsewhere(_ name: Channel) {
    guard isInCluster, let channel = table.find(name), !table.isFollowed(channel),
      !outletsOfSessions(channel).isEmpty
    else { return }
    table.setFollowed(channel, true)
    tellFollow(channel)
  }

  private mutating func tellFollow(_ channel: Int, eventsOnly: Bool = false) {
    let point = ResumePoint(since: table.sequence(channel), epoch: epoch)
    tell(.follow(table.name(channel), point, eventsOnly: eventsOnly))
  }

  /// The hub itself follows a channel of another hub from now on, whoever else does: of a trip, whose positions and
  /// ETAs come from this hub's driver, the moves alone. False at the limit of channels.
  mutating func want(_ name: Channel) -> Bool {
    guard let channel = table.findOrInsert(name) else { return false }
    _ = table.setWanted(channel, true)
    table.setFollowed(channel, true)
    // Also where sessions follow it: how things stand is answered once more.
    tellFollow(channel, eventsOnly: wantsEventsOnly(channel))
    return true
  }

  /// Whether only the hub itself follows the channel of a trip.
  private func wantsEventsOnly(_ channel: Int) -> Bool {
    guard table.isWanted(channel), case .trip = table.name(channel) else { return false }
    return outletsOfSessions(channel).isEmpty
  }

  /// A session of an outlet does not follow a channel of another hub any more; the hub itself may.
  mutating func lowerInterest(_ channel: Int, after outlet: UInt32) {
    if outlet != clusterOutlet, wantsEventsOnly(channel) { tellFollow(channel, eventsOnly: true) }
  }

  /// The hub itself does not follow it any more; nor do sessions, where it `isHere` from now on.
  mutating func unwant(_ name: Channel, isHere: Bool = false) {
    guard let channel = table.find(name), table.isWanted(channel) else { return }
    if isHere || table.outlets(channel).isEmpty {
      table.setFollowed(channel, false)
      tell(.unfollowed(name))
    }
    _ = table.setWanted(channel, false)
  }

  /// A driver is at another hub: those of other hubs who follow it here look for it there, and so do this hub's
  /// sessions.
  mutating func move(driver id: Identifier) {
    for name in [Channel.driver(id), .raw(id)] {
      tellMoved(name)
      followElsewhere(name)
    }
  }

  /// Those of other hubs who follow a channel here look for its owner anew.
  mutating func tellMoved(_ name: Channel) {
    guard let clusterOutlet, let channel = table.find(name), table.outlets(channel).contains(Int(clusterOutlet)) else {
      return
    }
    tell(.moved(ChannelHandle(index: UInt32(channel)), name))
  }

  /// The numbers of a channel that was followed are this hub's from now on.
  private mutating func takeOver(_ name: Channel, _ snapshot: Subscribed.Snapshot?) {
    guard let channel = followed(name) else { return }
    table.setFollowed(channel, false)
    let answer = Subscribed(
      replyTo: ClusterOutput.unasked, channel: name, sequence: table.sequence(channel), epoch: epoch, recovered: false,
      snapshot: snapshot)
    emit(.channelRestarted(ChannelHandle(index: UInt32(channel)), answer), toSubscribersOf: channel)
    tell(.unfollowed(name))
    _ = table.setWanted(channel, false)
  }

  /// Publishes a position of a driver or a trip of which the other is at another hub, on one channel.
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

  /// Publishes a position of a driver whose trip is at another hub, on its own and the fleet's channel.
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

  /// The owner has let a session in. False at the limit of channels.
  mutating func follow(
    _ input: SubscribeInput, _ answer: Subscribed, _ missed: [Publication], isParty: Bool
  ) -> Bool {
    guard let channel = open(answer.channel, for: input.actor.role) else {
      tell(.unfollowed(answer.channel))
      return false
    }
    // The last one may have left while this answer was on its way.
    if !table.isFollowed(channel) || wantsEventsOnly(channel) {
      tell(.followed(answer.channel, ResumePoint(since: answer.sequence, epoch: answer.epoch)))
    }
    table.setFollowed(channel, true)
    table.addSubscriber(channel, outlet: Int(input.session.outlet))
    let handle = ChannelHandle(index: UInt32(channel))
    var answer = answer
    answer.isEventsOnly = input.request.isEventsOnly
    emit(.subscribed(input.session, handle, answer, missed: missed, isParty: isParty), to: input.session.outlet)
    return true
  }

  /// What the sessions have missed, or, where that is not known, the channel as it stands.
  mutating func resume(_ answer: Subscribed, _ missed: [Publication]) {
    guard let channel = followed(answer.channel) else { return }
    let handle = ChannelHandle(index: UInt32(channel))
    if answer.recovered {
      for publication in missed { relay(publication, on: channel) }
    } else {
      emit(.channelRestarted(handle, answer), toSessionsOf: channel)
    }
    guard case .trip = answer.channel, let driver = answer.snapshot?.trip?.driverID else { return }
    emit(.channelClaimed(handle, answer.channel, by: driver), toSubscribersOf: channel)
  }

  /// A driver's session is here from now on.
  mutating func arrive(_ id: Identifier, _ arrival: UInt16, _ snapshot: Subscribed.Snapshot?) {
    takeOver(.driver(id), snapshot)
    takeOver(.raw(id), nil)
    tell(.owned(.driver(id), takes: true, arrival: arrival))
  }

  mutating func relay(
    _ publication: Publication, _ storage: inout HubStorage, counting counters: inout HubCounters
  ) {
    if tripsThrough != nil, publication.channel == .trips {
      return publish(ofOthers: publication, &storage, counting: &counters)
    }
    if case .driverLocation(let location) = publication.body, publication.channel == .fleet {
      return relay(toFleet: location, publication.timestamp)
    }
    if let channel = followed(publication.channel) { relay(publication, on: channel) }
  }

  /// A driver of another hub, for the sessions that follow the whole fleet.
  private mutating func relay(toFleet location: DriverLocation, _ time: Timestamp) {
    guard let fleet else { return }
    var location = location
    location.after = table.sequence(fleet)
    let made = publication(.driverLocation(location), on: .fleet, at: time)
    // No driver of this hub has such a key, and no other channel.
    let key = 1 << 63 | table.hash(.driver(location.driverID)) >> 1
    let delivery = Delivery(
      channel: ChannelHandle(index: UInt32(fleet)), conflationKey: key, received: 0, publication: made)
    count(deliveries: outletsOfSessions(fleet).count)
    emit(.delivery(delivery), toSessionsOf: fleet)
  }

  /// Gives subscribers what the channel's owner has published. Events keep their numbers; of positions and ETAs a newer
  /// one makes an older one worthless, as where they come from.
  private mutating func relay(_ publication: Publication, on channel: Int) {
    let key: UInt32 =
      switch publication.body {
      case .driverLocation: 1
      case .etaUpdate: .max
      case .rawFix: unreadKey
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
