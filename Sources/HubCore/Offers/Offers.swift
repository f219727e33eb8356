// The offers of trips without a driver: running searches, drivers with an open offer, and what ends them
// (protocol/offers.md). Each method decides and changes the state here; its caller carries out the steps in order: the
// record of a search comes before the events that show it, so that no driver is asked twice after a crash.
//
// Any change of a trip or a driver leads to a review of the search, which compares it with their present state. So the
// order of two events does not matter, nor whether the hub was down between them.
import HubMessages

struct Offers: ~Copyable {
  let limits: HubLimits
  let timings: HubTimings
  /// Only files of this folder use it and the other non-private members, which TidyTests checks.
  var slab = Slab<OfferSearch>()
  /// By a trip's index: its present or last search.
  var byTrip: [UInt32: Int] = [:]
  /// By the id of a trip at another hub: its offers to drivers here.
  var ofOthers: [Identifier: Int] = [:]
  /// By a driver's index: the search of its only open offer.
  var byDriver: [UInt32: Int] = [:]
  private var openByAsker: [UInt64: Int] = [:]
  private(set) var openCount = 0
  /// Searches that wait for their turn, in order.
  var queue = FirstInFirstOut<Handle>()
  /// Questions to all hubs that are not answered yet, also those of searches that were removed meanwhile.
  var gathers = 0
  /// This hub is in a cluster: drivers of other hubs are asked, too.
  private(set) var isInCluster = false
  /// Where to look for the next ended search to replace.
  private var hand = 0

  init(limits: HubLimits, timings: HubTimings) {
    self.limits = limits
    self.timings = timings
  }

  mutating func joinCluster() { isInCluster = true }

  /// Whether no search is running.
  var isIdle: Bool { openCount == 0 }
  /// Whether a search waits for its turn, rather than for an answer of all hubs.
  var isLooking: Bool { !queue.isEmpty && gathers < limits.offerGathers }
  var count: Int { slab.count }

  func countEntries(into counters: inout HubCounters) { counters.set(.offers, openCount) }

  // MARK: Beginning and ending

  /// The state of a trip's offers; throws where none were requested.
  func report(ofTrip trip: Int, _ id: Identifier) throws(ErrorReply) -> OffersReport {
    guard let search = byTrip[UInt32(trip)] else {
      throw ErrorReply(code: .notFound, message: "nobody has asked for offers of trip \(id)")
    }
    return slab[search].report
  }

  /// Whether the request repeats that of the trip's search. Throws where another one is running.
  func isRepeated(_ request: OffersRequest, _ trip: Int, _ record: Trip) throws(ErrorReply) -> Bool {
    guard let search = byTrip[UInt32(trip)] else { return false }
    let known = slab[search]
    if request.key != 0, known.key == request.key {
      if known.criteria == request.criteria { return true }
      throw ErrorReply(
        invalidIn: record.status, "other offers of trip \(record.id) were asked for with this Idempotency-Key")
    }
    if known.end != nil { return false }
    if request.key == 0, known.asker == request.asker, known.criteria == request.criteria { return true }
    throw ErrorReply(invalidIn: record.status, "offers of trip \(record.id) are being made already")
  }

  /// Throws at the limit of searches, of all or of the asking identity.
  func checkRoom(for request: OffersRequest, counting counters: inout HubCounters) throws(ErrorReply) {
    if openByAsker[request.asker, default: 0] >= limits.offersPerIdentity[request.role] {
      counters.count(.offersPerIdentity)
      let limit = limits.offersPerIdentity[request.role]
      throw ErrorReply(ownLimit: "one \(request.role.name) has offers of at most \(limit) trips made at once")
    }
    guard openCount < request.role.share(of: limits.offers) else {
      counters.count(full: .offers)
      throw ErrorReply(code: .storageFull, message: "too many trips are being offered", retryAfter: 60)
    }
  }

  /// Begins a checked search for a driver. Without room an ended search is replaced.
  mutating func begin(_ request: OffersRequest, trip: Handle, _ id: Identifier, at time: Timestamp) -> [OfferStep] {
    var steps: [OfferStep] = []
    if let known = byTrip[trip.index] { remove(known) } else { steps = makeRoom() }
    let search = slab.insert(OfferSearch(request, tripID: id, trip: trip, at: time))
    byTrip[trip.index] = search
    countOpen(request.asker, 1)
    enqueue(search)
    return [.recordSearch(slab[search])] + steps
  }

  /// Removes an ended search where there is no room for another one.
  mutating func makeRoom() -> [OfferStep] {
    guard slab.count >= limits.offers else { return [] }
    for _ in 0..<slab.endIndex {
      hand = (hand + 1) % slab.endIndex
      guard slab.isInUse(hand), slab[hand].end != nil else { continue }
      let trip = slab[hand].tripID
      remove(hand)
      return [.record(.offersForgotten(trip))]
    }
    return []
  }

  mutating func countOpen(_ asker: UInt64, _ step: Int) {
    openCount += step
    let count = openByAsker[asker, default: 0] + step
    openByAsker[asker] = count > 0 ? count : nil
  }

