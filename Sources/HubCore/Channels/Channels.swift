// The channels of a hub and its output: publications and answers, in one list for each outlet.
//
// A durable change first writes a record into the storage (Durability/HubStorage.swift) that the caller passes, and its
// publications and answers wait until the record is on stable storage. Positions do not wait. A subscription to a
// channel whose newest event is not stored waits for it, so that no session sees what a crash could undo.
import HubBytes
import HubMessages

struct Channels: ~Copyable {
  var table: ChannelTable
  private var outputs: OutletOutputs
  /// Counts all publications, of whatever channel.
  private(set) var publicationNumber: UInt64 = 0
  /// The channel of all drivers' positions, while it has subscribers.
  private(set) var fleet: Int?
  /// The channel of all trips' events, once somebody has subscribed to it.
  private(set) var trips: Int?
  /// The highest number of the channel `trips` that is reserved in the journal; nil where another hub of the cluster
  /// numbers it (Channels+Trips.swift).
  var tripsThrough: UInt64?
  /// The outlet of the other hubs; nil where there are none.
  private(set) var clusterOutlet: UInt32?
  /// By channel: the snapshot of a watched cell, in parts, until it is outdated.
  var snapshots: [Int: [Publication]] = [:]
  /// Outlets that got an update of the present tick of areas.
  var updatedOutlets = OutletSet()
  /// Names the history that sequences belong to.
  private(set) var epoch: InlineText
  /// Counts of published events, and of publications handed to outlets: one for each channel and subscribed outlet.
  private(set) var eventsPublished: UInt64 = 0
  private(set) var deliveries: UInt64 = 0

  init(limits: HubLimits, epoch: InlineText, seed: UInt64, outlets: Int) {
    table = ChannelTable(limits: limits, seed: seed, outletCount: outlets)
    outputs = OutletOutputs(count: outlets)
    self.epoch = epoch
  }

  mutating func joinCluster(outlet: UInt32) { clusterOutlet = outlet }

  /// All outlets, the cluster's among them.
  var allOutlets: Range<UInt32> { 0..<UInt32(outputs.count) }

  /// Changes the seed while there are no channels.
  mutating func setSeed(_ seed: UInt64) { table.setSeed(seed) }

  var count: Int { table.count }
  /// Events kept in all channels, and the bytes of their routes, texts and data.
  var eventCount: Int { table.eventCount }
  var contentBytes: Int { table.contentBytes }

  func countEntries(into counters: inout HubCounters) {
    (counters.eventsPublished, counters.deliveries) = (eventsPublished, deliveries)
    counters.set(.channels, table.count)
    counters.set(.events, table.eventCount)
    counters.set(.eventContents, table.contentBytes)
  }

  func record(_ channel: Int) -> ChannelRecord { table.record(channel) }
  func find(_ name: Channel) -> Int? { table.find(name) }
  func name(_ channel: Int) -> Channel { table.name(channel) }
  /// The number of the newest event; before the first, where the numbers start.
  func sequence(_ channel: Int) -> UInt64 { table.sequence(channel) }
  /// The number of a channel's newest event; 0 where the channel is not in the table.
  func newest(_ name: Channel) -> UInt64 { table.find(name).map { table.sequence($0) } ?? 0 }
  /// The index in the area table of a cell that is watched; nil for what is no area's channel, or not any more.
  func area(_ channel: Int) -> Int? { table.area(channel) }

  /// Whether any other session is subscribed, or one that ended but is not released.
  @inline(__always)
  func hasListener(_ channel: Int, besides session: SessionRef?) -> Bool {
    table.hasListener(channel, besides: session)
  }

  /// The kept notification that was posted with this id. O(kept events of the channel).
  func notification(_ channel: Int, posted id: MessageID) -> Notification? { table.notification(channel, posted: id) }

  // MARK: Output

  @inline(__always)
  mutating func emit(_ output: HubOutput, to outlet: UInt32) { outputs[Int(outlet)].append(output) }

  /// To each outlet with a subscriber of a channel.
  mutating func emit(_ output: HubOutput, toSubscribersOf channel: Int) {
    var outlets = table.outlets(channel)
    while let outlet = outlets.popFirst() { emit(output, to: UInt32(outlet)) }
  }

  /// Outlets end subscriptions to the channel's trip through a share of `holder`.
  mutating func endShare(of holder: Identifier, on channel: Int) {
    emit(.shareEnded(ChannelHandle(index: UInt32(channel)), name(channel), of: holder), toSubscribersOf: channel)
  }

