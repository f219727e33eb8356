// The hub: one state machine that owns every driver, trip, channel and sequence, and orders all events.
//
// Inputs come in batches, each handled to its end before the next; outputs are appended to one list for each outlet. No
// I/O, clock or randomness is in here: time, epoch and seed are parameters, so a run can be repeated byte for byte.
// A location update is handled in `handle(_: FixInPlace)` in Hub+Locations.swift.
public import HubBytes
import HubGeo
public import HubMessages

/// The state of a hub, and the only way to change it: inputs with their time, in turns.
public struct Hub: ~Copyable {
  let limits: HubLimits
  let timings: HubTimings
  private(set) var seed: UInt64
  let samplingRules: SamplingRules

  var now: Moment
  var drivers: Drivers
  var trips: Trips
  var channels: Channels
  /// Records to be stored, and what waits for them.
  var storage = HubStorage()
  private(set) var audience: PublicAudience
  /// The key of riders' pseudonyms where the operator has configured none. The journal stores it with the seed.
  private(set) var pseudonymKey: SipKey
  private let hasOperatorsKey: Bool
  var searches = Searches()
  var areas: AreaTable
  var fences: Fences
  var credentials: Credentials
  var offers: Offers
  var deadlines: Deadlines
  var backlog = Backlog()
  var lookups = HistoryLookups()
  var figures = Figures()
  var driverListings = DriverListings()
  var distant = DistantTrips()
  /// Whether the journal has a record of this hub's epoch and seed.
  var hasEpochRecord = false

  public internal(set) var counters = HubCounters()
  /// More work is waiting than one turn does: call `process` again soon.
  public internal(set) var hasMoreDue = false
  // These two are stored after each turn, since computed properties would copy the hub.
  /// When the next tick of areas begins (uptime, ns); `.max` while nobody watches.
  public private(set) var nextAreaTick = Int64.max
  /// The newest ticket (`takeRecords`) for which output was waiting after the last turn; later records are not urgent.
  public private(set) var awaitedTicket: UInt64 = 0

  /// An empty hub that serves `outlets` outlets (1–128).
  ///
  /// `seed` keeps clients from choosing ids that collide in the hash tables: draw it at random where inputs are
  /// hostile. `pseudonymKey` makes the pseudonyms that riders see; its holder can resolve them. Without one the
  /// journal's key is used; where there is none, `drawnKey`, or else a key derived from the seed.
  public init(
    limits: HubLimits, timings: HubTimings, sampling: SamplingRules, epoch: InlineText, seed: UInt64,
    pseudonymKey: SipKey? = nil, drawnKey: SipKey? = nil, outlets: Int, now: Moment
  ) {
    precondition(timings.tripGrace <= timings.retention, "a trip is closed before it is forgotten")
    self.limits = limits
    self.timings = timings
    self.seed = seed
    self.now = now
    samplingRules = sampling
    drivers = Drivers(limits: limits, timings: timings, outlets: outlets, seed: seed)
    trips = Trips(limits: limits, timings: timings, seed: seed)
    fences = Fences(limits: limits, rules: timings.fences, seed: seed)
    credentials = Credentials(limits: limits)
    offers = Offers(limits: limits, timings: timings)
    channels = Channels(limits: limits, epoch: epoch, seed: seed, outlets: outlets)
    // A local, because `??` must not read `self` here: while `self` is not fully initialised, an autoclosure that reads
    // it frees members that are not initialised (Swift 6.3.1 with -O).
    let drawn = drawnKey ?? SipKey(seed, ~seed)
    self.pseudonymKey = drawn
    hasOperatorsKey = pseudonymKey != nil
    audience = PublicAudience(key: pseudonymKey ?? drawn)
    areas = AreaTable(seed: seed, guests: limits.guests)
    deadlines = Deadlines(uptime: now.uptime)
  }

  /// Makes this hub one of a cluster, whose other hubs `outlet` stands for: after `finishLoading`, before any input.
  public mutating func joinCluster(outlet: UInt32) {
    channels.joinCluster(outlet: outlet)
    trips.joinCluster()
    offers.joinCluster()
    areas.joinCluster()
    for trip in 0..<trips.endIndex where trips.isInUse(trip) {
      channels.sendToCluster(.owned(.trip(trips[trip].id), seizes: false))
    }
    for driver in 0..<drivers.endIndex where drivers.isInUse(driver) {
      channels.sendToCluster(.owned(.driver(drivers[driver].id), seizes: false))
    }
  }

