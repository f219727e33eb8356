// Trips whose driver is at another hub, and drivers whose trip is (Cluster/DistantTrips.swift).
import HubMessages

extension Hub {
  /// Follows a driver at another hub while it is busy with a trip of this one; called when its session moves, or its
  /// last trip here begins or ends.
  mutating func followDistant(_ driver: Int) {
    guard drivers[driver].isElsewhere else { return }
    let name = Channel.driver(drivers[driver].id)
    if drivers[driver].activeTrips == 0 { return link(name, to: channels.unwant(name)) }
    if !channels.want(name) { counters.count(full: .channels) }
  }

  mutating func carryOut(_ steps: [DistantTrips.Step]) {
    for step in steps {
      switch step {
      case .busy(let driver): drivers.beginTrip(driver)
      case .free(let driver):
        drivers.endTrip(driver, at: now.timestamp)
        if storage.hasRoom { recordDriver(driver) }
      case .ended(let trip, let isNowhere): channels.unwant(.trip(trip), isNowhere: isNowhere)
      case .changed(let driver):
        noteArea(driver)
        if let fix = distant.begins(by: driver) { begin(fix, by: driver) }
      }
    }
  }

  /// Whether a trip that a driver's fix names is known to be at no hub, so that it may begin here. Else it is looked
  /// up, once.
  mutating func lookUp(_ fix: DistantTrips.Beginning, by driver: Int) -> Bool {
    switch distant.look(for: fix, by: driver, at: now.uptime) {
    case .isNowhere: return true
    case .waits: return false
    case .begins(let steps):
      carryOut(steps)
      if channels.want(.trip(fix.trip)) { distant.begin(fix, by: driver, at: now.uptime) }
      return false
    }
  }

  /// Begins a trip that a fix has named and no hub has, with the fix's position.
  private mutating func begin(_ fix: DistantTrips.Beginning, by driver: Int) {
    do throws(ErrorReply) {
      guard let trip = try tripForFixes(of: driver, fix.trip, isGranted: fix.isGranted, at: fix.time),
        let position = drivers[driver].position, position.timestamp >= fix.time
      else { return }
      // It was published before its trip began. A batch's `fix.time` is when that was sent, later than the position.
      take(position, after: nil, driver: driver, onTrip: trip)
    } catch {}  // it may begin with the driver's next fix
  }

  mutating func resume(_ answer: Subscribed, _ missed: [Publication]) {
    if let trip = answer.snapshot?.trip { carryOut(distant.take(.init(trip), of: answer.channel, drivers)) }
    if let position = answer.snapshot?.position { drive(position) }
    for publication in missed { note(publication) }
    channels.resume(answer, missed)
  }

  mutating func relay(_ publication: Publication) {
    note(publication)
    channels.relay(publication, &storage, counting: &counters)
  }

  mutating func relay(_ position: PublishedPosition) {
    drive(position.location)
    channels.relay(position)
  }

  mutating func end(_ name: Channel, _ reason: Unsubscribed.Reason) {
    carryOut(distant.take(.over, of: name, drivers))
    channels.emit(onFollowed: name) { .channelEnded($0, name, reason) }
  }

  private mutating func note(_ publication: Publication) {
    if case .driverLocation(let location) = publication.body { return drive(location) }
    if let found = DistantTrips.Finding(publication) { carryOut(distant.take(found, of: publication.channel, drivers)) }
  }

  private mutating func drive(_ location: DriverLocation) {
    guard let (trip, driver) = trips.driven(location, among: drivers, at: now.uptime) else { return }
    take(Position(location), after: drivers[driver].position, driver: driver, onTrip: trip)
    if DistantTrips.isRecorded(trips[trip].progress), storage.hasRoom { recordTrip(trip, isUpdate: false) }
  }

  /// Takes and publishes a trip's position: of its driver at another hub, or one published before the trip began.
  private mutating func take(_ position: Position, after last: Position?, driver: Int, onTrip trip: Int) {
    trips.measure(position, after: last, trip: trip, at: now.uptime)
    drivers.storePosition(position, of: driver, trip: trips.handle(of: trip), at: now)
    let age = drivers[driver].age(of: position, at: now.timestamp)
    channels.publish(
      position.location(of: drivers[driver].id, trip: trips[trip].id, age: age), of: driver, on: trips[trip].channel,
      received: now.uptime, at: now.timestamp, storedThrough: storage.storedThrough)
    updateLeg(position, age: age, driver: driver, trip: trip)
  }
}
