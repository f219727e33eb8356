// Trips whose driver is at another hub, and drivers whose trip is (Cluster/DistantTrips.swift).
import HubMessages

extension Hub {
  /// Follows a driver at another hub while it is busy with a trip of this one; called when its session moves, or its
  /// last trip here begins or ends.
  mutating func followDistant(_ driver: Int) {
    guard drivers[driver].isElsewhere else { return }
    let name = Channel.driver(drivers[driver].id)
    if drivers[driver].activeTrips == 0 { return name.link(to: channels.unwant(name), &drivers, &trips) }
    if !channels.want(name) { counters.count(full: .channels) }
  }

  mutating func note(_ finding: DistantTrips.Finding, of name: Channel) {
    for driver in distant.take(finding, of: name, &drivers, &channels, at: now.timestamp) {
      noteArea(driver)
      if let fix = distant.begins(by: driver) { begin(fix, by: driver) }
    }
  }

  /// Begins a trip that a fix has named and no hub has, with the fix's position.
  private mutating func begin(_ fix: DistantTrips.Beginning, by driver: Int) {
    do throws(ErrorReply) {
      guard let trip = try tripForFixes(of: driver, fix.trip, isGranted: fix.isGranted, at: fix.time),
        let position = fix.start(trip, &trips, driver, &drivers, at: now)
      else { return }
      publish(position, driver: driver, onTrip: trip)
    } catch {
      counters.fixesForbidden += 1
    }
  }

  mutating func resume(_ answer: Subscribed, _ missed: [Publication]) {
    if let trip = answer.snapshot?.trip { note(.elsewhere(trip.status, driver: trip.driverID), of: answer.channel) }
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
    note(.over, of: name)
    channels.emit(onFollowed: name) { .channelEnded($0, name, reason) }
  }

  private mutating func note(_ publication: Publication) {
    if case .driverLocation(let location) = publication.body { return drive(location) }
    if let finding = DistantTrips.Finding(publication) { note(finding, of: publication.channel) }
  }

  private mutating func drive(_ location: DriverLocation) {
    guard let (trip, driver, position) = trips.drive(location, &drivers, at: now) else { return }
    publish(position, driver: driver, onTrip: trip)
    if DistantTrips.isRecorded(trips[trip].progress), storage.hasRoom { recordTrip(trip, isUpdate: false) }
  }

  private mutating func publish(_ position: Position, driver: Int, onTrip trip: Int) {
    let age = drivers[driver].age(of: position, at: now.timestamp)
    channels.publish(
      position.location(of: drivers[driver].id, trip: trips[trip].id, age: age), of: driver, on: trips[trip].channel,
      received: now.uptime, at: now.timestamp, storedThrough: storage.storedThrough)
    updateLeg(position, age: age, driver: driver, trip: trip)
  }
}