  /// One turn with one list of inputs. `now` must not decrease.
  public mutating func process(_ inputs: [HubInput], now: Moment) {
    handle(inputs, now: now)
    endTurn()
  }

  /// Handles a part of a turn's inputs in order.
  public mutating func handle(_ inputs: [HubInput], now: Moment) {
    drivers.applyClockStep(now, after: self.now)
    self.now = now
    for index in inputs.indices { handle(inputs[index]) }
  }

  /// Handles a part of a turn's inputs in order; fixes are used in place.
  public mutating func handle(_ inputs: borrowing HubInputs, now: Moment) {
    drivers.applyClockStep(now, after: self.now)
    self.now = now
    var cursor = HubInputs.Cursor()
    while let step = inputs.next(&cursor) {
      switch step {
      case .common(let index): unsafe handleLive(FixInPlace(inputs.pointer(ofCommon: index)))
      case .rare(let index): handle(inputs[rare: index])
      }
    }
  }

  /// Ends a turn after all its inputs: handles deadlines, and deferred work within the turn's budget.
  public mutating func endTurn() {
    hasMoreDue = deadlines.mayBeDue(at: now.uptime) && handleDeadlines()
    handleBacklog()
    if trips.hasListings { continueListings() }
    if !driverListings.isEmpty { continueDriverListings() }
    if !searches.isEmpty { advanceSearches() }
    if offers.isLooking { advanceOffers() }
    // Checked first: the call copies all that it borrows (loadtest/NOTES.md), and most hubs have no map open.
    if areas.nextTick != .max, advanceAreas() { hasMoreDue = true }
    nextAreaTick = areas.nextTick
    awaitedTicket = storage.awaited
  }

  @inline(never)
  private mutating func advanceAreas() -> Bool {
    let context = AreaContext(audience: audience, now: now, budget: limits.areaDriversPerTurn)
    defer { publishAreas() }
    return areas.advance(drivers, trips, context)
  }

  /// Answers a request about tokens once all changes are stored. `found`: other hubs' answer; nil where they have none.
  private mutating func answer(_ request: CredentialRequest, _ found: CredentialAnswer? = nil) {
    let answer = credentials.answer(request, found, at: now, &storage, &deadlines, counting: &counters)
    if found == nil { channels.note(answer, to: request.question, credentials, at: now.timestamp) }
    channels.publishRevocations(credentials.takeChange())
    channels.answer(request.session, answer, isOfOthers: found != nil, &storage, counting: &counters)
  }

  /// All revocations, for a component that begins to check tokens; later changes are published to outlets.
  public func allRevocations() -> [Revocation] { credentials.allRevocations() }

  @inline(never)
  private mutating func advanceOffers() {
    guard storage.hasRoom else { return }  // they continue in a turn that has room
    carryOut(offers.advance(drivers, trips, at: now, &deadlines, budget: limits.offerBudget))
    if offers.isLooking { hasMoreDue = true }
  }

  mutating func offersRequest(in report: TripStatusReport, by actor: Actor) throws(ErrorReply) -> OffersRequest? {
    let asker = OfferAsker(actor, seed: seed)
    return try offers.request(
      in: report, isKnown: trips.find(report.tripID) != nil, by: asker, counting: &counters)
  }

  mutating func beginOffers(_ request: OffersRequest?, of trip: Int) {
    if let request { carryOut(offers.begin(request, trip: trips.handle(of: trip), trips[trip].id, at: now.timestamp)) }
  }

  /// Reviews the offers of a trip or driver that has changed. While nothing can be stored, only deadlines end offers.
  @inline(never)
  mutating func reviewOffers(ofTrip trip: Int? = nil, ofDriver driver: Int? = nil) {
    if offers.isIdle || !storage.hasRoom { return }
    carryOut(offers.review(ofTrip: trip, ofDriver: driver, drivers, trips, at: now))
  }

