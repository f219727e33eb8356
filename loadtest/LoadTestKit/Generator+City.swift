// A city: simulated drivers who cruise, get trips and serve them (module Simulation), and for each driver riders who
// follow every trip that they book. Nobody else follows them: what a rider must get is what its driver sends for the
// trip after the hub has sent `subscribed`.
import HubBytes
import HubGeo
import HubMessages
import HubSimulation
import HubSystem
import HubTransport

extension Generator {
  func buildCity() {
    guard let center = Coordinate(latitude: 37.7749, longitude: -122.4194) else {
      preconditionFailure("a coordinate within its range")
    }
    let city = City(seed: UInt64(scenario.seed), center: center, radiusMeters: 5000)
    let start = Timestamp(milliseconds: Int64(FixTime.base))
    cars = drivers.map { driver in
      SimulatedDriver(
        index: driver.pointee.number, city: city, seed: UInt64(scenario.seed), start: start,
        fixInterval: Scenario.simulatedStepSeconds)
    }
    self.city = city
  }

  /// One step of a drive: the moves of trips that fall into it, and its fix.
  func drive(_ local: Int, _ number: Int) {
    let driver = drivers[local]
    // In the middle of a step, so that every time within it has its number: see FixTime.
    let step = cars[local].step(to: (Double(number) + 0.5) * Scenario.simulatedStepSeconds)
    for (index, move) in step.moves.enumerated() { send(move, index, local, number) }
    driver.pointee.lastNumber = number
    guard let fix = step.fix else { return }
    counts.sent += 1
    let trip = cars[local].trip.map { tripID(driver, $0.number) }
    if trip != nil {
      for rider in riders[local] where rider.pointee.expectsFrom != nil { counts.expected += 1 }
    }
    write(.locationUpdate(LocationUpdate(tripID: trip, fix: fix)), id: "f\(number)", to: driver)
  }

  private func tripID(_ driver: PeerPointer, _ number: Int) -> Identifier {
    guard let id = Identifier("T\(scenario.tag)\(driver.pointee.number)-\(number)") else {
      preconditionFailure("letters and digits")
    }
    return id
  }

  private func send(_ move: SimulatedDriver.TripMove, _ index: Int, _ local: Int, _ number: Int) {
    let driver = drivers[local]
    let isRequest = move.trip.status == .requested
    counts.requests += 1
    let report = TripStatusReport(
      tripID: tripID(driver, move.trip.number), status: move.trip.status, timestamp: move.timestamp,
      location: move.location, pickup: isRequest ? move.trip.pickup : nil,
      dropoff: isRequest ? move.trip.dropoff : nil,
      driverID: isRequest ? Identifier("driver-\(scenario.tag)\(driver.pointee.number)") : nil,
      riderID: isRequest ? Identifier("rider-\(scenario.tag)\(driver.pointee.number)-0") : nil)
    write(.tripStatus(report), id: "\(index)m\(number)", to: driver)
    if isRequest { for rider in riders[local] { book(rider, move.trip.number, driver) } }
  }

  /// A rider follows the next trip, and no longer the last.
  private func book(_ rider: PeerPointer, _ trip: Int, _ driver: PeerPointer) {
    if let last = rider.pointee.trip {
      write(.unsubscribe(.channel(.trip(tripID(driver, last)))), id: "u", to: rider)
    }
    rider.pointee.trip = trip
    rider.pointee.expectsFrom = nil
    rider.pointee.sequence = nil
    write(.subscribe(Subscribe(channel: .trip(tripID(driver, trip)))), id: "s\(trip)", to: rider)
  }

  /// The hub has sent `subscribed` to a rider: what its driver sends from now on, it must get.
  func follows(_ rider: PeerPointer, _ payload: UnsafeRawBufferPointer) {
    guard let id = Scan.text("\"replyTo\":\"", in: payload), Scan.trailingNumber(id) == rider.pointee.trip else {
      return
    }
    let driver = drivers[share.local(rider.pointee.number)]
    rider.pointee.expectsFrom = driver.pointee.lastNumber + 1
  }

  /// Whether an event is of the trip that the rider follows, and not of one that it has left meanwhile.
  func isOfItsTrip(_ rider: PeerPointer, _ payload: UnsafeRawBufferPointer) -> Bool {
    guard let channel = Scan.text("\"channel\":\"trip:", in: payload) else { return false }
    return Scan.trailingNumber(channel) == rider.pointee.trip
  }

  private func write(_ message: ClientMessage, id: String, to peer: PeerPointer) {
    guard let messageID = MessageID(id) else { preconditionFailure("letters and digits") }
    sendText(peer) { buffer in
      JSONWriter.write(
        message, messageID: messageID, timestamp: Timestamp(milliseconds: loop.now.unixMilliseconds),
        time: .unixMilliseconds, into: &buffer)
    }
  }
}