  /// The channel's trip has a driver now: outlets end subscriptions that required that it had none. This does not wait
  /// for the journal, as the driver's positions do not. If a crash undoes it, clients that were unsubscribed may
  /// subscribe again.
  mutating func claim(_ channel: Int, by driver: Identifier) {
    emit(.channelClaimed(ChannelHandle(index: UInt32(channel)), name(channel), by: driver), toSubscribersOf: channel)
  }

  /// The channel's trip has ended: outlets unsubscribe its followers, once everything so far is stored.
  mutating func endTrip(_ channel: Int, _ storage: inout HubStorage, counting counters: inout HubCounters) {
    emitStored(
      .channelEnded(ChannelHandle(index: UInt32(channel)), name(channel), .tripEnded),
      toSubscribersOf: channel, &storage, counting: &counters)
  }

  mutating func drain(_ outlet: Int, into list: inout HubOutputs) { outputs.drain(outlet, into: &list) }

  mutating func hasOutput(for outlet: Int) -> Bool { !outputs[outlet].isEmpty }

  /// The number of deliveries; see `Hub.deliveryCount`.
  mutating func deliveryCount(for outlet: Int, below limit: Int) -> Int {
    guard outputs[outlet].rareCount == 0, outputs[outlet].count < limit else { return limit }
    var count = 0
    for index in 0..<outputs[outlet].count {
      let channel = unsafe Int(outputs[outlet].pointer(ofCommon: index).pointee.channel.index)
      count += table.subscribers(channel, outlet: outlet)
    }
    return min(count, limit)
  }

  // MARK: State

  /// Publishes a driver's position, `age` seconds old, on its trip's, its own and the fleet's channel, if subscribed:
  /// unnumbered, not kept, replaced by a newer one with the same key. `moment`: the fix's uptime and the present time.
  @inline(__always)
  mutating func publish(
    _ position: Position, age: Double, of driver: Int, _ drivers: borrowing Drivers, on trip: Int?,
    _ trips: borrowing Trips, _ moment: Moment, storedThrough ticket: UInt64
  ) {
    if let trip, let channel = trips[trip].channel, !table.outlets(channel).isEmpty {
      let id = trips[trip].id
      put(position, age, of: driver, drivers, id, on: channel, .trip(id), nil, moment, ticket)
    }
    if let own = drivers[driver].channel, !table.outlets(own).isEmpty {
      let id = trip.map { trips[$0].id }
      put(position, age, of: driver, drivers, id, on: own, .driver(drivers[driver].id), nil, moment, ticket)
    }
    if let fleet {
      let id = trip.map { trips[$0].id }
      put(position, age, of: driver, drivers, id, on: fleet, .fleet, drivers[driver].status, moment, ticket)
    }
  }

  /// Builds the 345 bytes of a delivery in place, for each outlet with a subscriber of the channel.
  @inline(__always) private mutating func put(
    _ position: Position, _ age: Double, of driver: Int, _ drivers: borrowing Drivers, _ trip: Identifier?,
    on channel: Int, _ name: Channel, _ status: DriverStatus?, _ moment: Moment, _ ticket: UInt64
  ) {
    var outlets = table.outlets(channel)
    publicationNumber += 1
    while let outlet = outlets.popFirst() {
      let delivery = unsafe outputs[outlet].nextCommonSlot(.blank)
      unsafe delivery.pointee.channel = ChannelHandle(index: UInt32(channel))
      unsafe delivery.pointee.conflationKey = UInt64(channel) << 32 | UInt64(driver + 1)  // an ETA's ends in .max
      unsafe delivery.pointee.received = moment.uptime
      unsafe delivery.pointee.position.channel = name
      unsafe delivery.pointee.position.number = publicationNumber
      unsafe delivery.pointee.position.timestamp = moment.timestamp
      unsafe delivery.pointee.position.location = position.location(of: drivers[driver].id, trip: trip, age: age)
      unsafe delivery.pointee.position.location.after = table.sequence(channel, storedThrough: ticket)
      unsafe delivery.pointee.position.location.status = status
      outputs[outlet].appendCommonSlot()
      deliveries += 1
    }
  }

  /// Gives sessions that follow a channel a position of another hub; a newer one with this key replaces it.
  mutating func put(_ position: PublishedPosition, on channel: Int, key: UInt64) {
    var outlets = outletsOfSessions(channel)
    publicationNumber += 1
    while let outlet = outlets.popFirst() {
      let delivery = unsafe outputs[outlet].nextCommonSlot(.blank)
      unsafe delivery.pointee.channel = ChannelHandle(index: UInt32(channel))
      unsafe delivery.pointee.conflationKey = key
      unsafe delivery.pointee.received = 0  // the hub that it comes from measures its latency
      unsafe delivery.pointee.position = position
      unsafe delivery.pointee.position.number = publicationNumber
      outputs[outlet].appendCommonSlot()
      deliveries += 1
    }
  }