  /// Moves an outlet's output into `list`, and reuses the memory of what was in it.
  public mutating func drain(_ outlet: Int, into list: inout HubOutputs) { channels.drain(outlet, into: &list) }

  /// An outlet's output as an array, for callers that look at each output.
  public mutating func drain(_ outlet: Int) -> [HubOutput] {
    var drained = HubOutputs()
    channels.drain(outlet, into: &drained)
    return drained.inOrder
  }

  /// Whether this turn has made output for an outlet. Mutating, or it would copy the hub where it is not inlined.
  public mutating func hasOutput(for outlet: Int) -> Bool { channels.hasOutput(for: outlet) }

  /// The number of subscribers of the output for `outlet`, if it has positions alone and fewer than `limit`; else
  /// `limit`. O(limit).
  public mutating func deliveryCount(for outlet: Int, below limit: Int) -> Int {
    channels.deliveryCount(for: outlet, below: limit)
  }

  @inline(__always)
  private mutating func handleLive(_ fix: FixInPlace) {
    backlog.countLive()
    if !backlog.isEmpty, deferIfBehind(.fix(fix.input)) { return }
    handle(fix)
  }

  mutating func handle(_ input: HubInput) {
    if case .batch(let batch) = input { return admit(batch) }
    backlog.countLive()
    if !backlog.isEmpty, deferIfBehind(input) { return }
    if case .subscribe(let subscription) = input { return admit(subscription) }
    dispatch(input)
  }

  @inline(__always)
  mutating func dispatch(_ input: HubInput, mustHandleLocally: Bool = false) {
    switch input {
    case .fix(let input): unsafe withUnsafePointer(to: input) { unsafe handle(FixInPlace($0)) }
    case .batch(let input): admit(input, mustHandleLocally)
    case .driverConnecting(let session, let id, let client): connect(session, id, client: client)
    case .driverDisconnected(let session): drivers.disconnect(session, at: now.uptime)
    case .vehicle(let id, let claims): take(claims, of: id)
    case .loopStalled: drivers.noteStall(at: now.uptime)
    case .driverStatus(let session, let messageID, let report, let id, let isKeyed):
      let request = id.map { TripRequest.status(session, messageID, report, of: $0, isKeyed: isKeyed) }
      if forwardIfRemote(request, mustHandleLocally) { return }
      setStatus(session, messageID, report, of: id, isKeyed: isKeyed)
    case .tripStatus(let input): if !forwardIfRemote(.move(input), mustHandleLocally) { moveTrip(input) }
    case .tripChange(let input): if !forwardIfRemote(.change(input), mustHandleLocally) { changeTrip(input) }
    case .offerDecline(let session, let messageID, let decline, let id):
      if forwardIfRemote(.decline(session, messageID, decline, by: id), mustHandleLocally) { return }
      handle(session, messageID, decline, by: id)
    case .offer(let session, let offer):
      // While nothing can be stored the offer is ignored, as if its driver never answered.
      if storage.hasRoom { carryOut(offers.take(offer, drivers, trips, at: now, &deadlines, counting: &counters)) }
      if !session.isNobody { emitStored(.reply(session, .offerTaken), to: session.outlet) }
    case .trips(let session, let question, let replyTo):
      if !forwardIfRemote(TripRequest(question, of: session), mustHandleLocally) { answer(session, question, replyTo) }
    case .notify(let session, let post):
      if !forwardIfRemote(TripRequest(post, of: session), mustHandleLocally) { notify(post, for: session) }
    case .fences(let session, let question): answer(session, question)
    case .credentials(let session, let question, let source):
      let request = CredentialRequest(session, question, source)
      if !channels.askClusterIfShared(request, isHere: credentials.knows(question)) { answer(request) }
    case .audit(let entry): credentials.write(entry, at: now, &storage, &counters)
    case .subscribe(let input): subscribe(input)
    case .unsubscribe(let session, let messageID, let channel): unsubscribe(session, messageID, channel)
    case .released(let outlet, let channel): release(outlet, channel)
    case .areaSnapshots(let session, let cells): show(cells, to: session)
    case .leaveView(let session, let messageID, let view):
      emit(.viewEnded(session, messageID, view), to: session.outlet)
    case .name(let session, let actor, let channel): name(channel, to: session, actor)
    case .query(let session, let query, let replyTo): answer(session, query, replyTo)
    case .ping(let session, let messageID, let ping, let id): answer(session, messageID, ping, of: id)
    case .figures(let second): if !channels.sendFiguresToCluster(second) { take([second]) }
    case .knownFixes(let ticket, let known): finishLookup(ticket, known: known)
    case .cluster(let input): handleCluster(input)
    }
  }

