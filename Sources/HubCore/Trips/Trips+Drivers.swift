// Trips and drivers as they are shown together: a driver with the trip that its position is of, a trip with its
// driver's position. Trips know drivers; a driver knows the handle of a trip.
import HubMessages

extension Trips {
  /// The trip for a new subscriber, with its driver's newest position and ETA if that position belongs to this trip and
  /// the trip is active.
  func snapshot(of trip: Int, among drivers: borrowing Drivers, at now: Moment, after: UInt64) -> Subscribed.Snapshot {
    let id = self[trip].id
    guard !self[trip].isOver(at: now.uptime), let driver = self[trip].driverID.flatMap({ drivers.find($0) }),
      let positionTrip = drivers[driver].positionTrip, current(positionTrip) == trip
    else { return Subscribed.Snapshot(trip: self[trip].state) }
    return Subscribed.Snapshot(
      trip: self[trip].state, position: drivers[driver].location(trip: id, at: now.timestamp, after: after),
      eta: self[trip].currentETA?.update(ofTrip: id, at: now.timestamp, after: after))
  }

  /// A driver's newest position for a new subscriber; nil where there is none.
  func snapshot(
    ofDriver driver: Int, among drivers: borrowing Drivers, at now: Moment, after: UInt64
  ) -> Subscribed.Snapshot? {
    guard drivers[driver].position != nil else { return nil }
    let trip = shownTrip(of: driver, among: drivers, at: now)
    return Subscribed.Snapshot(position: drivers[driver].location(trip: trip, at: now.timestamp, after: after))
  }

  /// The trip that a driver's position is of; nil where it is of none, or the trip is over.
  private func shownTrip(of driver: Int, among drivers: borrowing Drivers, at now: Moment) -> Identifier? {
    let trip = drivers[driver].positionTrip.flatMap { current($0) }
    return trip.flatMap { self[$0].isOver(at: now.uptime) ? nil : self[$0].id }
  }

  /// A driver as ops and the driver itself see it. Over HTTP it has its trip, where it is on exactly one. Over a socket
  /// it has none, since there a result with a trip's id is a trip.
  func report(
    _ driver: Int, of drivers: borrowing Drivers, _ replyTo: MessageID?, at now: Moment
  ) -> DriverReport {
    var report = drivers.report(of: driver, at: now.timestamp)
    if replyTo == nil { report.tripID = onlyActive(of: drivers.handle(of: driver)).map { self[$0].id } }
    return report
  }

  /// A page of the drivers found. Between two turns one may have been forgotten, and its index reused for another.
  func list(_ found: [Int], of drivers: borrowing Drivers, cursor: String?, at now: Moment) -> DriverList {
    let indices = found.filter { drivers.isInUse($0) }
    var list = DriverList(drivers: [], cursor: cursor, indices: indices)
    for driver in indices {
      let trip = shownTrip(of: driver, among: drivers, at: now)
      list.drivers.append(drivers.listed(driver, trip: trip, at: now.timestamp))
    }
    return list
  }

  /// What is stored of a driver.
  func durable(driver: Int, of drivers: borrowing Drivers) -> DurableDriver {
    let positionTrip = drivers[driver].positionTrip.flatMap { current($0) }
    let trip = positionTrip ?? drivers[driver].lastTrip.flatMap { current($0) }
    return drivers.durable(driver, trip: trip.map { self[$0].id }, isPositionOnTrip: positionTrip != nil)
  }

  /// All that is stored of trips, and of the drivers, whose records name them.
  func forEachRecord<E: Error>(of drivers: borrowing Drivers, _ body: (DurableRecord) throws(E) -> Void) throws(E) {
    try body(.highestTripNumber(newestNumber))
    for trip in 0..<endIndex where isInUse(trip) { try body(.trip(self[trip].durable)) }
    for driver in 0..<drivers.endIndex where drivers[driver].durable.isKnown {
      try body(.driver(durable(driver: driver, of: drivers)))
    }
  }

  /// Restores what a record says of trips; false where it does not follow from those before.
  mutating func load(_ record: DurableRecord, at uptime: Int64) -> Bool {
    if case .trip(let durable) = record { return load(durable, at: uptime) }
    if case .highestTripNumber(let number) = record { restore(newestNumber: number) }
    if case .eta(let id, let eta) = record {
      guard let trip = find(id) else { return false }
      load(eta, of: trip, at: uptime)
    }
    return true
  }

  /// Throws where a driver's fixes may not name the trip, which is unknown where `trip` is nil.
  func checkNamed(_ trip: Int?, _ id: Identifier, by driver: Identifier, isGranted: Bool) throws(ErrorReply) {
    let owner = trip.flatMap { self[$0].driverID }
    if owner == driver || isGranted && owner == nil { return }
    throw Trips.forbidsNaming(id)
  }

  /// The refusal of a fix that may not name the trip: the same whether or not there is such a trip.
  static func forbidsNaming(_ id: Identifier) -> ErrorReply {
    ErrorReply(code: .forbidden, message: "trip \(id) is another driver's, or your token does not name it")
  }

  /// The driver of an active trip that does not count the trip as active yet; nil where there is none.
  func uncounted(_ trip: Int) -> Identifier? {
    self[trip].status.occupiesDriver && self[trip].occupied == nil ? self[trip].driverID : nil
  }

  /// The driver on its way to a trip's target, and its newest position if that belongs to this trip.
  func positionOnLeg(_ trip: Int, among drivers: borrowing Drivers) -> (driver: Int, position: Position)? {
    guard self[trip].status.target != nil, let driver = self[trip].driverID.flatMap({ drivers.find($0) }),
      let position = drivers[driver].position, drivers[driver].positionTrip == handle(of: trip)
    else { return nil }
    return (driver, position)
  }

  /// The driver of a `driver:` channel, or of a `trip:` channel whose trip its newest fixes name; nil for others.
  func driver(on channel: Channel, among drivers: borrowing Drivers) -> Int? {
    switch channel {
    case .driver(let id): return drivers.find(id)
    case .trip(let id):
      guard let trip = find(id), let driver = self[trip].driverID.flatMap({ drivers.find($0) }),
        drivers[driver].lastTrip.flatMap({ current($0) }) == trip
      else { return nil }
      return driver
    case .fence, .area, .nearby, .box, .counts, .countsBlock, .fleet, .trips, .raw, .stats: return nil
    }
  }
}