  /// Queues a search for its next drivers. `anew`: one that is queued begins again.
  mutating func enqueue(_ search: Int, anew: Bool = true) {
    if slab[search].isQueued, !anew { return }
    slab[search].look = .nearest
    guard !slab[search].isQueued else { return }
    slab[search].isQueued = true
    queue.append(slab.handle(of: search))
  }

  /// Ends the offers of a trip at the request of their owner.
  mutating func stop(_ trip: Int) -> [OfferStep] {
    guard let search = byTrip[UInt32(trip)], slab[search].end == nil else { return [] }
    return end(search, .stopped, driver: nil)
  }

  /// Ends the trip's search. `driver`: the trip's driver, if any.
  private mutating func end(_ search: Int, _ how: OffersReport.End, driver: Identifier?) -> [OfferStep] {
    var steps: [OfferStep] = []
    let reason: Offer.Withdrawal =
      switch how {
      case .taken: .taken
      case .cancelled: .cancelled
      case .stopped, .unserved: .stopped
      }
    for index in slab[search].asked.indices where slab[search].asked[index].isOpen {
      if slab[search].asked[index].id == driver {
        close(search, index, .accepted)
        steps += ending(search, index) + [.countOutcome(.accepted)]
      } else {
        steps += [withdraw(search, index, reason), .countOutcome(OfferOutcome(reason))]
      }
    }
    slab[search].end = how
    countOpen(slab[search].asker, -1)
    return [.recordSearch(slab[search])] + steps
  }

  mutating func close(_ search: Int, _ index: Int, _ answer: OffersReport.Asked.Answer) {
    if let driver = slab[search].asked[index].driver { byDriver[driver.index] = nil }
    slab[search].asked[index].answer = answer
  }

  mutating func withdraw(_ search: Int, _ index: Int, _ reason: Offer.Withdrawal) -> OfferStep {
    close(search, index, .withdrawn(reason))
    let asked = slab[search].asked[index]
    let sent = SentOffer(asked, of: slab[search])
    guard let driver = asked.driver else { return .sendToHub(sent) }
    return .notifyDriver(.withdrawn(reason), of: sent.tripID, to: Int(driver.index), sent: sent)
  }

  /// The outcome of an offer, for the driver's hub.
  private func ending(_ search: Int, _ index: Int) -> [OfferStep] {
    let asked = slab[search].asked[index]
    return isInCluster && asked.driver == nil ? [.sendToHub(SentOffer(asked, of: slab[search]))] : []
  }

  mutating func remove(_ search: Int) {
    if slab[search].end == nil { countOpen(slab[search].asker, -1) }
    for asked in slab[search].asked where asked.isOpen {
      if let driver = asked.driver { byDriver[driver.index] = nil }
    }
    if slab[search].isOfOther { ofOthers[slab[search].tripID] = nil } else { byTrip[slab[search].trip.index] = nil }
    let tombstone = OffersReport(
      tripID: slab[search].tripID, criteria: OfferCriteria(), began: slab[search].began, end: .stopped, asked: [])
    slab.remove(
      search,
      leaving: OfferSearch(DurableOffers(asker: 0, key: 0, report: tombstone), trip: slab[search].trip))
  }

  /// Forgets the search with its trip.
  mutating func forget(trip: Int) {
    if let search = byTrip[UInt32(trip)] { remove(search) }
  }

  // MARK: Answers of drivers

  /// The move with its rights: an open offer entitles its driver to the trip, at any hub.
  func entitling(_ input: TripStatusInput, _ trips: borrowing Trips, _ now: Moment) -> TripStatusInput {
    guard !isIdle, input.actor.role == .driver, let trip = trips.find(input.report.tripID),
      let search = byTrip[UInt32(trip)]
    else { return input }
    let own = slab[search].asked.first { $0.isOpen && $0.id == input.actor.id }
    guard let own, own.deadline > now.uptime else { return input }
    var entitled = input
    entitled.tripIsGranted = true
    return entitled
  }

  /// Declines an offer. Repeated or late, it changes nothing. Throws for a driver that was never asked.
  mutating func decline(trip: Int, _ id: Identifier, by driver: Identifier) throws(ErrorReply) -> [OfferStep] {
    guard let search = byTrip[UInt32(trip)],
      let index = slab[search].asked.firstIndex(where: { $0.id == driver })
    else { throw ErrorReply(code: .notFound, message: "trip \(id) was not offered to you") }
    guard slab[search].asked[index].isOpen else { return [] }
    return reconcile(search, [withdraw(search, index, .declined), .countOutcome(.declined)])
  }

  // MARK: Reviewing

  /// Reviews the searches of a trip and of a driver with an open offer, after these have changed.
  mutating func review(
    ofTrip trip: Int?, ofDriver driver: Int?, _ drivers: borrowing Drivers, _ trips: borrowing Trips, at now: Moment
  ) -> [OfferStep] {
    var steps: [OfferStep] = []
    if let search = trip.flatMap({ byTrip[UInt32($0)] }) {
      slab[search].look = .nearest  // its pickup may have changed
      steps += review(search, drivers, trips, at: now)
    }
    if let search = driver.flatMap({ byDriver[UInt32($0)] }) { steps += review(search, drivers, trips, at: now) }
    return steps
  }

