// Offers over several hubs: a trip's hub asks all hubs for drivers, and offers the trip to those of others over the
// cluster. It alone decides who gets the trip; the driver's hub numbers and stores the driver's messages.
//
//     the trip's hub     who is near? → all hubs → the nearest → recorded → SentOffer, to the driver's hub
//     the driver's hub   recorded, `offer` on `driver:`; or: it can't be asked, back to the trip's hub
//     the driver         `accepted`, `offer_decline` → go to the trip's hub, as its moves do (Forwarding.swift)
//     the trip's hub     the offer has ended → SentOffer → `offer_withdrawn` on `driver:`
//
// Both hubs time the driver's answer by their own clocks, so a lost message counts as silence: the trip's hub asks the
// next driver, and the driver's hub withdraws the offer. Neither repeats an offer after a crash, and duplicates are
// recognised by the time at which an offer was made.
import HubGeo
import HubMessages

extension Offers {
  // MARK: Choosing drivers

  /// Asks all hubs for drivers; nil where they are being asked already.
  mutating func gather(for search: Int, around pickup: Coordinate) -> OfferStep? {
    if slab[search].gathering != nil { return nil }
    let (criteria, count) = (slab[search].criteria, slab[search].wanted + slab[search].asked.count)
    let limit = min(count + slab[search].spare, limits.queryHits)
    slab[search].gathering = (pickup, limit)
    gathers += 1
    let question = DriverSearch(
      area: .nearby(pickup, radiusMeters: OfferArea(criteria, around: pickup).boundMeters), limit: limit,
      filter: criteria.filter)
    return .askCluster(FleetQuestion(question, for: slab.handle(of: search), of: slab[search].tripID))
  }

  /// Asks the nearest fitting drivers of the hubs' merged answer.
  mutating func take(
    _ answer: FleetAnswer, for handle: Handle, _ drivers: borrowing Drivers, _ trips: borrowing Trips, at now: Moment,
    canStore: Bool, _ deadlines: inout Deadlines
  ) -> [OfferStep] {
    gathers -= 1
    guard let search = slab.current(handle), let asked = slab[search].gathering else { return [] }
    slab[search].gathering = nil
    guard slab[search].end == nil, let trip = trips.current(slab[search].trip), let pickup = trips[trip].pickup,
      slab[search].wanted > 0
    else { return [] }
    guard canStore, case .result(.drivers(let list)?) = answer else {  // all hubs are asked again later
      var wait = timings.storageRetry
      if canStore, case .refused(let refusal) = answer {
        // The wait doubles, and differs by trip, so that a busy hub is not asked about all trips at once again.
        let first = (refusal.retryAfter ?? timings.offersRetry) * (1 + Double(handle.index % 16) / 16)
        wait = min(wait, first * Double(1 << min(slab[search].refusals, 6)))
        slab[search].refusals += 1
      }
      deadlines.arm(.offers, handle, at: now.uptime + nanoseconds(wait))
      return []
    }
    slab[search].refusals = 0
    guard trips[trip].isWithoutDriver else {
      return review(search, drivers, trips, at: now)
    }
    guard asked.pickup == pickup else {  // it has changed since
      enqueue(search)
      return []
    }
    var steps: [OfferStep] = []
    for report in list.drivers.sorted(by: { $0.isNearer(than: $1) }) where slab[search].wanted > 0 {
      if let step = ask(report, search, drivers, trips, around: pickup, at: now) { steps.append(step) }
    }
    if !steps.isEmpty { steps.insert(.recordSearch(slab[search]), at: 0) }
    if slab[search].wanted > 0, list.drivers.count >= asked.limit, asked.limit < limits.queryHits {
      slab[search].spare *= 4
      enqueue(search)
    } else if slab[search].openOffers == 0 {
      steps += finish(search, behind: [])
    }
    arm(search, &deadlines)
    return steps
  }