  /// Handles inputs from other hubs of the cluster.
  private mutating func handleCluster(_ input: ClusterInput) {
    switch input {
    case .subscribeHere(let input):
      subscribe(input, isHere: true)
      if !isHere(input.request.channel) { channels.wait(for: input.request.channel) }
    case .tripRequestHere(let request): dispatch(HubInput(request), mustHandleLocally: true)
    case .replied(let session, let output): if !session.isNobody { emit(output, to: session.outlet) }
    case .answered(let question, let answer):
      if let search = question.offers {
        return carryOut(
          offers.take(answer, for: search, drivers, trips, at: now, canStore: storage.hasRoom, &deadlines))
      }
      emit(.answer(answer, to: question), to: question.session.outlet)
    case .credentials(let request, let found): answer(request, found)
    case .followed(let input, let answer, let missed, let isParty):
      let found = channels.follow(input, answer, missed, isParty: isParty, isHere: isHere(answer.channel))
      if found == .isHere { return subscribe(input) }
      if found == .full { refuseSubscription(input, counters.refuseChannel()) }
    case .refused(let input, let error): emit(.subscriptionRefused(input.session, error), to: input.session.outlet)
    case .unowned(let name, let isKnown, let isDenied):
      carryOut(distant.take(.nowhere(isKnown: isKnown, isDenied: isDenied), of: name, drivers))
    case .resumed(let answer, let missed): resume(answer, missed)
    case .relayed(let publication): relay(publication)
    case .relayedPositions(let positions): for position in positions { relay(position) }
    case .ended(let name, let reason): end(name, reason)
    case .shareEnded(let name, let holder): channels.emit(onFollowed: name) { .shareEnded($0, name, of: holder) }
    case .claimed(let name, let driver): channels.emit(onFollowed: name) { .channelClaimed($0, name, by: driver) }
    case .begunElsewhere(let name):
      if isHere(name) { return }
      channels.followElsewhere(name)
      distant.noteElsewhere(name)
    case .driverElsewhere(let id, let arrival): leave(id, arrival)
    case .numberTrips(let isHere): channels.numberTrips(isHere, &storage, counting: &counters)
    case .figures(let seconds, let isHistory): take(seconds, isHistory: isHistory)
    case .area, .areasLost: if !areas.take(input, drivers) { counters.count(full: .guests) }
    }
  }

  /// Claims a driver for this hub, where its followers follow it from now on; with `seizes: false` only if no hub has
  /// it.
  mutating func arrive(_ driver: Int, seizes: Bool = true) {
    let (id, name, arrival) = (drivers[driver].id, Channel.driver(drivers[driver].id), drivers[driver].arrivals &+ 1)
    channels.arrive(id, arrival, seizes: seizes, name.snapshot(drivers, trips, at: now, after: channels.newest(name)))
    drivers.arrive(driver, on: channels.find(name), raw: channels.find(.raw(id)))
  }

  /// Ends the driver's session and redirects its followers: it is at another hub. A session after `arrival` stays.
  private mutating func leave(_ id: Identifier, _ arrival: UInt16) {
    guard let driver = drivers.find(id), !drivers[driver].isElsewhere, drivers[driver].arrivals == arrival else {
      return
    }
    let (ended, isRepeated) = drivers.leave(driver, at: now.uptime, &deadlines)
    counters.replacements += UInt64(ended.count)
    for session in ended { emit(.replaced(session, isRepeated: isRepeated), to: session.outlet) }
    carryOut(distant.forget(driver))
    noteArea(driver)
    channels.move(driver: id)
    followDistant(driver)
  }

  mutating func forwardIfRemote(_ request: @autoclosure () -> TripRequest?, _ mustHandleLocally: Bool) -> Bool {
    guard channels.isInCluster, !mustHandleLocally, let asked = request(), !isHere(asked.receiver) else { return false }
    return channels.forwardToOwner(asked)
  }

