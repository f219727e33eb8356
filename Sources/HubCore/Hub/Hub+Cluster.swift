// The hub as one of several: which channels are its own, and those of other hubs that its sessions follow.
//
// A channel of a trip or a driver has one owner, which numbers its events. Elsewhere it is followed: the cluster brings
// the owner's publications, with the owner's numbers and epoch, and they are given to the sessions as they are. So a
// session does not notice where the owner is. What this hub shows of a followed channel always came from its owner.
import HubMessages

extension Hub {
  /// From now on this hub is one of several, and `outlet` stands for the others. Tells the cluster what is here. After
  /// `finishLoading`, before any input.
  public mutating func joinCluster(outlet: UInt32) {
    clusterOutlet = outlet
    for trip in 0..<trips.endIndex where trips.isInUse(trip) { tellOwned(.trip(trips[trip].id), takes: false) }
    for driver in 0..<drivers.endIndex where drivers.isInUse(driver) {
      tellOwned(.driver(drivers[driver].id), takes: false)
    }
  }

  mutating func handle(_ input: ClusterInput) {
    switch input {
    case .subscribeHere(let input): subscribe(input, isHere: true)
    case .followed(let input, let answer, let missed, let isParty): follow(input, answer, missed, isParty: isParty)
    case .refused(let input, let error): emit(.subscriptionRefused(input.session, error), to: input.session.outlet)
    case .resumed(let answer, let missed): resume(answer, missed)
    case .relayed(let publication):
      if let channel = followed(publication.channel) { channels.relay(publication, on: channel) }
    case .ended(let name, let reason):
      emit(onFollowed: name) { .channelEnded($0, name, reason) }
    case .shareEnded(let name, let holder):
      emit(onFollowed: name) { .shareEnded($0, name, of: holder) }
    case .claimed(let name, let driver):
      emit(onFollowed: name) { .channelClaimed($0, name, by: driver) }
    case .begunElsewhere(let name): if !isHere(name) { followElsewhere(name) }
    case .driverElsewhere(let id): leave(id)
    }
  }

  // MARK: What is here

  /// Whether the channel is this hub's own: its trip or driver is here, or it is of a kind that every hub has itself.
  func isHere(_ name: Channel) -> Bool {
    switch name {
    case .trip(let id): trips.find(id) != nil
    case .driver(let id): drivers.find(id).map { !drivers[$0].isElsewhere } ?? false
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats: true
    }
  }

  /// Has the cluster look for the channel's owner; false where the channel is here.
  mutating func asksElsewhere(_ input: SubscribeInput) -> Bool {
    guard let outlet = clusterOutlet, !isHere(input.request.channel) else { return false }
    let isForeign = input.session.outlet == outlet
    emit(.cluster(isForeign ? .notHere(input.session) : .subscribe(input)), to: outlet)
    return true
  }

  mutating func tellOwned(_ name: Channel, takes: Bool) {
    if let outlet = clusterOutlet { emit(.cluster(.owned(name, takes: takes)), to: outlet) }
  }

  mutating func tellReleased(_ name: Channel) {
    if let outlet = clusterOutlet { emit(.cluster(.released(name)), to: outlet) }
  }

  /// A driver's session has begun here: those who followed the driver at another hub follow it here.
  mutating func arrive(_ driver: Int) {
    guard clusterOutlet != nil else { return }
    let name = Channel.driver(drivers[driver].id)
    drivers.setElsewhere(driver, false, at: now.uptime, &deadlines)
    if let channel = followed(name) {
      channels.setFollowed(channel, false)
      restart(channel, snapshot(of: name, after: channels.sequence(channel)))
      if let outlet = clusterOutlet { emit(.cluster(.unfollowed(name)), to: outlet) }
    }
    tellOwned(name, takes: true)
  }

  /// The driver is at another hub: its session ends, and those who follow it do so there.
  private mutating func leave(_ id: Identifier) {
    guard let driver = drivers.find(id), !drivers[driver].isElsewhere, let outlet = clusterOutlet else { return }
    if let session = drivers[driver].session {
      counters.replacements += 1
      emit(.replaced(session, isRepeated: false), to: session.outlet)
      drivers.disconnect(session, at: now.uptime)
    }
    drivers.setElsewhere(driver, true, at: now.uptime, &deadlines)
    noteArea(driver)
    let name = Channel.driver(id)
    guard let channel = channels.find(name) else { return }
    if channels.hasSubscribers(channel, outlet: outlet) {
      emit(.cluster(.moved(ChannelHandle(index: UInt32(channel)), name)), to: outlet)
    }
    followElsewhere(name)
  }

  // MARK: What is followed

  /// The channel, if its publications come from another hub.
  private func followed(_ name: Channel) -> Int? {
    guard let channel = channels.find(name), channels.isFollowed(channel) else { return nil }
    return channel
  }

  private mutating func emit(onFollowed name: Channel, _ output: (ChannelHandle) -> HubOutput) {
    guard let channel = followed(name) else { return }
    channels.emit(output(ChannelHandle(index: UInt32(channel))), toSubscribersOf: channel)
  }

  /// Sessions that are subscribed here to what is at another hub follow it there from now on.
  private mutating func followElsewhere(_ name: Channel) {
    guard let outlet = clusterOutlet, let channel = channels.find(name), !channels.isFollowed(channel),
      channels.hasSubscribers(channel, besides: outlet)
    else { return }
    channels.setFollowed(channel, true)
    let point = ResumePoint(since: channels.sequence(channel), epoch: channels.epoch)
    emit(.cluster(.follow(name, point)), to: outlet)
  }

  /// The owner has let a session in.
  private mutating func follow(
    _ input: SubscribeInput, _ answer: Subscribed, _ missed: [Publication], isParty: Bool
  ) {
    guard !isHere(answer.channel) else { return subscribe(input) }  // it has come here meanwhile
    guard let channel = channels.open(answer.channel, for: input.actor.role) else {
      if let outlet = clusterOutlet, channels.find(answer.channel) == nil {
        emit(.cluster(.unfollowed(answer.channel)), to: outlet)
      }
      return refuseSubscription(input, fullOfChannels())
    }
    channels.setFollowed(channel, true)
    channels.addSubscriber(channel, outlet: Int(input.session.outlet))
    let handle = ChannelHandle(index: UInt32(channel))
    emit(.subscribed(input.session, handle, answer, missed: missed, isParty: isParty), to: input.session.outlet)
  }

  /// What the sessions have missed, or, where that is not known, the channel as it stands.
  private mutating func resume(_ answer: Subscribed, _ missed: [Publication]) {
    guard let channel = followed(answer.channel) else { return }
    if answer.recovered {
      for publication in missed { channels.relay(publication, on: channel) }
    } else {
      channels.emit(
        .channelRestarted(ChannelHandle(index: UInt32(channel)), answer), toSubscribersOf: channel)
    }
    guard case .trip = answer.channel, let driver = answer.snapshot?.trip?.driverID else { return }
    channels.emit(
      .channelClaimed(ChannelHandle(index: UInt32(channel)), answer.channel, by: driver), toSubscribersOf: channel)
  }

  /// The channel's numbers are this hub's from now on.
  private mutating func restart(_ channel: Int, _ snapshot: Subscribed.Snapshot?) {
    let answer = Subscribed(
      replyTo: ClusterOutput.unasked, channel: channels.name(channel), sequence: channels.sequence(channel),
      epoch: channels.epoch, recovered: false, snapshot: snapshot)
    channels.emit(
      .channelRestarted(ChannelHandle(index: UInt32(channel)), answer), toSubscribersOf: channel)
  }
}