  private mutating func ask(
    _ report: DriverReport, _ search: Int, _ drivers: borrowing Drivers, _ trips: borrowing Trips,
    around pickup: Coordinate, at now: Moment
  ) -> OfferStep? {
    guard let distance = report.distance,
      OfferArea(slab[search].criteria, around: pickup).has(report.position?.coordinate),
      !slab[search].asked.contains(where: { $0.id == report.driverID })
    else { return nil }
    if let driver = drivers.find(report.driverID) {
      if !drivers[driver].isElsewhere {
        let hit = DriverHit(driver: UInt32(driver), distanceMeters: distance)
        return fits(hit, search, drivers, at: now)
          ? offer(to: hit, search, drivers, trips, around: pickup, at: now) : nil
      }
      if drivers[driver].activeTrips > 0 { return nil }
    }
    let index = open(search, report.driverID, nil, at: now)
    let trip = Int(slab[search].trip.index)
    return .sendToHub(
      SentOffer(slab[search].asked[index], of: slab[search], pickup: pickup, dropoff: trips[trip].dropoff))
  }

  // MARK: What another hub says

  mutating func take(
    _ offer: SentOffer, _ drivers: borrowing Drivers, _ trips: borrowing Trips, at now: Moment,
    _ deadlines: inout Deadlines, counting counters: inout HubCounters
  ) -> [OfferStep] {
    switch (offer.way, offer.answer) {
    case (.toTrip, _): return lose(offer, trips)
    case (.toDriver, .open): return make(offer, drivers, trips, at: now, &deadlines, counting: &counters)
    case (.toDriver, .accepted), (.toDriver, .withdrawn): return endOther(offer)
    }
  }

  /// Ends the offer to a driver that its hub cannot ask, or no longer.
  private mutating func lose(_ offer: SentOffer, _ trips: borrowing Trips) -> [OfferStep] {
    guard let trip = trips.find(offer.tripID), let search = byTrip[UInt32(trip)],
      let index = slab[search].asked.firstIndex(where: { offer.names($0) }), slab[search].asked[index].isOpen
    else { return [] }
    close(search, index, .withdrawn(.unavailable))
    slab[search].asked[index].isPassed = slab[search].asked.count < HubLimits.passedDriversPerOffer
    return reconcile(search, [.countOutcome(.withdrawn)])
  }

  private mutating func make(
    _ offer: SentOffer, _ drivers: borrowing Drivers, _ trips: borrowing Trips, at now: Moment,
    _ deadlines: inout Deadlines, counting counters: inout HubCounters
  ) -> [OfferStep] {
    let known = ofOthers[offer.tripID]
    if let known, let index = slab[known].asked.firstIndex(where: { offer.names($0) }) {
      return renew(known, index, offer, drivers, trips)
    }
    guard let driver = drivers.find(offer.driverID), drivers.isFree(drivers.handle(of: driver)),
      drivers[driver].isReachable, byDriver[UInt32(driver)] == nil, let pickup = offer.pickup,
      let place = drivers[driver].position?.coordinate
    else { return [.sendToHub(offer.declined)] }
    guard known.map({ slab[$0].end == nil }) ?? false || openCount < limits.offers else {
      counters.count(full: .offers)
      return [.sendToHub(offer.declined)]
    }
    let steps = known == nil ? makeRoom() : []
    let search = beginOther(offer, at: now)
    let index = open(search, offer.driverID, drivers.handle(of: driver), offered: offer.made, at: now)
    slab[search].asked[index].sentPlaces = offer.places
    let terms = trips.terms(of: slab[search].asked[index], from: place, to: pickup, offer.dropoff)
    arm(search, &deadlines)
    return steps + [.recordSearch(slab[search]), .notifyDriver(.made(terms), of: offer.tripID, to: driver)]
  }

  /// Sends a known offer again where its trip's places have changed; a message that comes twice changes nothing.
  private mutating func renew(
    _ search: Int, _ index: Int, _ offer: SentOffer, _ drivers: borrowing Drivers, _ trips: borrowing Trips
  ) -> [OfferStep] {
    let asked = slab[search].asked[index]
    guard asked.isOpen, asked.sentPlaces != offer.places, let pickup = offer.pickup,
      let driver = asked.driver.flatMap({ drivers.current($0) }), let place = drivers[driver].position?.coordinate
    else { return [] }
    slab[search].asked[index].sentPlaces = offer.places
    let terms = trips.terms(of: asked, from: place, to: pickup, offer.dropoff)
    return [.recordSearch(slab[search]), .notifyDriver(.made(terms), of: offer.tripID, to: driver)]
  }