  /// Whether this hub owns the channel: its trip or driver is here, or every hub has one of its own.
  func isHere(_ name: Channel) -> Bool { channels.isHere(name, drivers, trips) }

  /// Handles the deadlines that are due, up to the limit of a turn; true if more are due.
  mutating func handleDeadlines() -> Bool {
    for _ in 0..<limits.deadlinesPerTurn {
      guard let entry = deadlines.next(uptime: now.uptime) else { return false }
      switch entry.kind {
      case .driverStaleness: if let driver = drivers.current(entry.handle) { checkStaleness(driver) }
      case .lateOffline: if let driver = drivers.current(entry.handle) { publishOffline(driver) }
      case .driverAbsence: if let driver = drivers.current(entry.handle) { checkAbsence(driver) }
      case .driverRetention: if let driver = drivers.current(entry.handle) { checkRetention(driver) }
      case .replacedSession: if let driver = drivers.current(entry.handle) { notifyReplaced(driver) }
      case .tripSilence: if let trip = trips.current(entry.handle) { checkSilence(trip) }
      case .trip: if let trip = trips.current(entry.handle) { checkEnded(trip) }
      case .tokenFamily, .tokenGrace, .revocation:
        credentials.check(entry, at: now, &storage, &deadlines)
        channels.publishRevocations(credentials.takeChange())
      case .offers:
        carryOut(offers.checkDeadline(entry.handle, drivers, trips, at: now, canStore: storage.hasRoom, &deadlines))
      }
    }
    return true
  }

  /// Takes over the seed and the pseudonym key of the process that wrote the journal. All tables must be empty.
  mutating func takeOver(seed: UInt64, pseudonymKey: SipKey) {
    self.seed = seed
    drivers.setSeed(seed)
    trips.setSeed(seed)
    fences.setSeed(seed)
    channels.setSeed(seed)
    self.pseudonymKey = pseudonymKey
    if !hasOperatorsKey { audience = PublicAudience(key: pseudonymKey) }
  }

  @inline(__always)
  mutating func emit(_ output: HubOutput, to outlet: UInt32) { channels.emit(output, to: outlet) }
  mutating func reply(_ reply: Reply, to session: SessionRef) { emit(.reply(session, reply), to: session.outlet) }

  /// Emits an output once all changes so far are stored. If that fails, an answer is replaced by a refusal.
  mutating func emitStored(_ output: HubOutput, to outlet: UInt32) {
    channels.emitStored(output, to: outlet, &storage, counting: &counters)
  }

  /// Sends an `ack` once all changes so far are stored. `since`: when the hub began to handle the message (uptime, ns).
  mutating func acknowledge(_ ack: Ack, _ kind: AckOrigin.Kind, since: Int64, to session: SessionRef) {
    var ack = ack
    ack.origin = AckOrigin(kind, since: since)
    emitStored(.reply(session, .ack(ack)), to: session.outlet)
  }

  mutating func refuse(
    _ session: SessionRef, _ messageID: MessageID, _ code: ErrorCode, _ message: String, retryAfter: Double? = nil,
    status: TripStatus? = nil
  ) {
    reply(
      .error(ErrorReply(code: code, message: message, replyTo: messageID, retryAfter: retryAfter, status: status)),
      to: session)
  }

  /// Throws where nothing can be stored now.
  mutating func requireRoom(
    _ message: String, retryAfter: Double = ErrorReply.storageRetryAfter
  ) throws(ErrorReply) {
    if !storage.hasRoom { throw unstored(message, retryAfter: retryAfter) }
  }

  /// Returns the refusal of a request that cannot be stored now, and counts it.
  mutating func unstored(_ message: String, retryAfter: Double = ErrorReply.storageRetryAfter) -> ErrorReply {
    counters.refusedForStorage += 1
    return ErrorReply(code: .storageFull, message: message, retryAfter: retryAfter)
  }

  mutating func refuse(_ session: SessionRef, _ refusal: ErrorReply, replyTo messageID: MessageID) {
    reply(.error(refusal.replying(to: messageID)), to: session)
  }
}
