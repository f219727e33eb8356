// The next drivers to ask: the nearest available ones that fit and were not asked yet, found in the index within the
// budget of a turn.
import HubGeo
import HubMessages

extension Offers {
  /// The fixed cost of a search step, in candidates.
  private static let weight = 64

  /// Continues the queued searches, one after the other, until the turn's budget is used up.
  mutating func advance(
    _ drivers: borrowing Drivers, _ trips: borrowing Trips, at now: Moment, _ deadlines: inout Deadlines,
    budget whole: SearchBudget
  ) -> [OfferStep] {
    var (budget, steps) = (whole, [OfferStep]())
    var left = queue.count
    while left > 0, isLooking, budget.cells > 0, budget.candidates > 0, let handle = queue.next() {
      left -= 1
      guard let search = slab.current(handle), slab[search].isQueued else { continue }
      slab[search].isQueued = false
      guard slab[search].end == nil, let trip = trips.current(slab[search].trip), let pickup = trips[trip].pickup,
        slab[search].wanted > 0
      else { continue }
      // It has changed while nothing could be stored, and so was not reviewed then.
      guard trips[trip].isWithoutDriver else {
        steps += review(search, drivers, trips, at: now)
        continue
      }
      if isInCluster {
        if let step = gather(for: search, around: pickup) { steps.append(step) }
        continue
      }
      let (found, isOver) = look(for: search, around: pickup, drivers, at: now, &budget)
      budget.candidates = max(0, budget.candidates - Offers.weight)
      if !isOver {
        slab[search].isQueued = true
        queue.append(handle)
      }
      let asked = ask(found, search, drivers, trips, around: pickup, at: now)
      steps += asked.steps
      if asked.isIncomplete {
        enqueue(search)
      } else if isOver, slab[search].openOffers == 0 {
        steps += finish(search, behind: [])
      }
      arm(search, &deadlines)
    }
    return steps
  }

  /// The next drivers, nearest first, as far as known; `isOver` where there are no others.
  private mutating func look(
    for search: Int, around pickup: Coordinate, _ drivers: borrowing Drivers, at now: Moment,
    _ budget: inout SearchBudget
  ) -> (found: [DriverHit], isOver: Bool) {
    let (wanted, area) = (slab[search].wanted, OfferArea(slab[search].criteria, around: pickup))
    let fit = OfferFit(slab[search], busy: byDriver, at: now.timestamp)
    var hits: [DriverHit] = []
    switch slab[search].look {
    case .nearest:
      let outcome = drivers.index.nearest(
        to: pickup, limit: wanted, withinMeters: area.boundMeters, spending: &budget, into: &hits
      ) { driver, label in fit.accepts(driver, label, drivers) && area.has(drivers.index.position(of: driver)) }
      guard case .exhausted(let exact) = outcome else { break }
      hits.removeAll { $0.distanceMeters > exact }
      // Farther drivers are found after these. Without any, the search goes on cell by cell.
      if hits.isEmpty { slab[search].look = .scanning(.start, []) }
      DriverHit.sort(&hits, from: 0)
      return (hits, false)
    case .scanning(let cursor, let kept):
      hits = kept
      let point = SearchPoint(pickup)
      var best = BestHits(keeping: hits, limit: wanted, withinMeters: area.boundMeters)
      let next = drivers.index.traverse(from: cursor, spending: &budget) { cell in
        point.minimumSquaredChord(to: cell) <= best.squaredChordLimit
      } visit: { entry in
        let hit = DriverHit(driver: entry.driver, distanceMeters: point.vector.distance(to: entry.vector))
        guard hit.distanceMeters <= area.boundMeters, best.wants(hit, hits),
          fit.accepts(entry.driver, entry.label, drivers), area.has(drivers.index.position(of: entry.driver)),
          !hits.contains(where: { $0.driver == hit.driver })
        else { return }
        best.add(hit, to: &hits)
      }
      if let next {
        slab[search].look = .scanning(next, hits)
        return ([], false)
      }
      slab[search].look = .nearest
    }
    DriverHit.sort(&hits, from: 0)
    return (hits, true)
  }