  /// Handles a search's deadline.
  mutating func checkDeadline(
    _ handle: Handle, _ drivers: borrowing Drivers, _ trips: borrowing Trips, at now: Moment, canStore: Bool,
    _ deadlines: inout Deadlines
  ) -> [OfferStep] {
    guard let search = slab.current(handle) else { return [] }
    slab[search].armed = .max
    guard canStore else {
      deadlines.arm(.offers, slab.handle(of: search), at: now.uptime + nanoseconds(timings.storageRetry))
      return []
    }
    let steps = review(search, drivers, trips, at: now)
    arm(search, &deadlines)
    return steps
  }

  /// When the next open offer expires (uptime, ns); nil without an open offer.
  func nextDeadline(of search: Int) -> Int64? {
    slab[search].asked.lazy.filter(\.isOpen).map(\.deadline).min()
  }

  mutating func arm(_ search: Int, _ deadlines: inout Deadlines) {
    guard let next = nextDeadline(of: search), next < slab[search].armed else { return }
    slab[search].armed = next
    deadlines.arm(.offers, slab.handle(of: search), at: next)
  }

  mutating func review(
    _ search: Int, _ drivers: borrowing Drivers, _ trips: borrowing Trips, at now: Moment
  ) -> [OfferStep] {
    guard slab[search].end == nil else { return [] }
    if slab[search].isOfOther { return reviewOther(search, drivers, at: now) }
    guard let trip = trips.current(slab[search].trip) else { return [] }
    if let driver = trips[trip].driverID { return end(search, .taken, driver: driver) }
    if trips[trip].status != .requested { return end(search, .cancelled, driver: nil) }
    var steps: [OfferStep] = []
    for index in slab[search].asked.indices where slab[search].asked[index].isOpen {
      let asked = slab[search].asked[index]
      if asked.deadline <= now.uptime {
        steps += [withdraw(search, index, .expired), .countOutcome(.expired)]
      } else if !drivers.isFree(asked.driver), drivers.isHere(asked.driver) || !isInCluster {
        steps += [withdraw(search, index, .unavailable), .countOutcome(.withdrawn)]
      }
    }
    return reconcile(search, steps)
  }

  /// Continues after withdrawals: looks for the next drivers, or ends where none may be asked any more.
  mutating func reconcile(_ search: Int, _ steps: [OfferStep]) -> [OfferStep] {
    if slab[search].wanted > 0 {
      enqueue(search, anew: !steps.isEmpty)
    } else if slab[search].openOffers == 0 {
      return finish(search, behind: steps)
    }
    return steps.isEmpty ? [] : [.recordSearch(slab[search])] + steps
  }

  /// Ends a search without further drivers.
  mutating func finish(_ search: Int, behind steps: [OfferStep]) -> [OfferStep] {
    let ended = end(search, .unserved, driver: nil)
    return ended + steps + [.notifyUnserved(trip: Int(slab[search].trip.index))]
  }

  // MARK: Reading back

  /// Restores a search; false where its trip is not known.
  mutating func load(_ durable: DurableOffers, _ trips: borrowing Trips) -> Bool {
    if durable.report.criteria.limit == 0 {
      loadOther(durable)
      return true
    }
    guard let trip = trips.find(durable.report.tripID) else { return false }
    forget(trip: trip)
    let search = slab.insert(OfferSearch(durable, trip: trips.handle(of: trip)))
    byTrip[UInt32(trip)] = search
    if durable.report.end == nil { countOpen(durable.asker, 1) }
    return true
  }

  /// After loading: arms a review of each running search at once. Time passes while the hub is down; where the clock
  /// was set back meanwhile, a driver has at most its full time to answer.
  mutating func resume(_ drivers: borrowing Drivers, at now: Moment, _ deadlines: inout Deadlines) {
    for search in 0..<slab.endIndex where slab.isInUse(search) && slab[search].end == nil {
      for index in slab[search].asked.indices {
        let asked = slab[search].asked[index]
        let driver = drivers.find(asked.id).map { drivers.handle(of: $0) }
        slab[search].asked[index].driver = driver
        guard asked.isOpen else { continue }
        if let driver { byDriver[driver.index] = search }
        let left = min(max(0, asked.expires.seconds(since: now.timestamp)), Double(slab[search].criteria.seconds))
        slab[search].asked[index].deadline = now.uptime + nanoseconds(left)
      }
      slab[search].armed = now.uptime
      deadlines.arm(.offers, slab.handle(of: search), at: now.uptime)
    }
  }

  func forEachRecord<E: Error>(_ body: (DurableRecord) throws(E) -> Void) throws(E) {
    for search in 0..<slab.endIndex where slab.isInUse(search) { try body(.offers(slab[search].durable)) }
  }
}