  /// Publishes a trip's ETA: conflated state, one for a channel.
  mutating func publish(_ eta: ETAUpdate, on channel: Int, storedThrough ticket: UInt64, at time: Timestamp) {
    if table.outlets(channel).isEmpty { return }
    var eta = eta
    eta.after = table.sequence(channel, storedThrough: ticket)
    publish(.etaUpdate(eta), on: channel, key: UInt32.max, at: time)
  }

  /// Publishes a driver's fix as measured; a limited number of unread ones is kept for each subscriber.
  mutating func publish(_ fix: RawFix, on channel: Int, at time: Timestamp) {
    publish(.rawFix(fix), on: channel, key: table.nextRawFixKey(channel), at: time)
  }

  /// Publishes state that is no position; a newer one with the same key replaces it.
  private mutating func publish(_ body: Publication.Body, on channel: Int, key: UInt32, at time: Timestamp) {
    let delivery = Delivery(
      channel: ChannelHandle(index: UInt32(channel)), conflationKey: UInt64(channel) << 32 | UInt64(key), received: 0,
      publication: publication(body, on: table.name(channel), at: time))
    deliveries += UInt64(table.outlets(channel).count)
    emit(.delivery(delivery), toSubscribersOf: channel)
  }

  /// Publishes the hub's own figures: conflated state, one for a channel. A subscriber that has fallen behind gets only
  /// the newest second live and asks for the rest.
  mutating func publish(_ figures: HubFigures, at time: Timestamp) {
    guard let channel = table.find(.stats) else { return }
    publish(.stats(figures), on: channel, key: UInt32.max, at: time)
  }

  /// A publication with the next number.
  mutating func publication(_ body: Publication.Body, on channel: Channel, at time: Timestamp) -> Publication {
    publicationNumber += 1
    return Publication(channel: channel, number: publicationNumber, timestamp: time, body: body)
  }

  // MARK: Events

  /// Publishes an event on a channel: numbered, kept for recovery, never dropped, sent when stored. `body` gets its
  /// number. `isOthers`: it happened at another hub, whose journal has it.
  mutating func publish(
    eventOn channel: Int, at time: Timestamp, isOthers: Bool = false, _ storage: inout HubStorage,
    counting counters: inout HubCounters, _ body: (UInt64) -> Publication.Body
  ) {
    let ticket = isOthers ? storage.newest : storage.isOn ? storage.ticket : 0
    let sequence = table.nextSequence(channel, ticket: ticket, storedThrough: storage.storedThrough)
    let event = publication(body(sequence), on: table.name(channel), at: time)
    table.keep(event, channel)
    if !isOthers {
      storage.write(.event(event))
      _ = table.setKept(channel, true)
    }
    eventsPublished += 1
    let delivery = Delivery(
      channel: ChannelHandle(index: UInt32(channel)), conflationKey: 0, received: 0, publication: event)
    var outlets = outletsOfOwn(channel)
    deliveries += UInt64(outlets.count)
    while let outlet = outlets.popFirst() {
      emitStored(.delivery(delivery), to: UInt32(outlet), &storage, counting: &counters)
    }
  }

  /// The channel `known`, or the one of this name, for an event; nil at the limit of channels. It is kept from its
  /// first event on, so that a record says that a channel is forgotten only where one has begun it.
  mutating func forEvents(_ known: Int?, _ name: Channel, counting counters: inout HubCounters) -> Int? {
    guard let channel = known ?? table.findOrInsert(name) else {
      counters.count(full: .channels)
      return nil
    }
    return channel
  }

  /// Stops keeping the channel's events.
  mutating func forgetEvents(of channel: Int, _ storage: inout HubStorage) {
    if storage.isOn, table.isKept(channel) {
      storage.write(.channelForgotten(table.name(channel)))
      storage.noteForgotten()
    }
    _ = table.setKept(channel, false)
  }

  // MARK: Subscribers

  /// The channel of a name, created if needed; nil at the role's limit.
  mutating func open(_ name: Channel, for role: Role) -> Int? {
    let channel = table.findOrInsert(name, for: role)
    if name == .fleet { fleet = channel }
    return channel
  }