  /// Asks those of the drivers that still fit. `isIncomplete`: one of them no longer does, since it was found in an
  /// earlier turn or was asked under another handle (it was forgotten and has returned), so others must be found.
  private mutating func ask(
    _ hits: [DriverHit], _ search: Int, _ drivers: borrowing Drivers, _ trips: borrowing Trips,
    around pickup: Coordinate, at now: Moment
  ) -> (steps: [OfferStep], isIncomplete: Bool) {
    var (steps, isIncomplete) = ([OfferStep](), false)
    for hit in hits where slab[search].wanted > 0 {
      let driver = Int(hit.driver)
      guard drivers.isInUse(driver), fits(hit, search, drivers, at: now) else {
        isIncomplete = true
        continue
      }
      if let known = slab[search].asked.firstIndex(where: { $0.id == drivers[driver].id }) {
        slab[search].asked[known].driver = drivers.handle(of: driver)
        isIncomplete = true
        continue
      }
      if let step = offer(to: hit, search, drivers, trips, around: pickup, at: now) { steps.append(step) }
    }
    return (steps.isEmpty ? [] : [.recordSearch(slab[search])] + steps, isIncomplete)
  }

  func fits(_ hit: DriverHit, _ search: Int, _ drivers: borrowing Drivers, at now: Moment) -> Bool {
    OfferFit(slab[search], busy: byDriver, at: now.timestamp)
      .accepts(hit.driver, drivers.label(of: Int(hit.driver)), drivers)
  }

  /// Offers the trip to a driver of this hub.
  mutating func offer(
    to hit: DriverHit, _ search: Int, _ drivers: borrowing Drivers, _ trips: borrowing Trips,
    around pickup: Coordinate, at now: Moment
  ) -> OfferStep? {
    let driver = Int(hit.driver)
    guard let place = drivers[driver].position?.coordinate else { return nil }
    let index = open(search, drivers[driver].id, drivers.handle(of: driver), at: now)
    let dropoff = trips[Int(slab[search].trip.index)].dropoff
    let terms = trips.terms(of: slab[search].asked[index], from: place, to: pickup, dropoff)
    return .notifyDriver(.made(terms), of: slab[search].tripID, to: driver)
  }

  /// Sends the open offers of a trip again where a change gave it another pickup or dropoff.
  func renew(after step: TripStep, _ drivers: borrowing Drivers, _ trips: borrowing Trips) -> [OfferStep] {
    guard step.update.pickup != nil || step.update.dropoff != nil, trips[step.trip].isWithoutDriver,
      let search = byTrip[UInt32(step.trip)], let pickup = trips[step.trip].pickup
    else { return [] }
    let dropoff = trips[step.trip].dropoff
    var steps: [OfferStep] = []
    for asked in slab[search].asked where asked.isOpen {
      if let driver = asked.driver.flatMap({ drivers.current($0) }), !drivers[driver].isElsewhere {
        guard let place = drivers[driver].position?.coordinate else { continue }  // it had one when it was asked
        let terms = trips.terms(of: asked, from: place, to: pickup, dropoff)
        steps.append(.notifyDriver(.made(terms), of: slab[search].tripID, to: driver))
      } else {
        steps.append(.sendToHub(SentOffer(asked, of: slab[search], pickup: pickup, dropoff: dropoff)))
      }
    }
    return steps
  }

  /// Sends a driver's open offer again where it subscribes to its own channel and could not resume it, as after a
  /// restart of its app.
  func repeated(to input: SubscribeInput, _ drivers: borrowing Drivers, _ trips: borrowing Trips) -> [OfferStep] {
    guard input.actor.role == .driver, input.request.channel == .driver(input.actor.id),
      let driver = drivers.find(input.actor.id), let search = byDriver[UInt32(driver)],
      let asked = slab[search].asked.first(where: { $0.isOpen && $0.driver == drivers.handle(of: driver) }),
      let place = drivers[driver].position?.coordinate
    else { return [] }
    let trip = trips.current(slab[search].trip)
    let places = trip.map { [trips[$0].pickup, trips[$0].dropoff] } ?? asked.sentPlaces
    guard let pickup = places.first ?? nil else { return [] }
    let terms = trips.terms(of: asked, from: place, to: pickup, places.last ?? nil)
    return [.notifyDriver(.made(terms), of: slab[search].tripID, to: driver)]
  }