  /// The running search with the offers of another hub's trip, with room for one more.
  private mutating func beginOther(_ offer: SentOffer, at now: Moment) -> Int {
    let search = ofOthers[offer.tripID] ?? slab.insert(OfferSearch(ofOther: offer.tripID, at: now.timestamp))
    ofOthers[offer.tripID] = search
    if slab[search].end != nil {
      slab[search].end = nil
      countOpen(slab[search].asker, 1)
    }
    slab[search].criteria.seconds = Int(offer.seconds)
    slab[search].asked.removeAll { $0.id == offer.driverID }
    let excess = slab[search].asked.count - HubLimits.passedDriversPerOffer
    if excess >= 0, let ended = slab[search].asked.firstIndex(where: { !$0.isOpen }) {
      slab[search].asked.remove(at: ended)
    }
    return search
  }

  /// The trip's hub has ended an offer.
  private mutating func endOther(_ offer: SentOffer) -> [OfferStep] {
    guard let search = ofOthers[offer.tripID],
      let index = slab[search].asked.firstIndex(where: { offer.names($0) }), slab[search].asked[index].isOpen
    else { return [] }
    if case .withdrawn(let reason) = offer.answer {
      return reconcileOther(search, [withdraw(search, index, reason)])
    }
    close(search, index, .accepted)
    let driver = slab[search].asked[index].driver.map { Int($0.index) }
    return reconcileOther(search, driver.map { [.followAccepted(trip: offer.tripID, by: $0)] } ?? [])
  }

  /// Withdraws offers whose time is over or whose driver is not free; the trip's hub is notified only of the latter.
  mutating func reviewOther(_ search: Int, _ drivers: borrowing Drivers, at now: Moment) -> [OfferStep] {
    var steps: [OfferStep] = []
    for index in slab[search].asked.indices where slab[search].asked[index].isOpen {
      let asked = slab[search].asked[index]
      if asked.deadline <= now.uptime {
        steps.append(withdraw(search, index, .expired))
      } else if drivers.isHere(asked.driver), !drivers.isFree(asked.driver) {
        steps += [withdraw(search, index, .unavailable), .sendToHub(SentOffer(asked, of: slab[search]).declined)]
      }
    }
    return steps.isEmpty ? [] : reconcileOther(search, steps)
  }

  private mutating func reconcileOther(_ search: Int, _ steps: [OfferStep]) -> [OfferStep] {
    if slab[search].openOffers == 0, slab[search].end == nil {
      slab[search].end = .stopped
      countOpen(slab[search].asker, -1)
    }
    return [.recordSearch(slab[search])] + steps
  }

  /// Restores a search of another hub.
  mutating func loadOther(_ durable: DurableOffers) {
    forgetOther(durable.report.tripID)
    let search = slab.insert(OfferSearch(durable, trip: OfferSearch.noTrip))
    ofOthers[durable.report.tripID] = search
    if durable.report.end == nil { countOpen(durable.asker, 1) }
  }

  private mutating func forgetOther(_ trip: Identifier) {
    if let search = ofOthers[trip] { remove(search) }
  }

  /// Removes the offers of a trip, wherever that is.
  mutating func forget(_ id: Identifier, _ trips: borrowing Trips) {
    if let trip = trips.find(id) { forget(trip: trip) } else { forgetOther(id) }
  }
}

extension SentOffer {
  fileprivate func names(_ asked: AskedDriver) -> Bool { asked.id == driverID && asked.offered == made }
}

extension DriverReport {
  fileprivate func isNearer(than other: DriverReport) -> Bool {
    (distance ?? .infinity, driverID.description) < (other.distance ?? .infinity, other.driverID.description)
  }
}