  /// Adds a subscriber. Gives the events that it missed since `resume`; nil where some are not kept.
  mutating func subscribe(
    _ session: SessionRef, to channel: Int, isDriver: Bool, resume: ResumePoint?
  ) -> [Publication]? {
    table.addSubscriber(channel, outlet: Int(session.outlet))
    if isDriver { table.setDriverListener(channel, session) }
    guard let resume, resume.epoch == epoch else { return nil }
    return table.events(channel, since: resume.since)
  }

  /// Answers a subscriber with a snapshot, or with the events that it missed and then the present state. The answer is
  /// in the same list as publications, so that the outlet sees none twice and misses none in between. Gives what
  /// that cost: each event that was missed, and each KiB in them, like a fix.
  mutating func answer(
    _ input: SubscribeInput, _ channel: Int, _ known: Subscribed.Snapshot?, missed events: [Publication]?,
    history: [HubFigures]?, isParty: Bool, isOver: Bool, at time: Timestamp, _ storage: inout HubStorage,
    counting counters: inout HubCounters
  ) -> Int {
    var (snapshot, missed) = (known, events)
    let name = input.request.channel
    if missed != nil {
      if !input.request.isEventsOnly {
        if let position = snapshot?.position {
          missed?.append(publication(.driverLocation(position), on: name, at: time))
        }
        if let eta = snapshot?.eta { missed?.append(publication(.etaUpdate(eta), on: name, at: time)) }
      }
      snapshot?.position = nil
      snapshot?.eta = nil
    }
    var answer = Subscribed(
      replyTo: input.messageID, channel: name, sequence: table.sequence(channel), epoch: epoch,
      recovered: missed != nil, snapshot: snapshot)
    answer.history = history
    answer.isOver = isOver
    answer.isEventsOnly = input.request.isEventsOnly
    let (handle, session) = (ChannelHandle(index: UInt32(channel)), input.session)
    let isTheirs = name == .trips ? numbersTrips : isParty
    let output = HubOutput.subscribed(session, handle, answer, missed: missed ?? [], isParty: isTheirs)
    emit(output, behindEventsOf: channel, to: session.outlet, &storage, counting: &counters)
    if isOver { emit(.channelEnded(handle, name, .tripEnded), to: session.outlet) }
    return missed?.reduce(0) { $0 + 1 + $1.contentBytes / 1024 } ?? 0
  }

  /// Ends a session's subscription: its outlet releases it when it has drained this.
  mutating func unsubscribe(
    _ session: SessionRef, _ messageID: MessageID, _ channel: Channel, _ storage: inout HubStorage,
    counting counters: inout HubCounters
  ) {
    guard let index = table.find(channel) else {
      let answer = Reply.unsubscribed(Unsubscribed(replyTo: messageID, channel: channel, reason: .asked))
      return emit(.reply(session, answer), to: session.outlet)
    }
    if table.driverListener(index) == session { table.setDriverListener(index, nil) }
    let output = HubOutput.unsubscribed(session, messageID, ChannelHandle(index: UInt32(index)), channel)
    emit(output, behindEventsOf: index, to: session.outlet, &storage, counting: &counters)
  }

  /// Removes a subscriber.
  mutating func release(_ handle: ChannelHandle, of outlet: UInt32) -> Release {
    let index = Int(handle.index)
    let (name, area, wasFollowed) = (table.name(index), table.area(index), table.isFollowed(index))
    let isGone = table.removeSubscriber(index, outlet: Int(outlet))
    // The channel may stay for its own events, but no session here follows it at its owner any more.
    if wasFollowed, isGone || outletsOfSessions(index).isEmpty && !table.isWanted(index) {
      if !isGone { table.setFollowed(index, false) }
      sendToCluster(.unfollowed(name))
    } else if wasFollowed {
      lowerInterest(index, after: outlet)
    } else if isGone, outlet != clusterOutlet, name.hasOwner {
      sendToCluster(.unfollowed(name))  // the cluster may wait for its owner
    }
    guard isGone else { return .nothing }
    if name == .fleet { fleet = nil }
    return area.map { .area($0) } ?? .channel(name)
  }

  // MARK: Storing

  /// Begins another history of the numbers.
  mutating func begin(epoch new: InlineText) { epoch = new }

  /// Restores an event with its number; false for other publications.
  mutating func restore(_ event: Publication) -> Bool {
    publicationNumber = max(publicationNumber, event.number)
    return table.restore(event)
  }

  /// Positions used publication numbers that are not stored, so new numbers begin far beyond the restored ones.
  mutating func finishRestoring() {
    if publicationNumber > 0 { publicationNumber += 1 << 32 }
    trips = table.find(.trips)
  }

  mutating func count(deliveries count: Int) { deliveries += UInt64(count) }
  mutating func setTrips(_ channel: Int?) { trips = channel }
}