  /// Opens an offer to a driver, whose handle is nil where it is at another hub. Gives its index in `asked`.
  mutating func open(
    _ search: Int, _ id: Identifier, _ driver: Handle?, offered: Timestamp? = nil, at now: Moment
  ) -> Int {
    let seconds = Int64(slab[search].criteria.seconds)
    slab[search].asked.append(
      AskedDriver(
        id: id, driver: driver, offered: offered ?? now.timestamp,
        expires: Timestamp(milliseconds: now.timestamp.milliseconds + seconds * 1000),
        deadline: now.uptime + seconds * 1_000_000_000, answer: .open))
    if let driver { byDriver[driver.index] = search }
    return slab[search].asked.count - 1
  }
}

extension OfferCriteria {
  /// Which drivers fit, wherever they are.
  var filter: DriverFilter {
    DriverFilter(status: .available, vehicleType: vehicleType, tags: tags, maxAge: nil, includesStale: false)
  }
}

/// The area whose drivers are asked. It goes by the rounded places that riders see, so no radius reveals more.
struct OfferArea {
  private let pickup: UnitVector
  private let radiusMeters: Double
  /// No driver in the area is farther from the pickup than this.
  let boundMeters: Double

  init(_ criteria: OfferCriteria, around pickup: Coordinate) {
    self.pickup = UnitVector(pickup)
    radiusMeters = criteria.radiusMeters
    boundMeters = criteria.radiusMeters + PublicGrid.displacementMeters
  }

  func has(_ place: Coordinate?) -> Bool {
    guard let place else { return false }
    return pickup.distance(to: UnitVector(PublicGrid.snapped(place))) <= radiusMeters
  }
}

/// Decides which drivers may be asked for a trip.
private struct OfferFit {
  private let filter: DriverFilter
  private let asked: [Handle]
  private let busy: [UInt32: Int]
  private let time: Timestamp

  init(_ search: OfferSearch, busy: [UInt32: Int], at time: Timestamp) {
    filter = search.criteria.filter
    asked = search.asked.compactMap(\.driver)
    self.busy = busy
    self.time = time
  }

  @inline(__always)
  func accepts(_ driver: UInt32, _ label: DriverLabel, _ drivers: borrowing Drivers) -> Bool {
    guard drivers.matches(driver, label, filter, .ops, at: time), busy[driver] == nil else { return false }
    let handle = drivers.handle(of: Int(driver))
    return drivers.isFree(handle) && drivers[Int(driver)].isReachable && !asked.contains(handle)
  }
}

extension Trips {
  /// The terms of an offer to a driver at `place`.
  func terms(
    of asked: AskedDriver, from place: Coordinate, to pickup: Coordinate, _ dropoff: Coordinate?
  ) -> Offer.Terms {
    let crow = UnitVector(place).distance(to: UnitVector(pickup))
    return Offer.Terms(
      pickup: pickup, dropoff: dropoff, distance: crow.rounded(),
      eta: approach(from: place, to: pickup, crowMeters: crow).seconds.rounded(), expires: asked.expires)
  }
}

extension Drivers {
  /// Whether a driver is known, online here, and available.
  fileprivate func isAvailable(_ driver: Int) -> Bool {
    self[driver].status == .available && !self[driver].isStale && !self[driver].isElsewhere
  }

  /// Whether a driver is known and not at another hub.
  func isHere(_ handle: Handle?) -> Bool { handle.flatMap { current($0) }.map { !self[$0].isElsewhere } ?? false }

  func isFree(_ handle: Handle?) -> Bool { handle.flatMap { current($0) }.map { isAvailable($0) } ?? false }
}
