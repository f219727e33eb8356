// What people do in the simulated world: each action becomes an input of the loop that the person is connected to.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport

@testable import HubCore

extension Simulation {
  // MARK: Drivers

  /// A driver comes, on whatever loop: perhaps it is connected elsewhere, then it is replaced.
  func connectDriver() {
    let loop = pick(loops.count)
    let driver = pick(Cast.drivers)
    guard let slot = loops[loop].openSlot(driver: driver, visitor(driver)) else { return }
    let session = loops[loop].reference(slot)
    loops[loop].inputs.append(
      SimulatedInput(
        kind: .connecting(driver: driver), session: session, input: .driverConnecting(session, Cast.driverIDs[driver])))
  }

  /// Someone with development's word, or with a token that names some of the trips.
  private func visitor(_ actor: Int) -> SimulatedLoop.Visitor {
    SimulatedLoop.Visitor(actor: actor, isDevelopment: oneIn(4), names: random.next())
  }

  /// A token replaces another: the loop asks about every subscription.
  func refreshToken() {
    let loop = pick(loops.count)
    loops[loop].refresh(pick(Cast.slots), names: random.next())
  }

  func closeSlot() {
    let loop = pick(loops.count)
    loops[loop].close(pick(Cast.slots))
  }

  /// A fix or a batch from a driver that believes to be connected, now and then a batch over HTTP.
  func sendFixes() {
    let loop = pick(loops.count)
    let isHTTP = oneIn(30)
    let slot = pick(Cast.slots)
    guard let driver = isHTTP ? pick(Cast.drivers) : loops[loop].openDriver(slot) else { return }
    let session = isHTTP ? SessionRef(outlet: UInt32(loop), slot: 99, generation: 1) : loops[loop].reference(slot)
    let trip: Int? = oneIn(3) ? nil : (driver + pick(oneIn(4) ? Cast.trips : 2)) % Cast.trips
    let isGranted = !oneIn(10)
    phones[driver].place = phones[driver].place.moved(by: Double(pick(30)), &random)
    let sent = Timestamp(milliseconds: now.timestamp.milliseconds + phones[driver].offset)
    if !isHTTP, !oneIn(6) {
      let fix = fix(of: driver)
      let update = LocationUpdate(tripID: trip.map { Cast.tripIDs[$0] }, fix: fix)
      loops[loop].inputs.append(
        SimulatedInput(
          kind: .fixes(driver: driver, trip: trip, isGranted: isGranted, count: 1), session: session,
          input: .fix(
            FixInput(
              session: session, messageID: Cast.messages[0], sent: sent, received: now, update: update,
              tripIsGranted: isGranted))))
      return
    }
    let count = 1 + pick(6)
    let fixes = (0..<count).map { _ in oneIn(10) ? .failure(ErrorCode.invalidLocation) : Result.success(fix(of: driver))
    }
    loops[loop].inputs.append(
      SimulatedInput(
        kind: .fixes(driver: driver, trip: trip, isGranted: isGranted, count: count), session: isHTTP ? nil : session,
        input: .batch(
          BatchInput(
            session: session, driverID: isHTTP ? Cast.driverIDs[driver] : nil, messageID: Cast.messages[1],
            sent: isHTTP ? now.timestamp : sent, received: now,
            batch: LocationBatch(tripID: trip.map { Cast.tripIDs[$0] }, fixes: fixes), tripIsGranted: isGranted))))
  }

  /// Mostly good and newer than the last; sometimes late, the same again, an hour ahead, or not to be believed.
  private func fix(of driver: Int) -> Fix {
    var time = max(now.timestamp.milliseconds + phones[driver].offset, phones[driver].lastSent + 1)
    var place = phones[driver].place
    var accuracy = 5 + Double(pick(20))
    switch pick(24) {
    case 0: time -= Int64(1 + pick(60_000))
    case 1: time = phones[driver].lastSent
    case 2: time += 3_600_000
    case 3: place = at(0, 0)
    case 4: place = at(-place.latitude, place.longitude)
    case 5: accuracy = 5000
    default: phones[driver].lastSent = time
    }
    return Fix(coordinate: place, timestamp: Timestamp(milliseconds: max(0, time)), accuracy: accuracy)
  }

  // MARK: Trips

  /// Mostly the next step of the trip by someone who may make it, else anything by anyone.
  func moveTrip() {
    let trip = pick(Cast.trips)
    var actor = pick(Cast.actors.count)
    var status = TripStatus.allCases[pick(TripStatus.allCases.count)]
    if !oneIn(4) {
      status = model.trips[trip]?.status.next ?? .requested
      if let driver = model.trips[trip]?.driver, oneIn(2) { actor = driver }
    }
    let expected = oneIn(4) ? TripStatus.allCases[pick(TripStatus.allCases.count)] : nil
    let loop = pick(loops.count)
    loops[loop].inputs.append(
      move(
        actor: actor, trip: trip, status, message: pick(Cast.messages.count), expected: expected, slot: UInt32(pick(4)),
        loop: UInt32(loop), driver: oneIn(3) ? pick(Cast.drivers) : nil, rider: oneIn(3) ? pick(Cast.riders) : nil,
        isGranted: !oneIn(8)))
  }

  func move(
    actor: Int, trip: Int, _ status: TripStatus, message: Int, expected: TripStatus?, slot: UInt32, loop: UInt32 = 0,
    driver: Int? = nil, rider: Int? = nil, isGranted: Bool = true
  ) -> SimulatedInput {
    let report = TripStatusReport(
      tripID: Cast.tripIDs[trip], status: status, timestamp: now.timestamp, expectedStatus: expected,
      pickup: message % 2 == 0 ? phones[0].place : nil, dropoff: message % 3 == 0 ? phones[1].place : nil,
      driverID: driver.map { Cast.driverIDs[$0] }, riderID: rider.map { Cast.actors[Cast.drivers + $0].id },
      route: message % 4 == 0 ? Cast.route : nil)
    return SimulatedInput(
      kind: .move(actor: actor, trip: trip, report: report, message: message, isGranted: isGranted), session: nil,
      input: .tripStatus(
        TripStatusInput(
          session: SessionRef(outlet: loop, slot: slot, generation: 0), actor: Cast.actors[actor],
          messageID: Cast.messages[message], report: report, tripIsGranted: isGranted)))
  }

  // MARK: Subscribers

  /// A session subscribes, subscribes again with what it saw last (or with nonsense), or leaves.
  func subscribeOrLeave() {
    let loop = pick(loops.count)
    let slot = pick(Cast.slots)
    if !loops[loop].isOpen(slot) { loops[loop].openViewer(slot, visitor(pick(Cast.actors.count))) }
    guard loops[loop].isOpen(slot) else { return }
    let topic = oneIn(10) ? Cast.fleet : pick(Cast.topics)
    let session = loops[loop].reference(slot)
    if oneIn(4) {
      loops[loop].inputs.append(
        SimulatedInput(
          kind: .unsubscribe(topic: topic), session: session,
          input: .unsubscribe(session, Cast.messages[2], Cast.channels[topic])))
      return
    }
    var resume: ResumePoint?
    if let seen = loops[loop].remembered(slot, topic), !oneIn(4) {
      resume = ResumePoint(since: seen, epoch: HubBench.epoch)
    } else if oneIn(4) {
      resume = ResumePoint(since: UInt64(pick(30)), epoch: oneIn(3) ? Cast.messages[0].text : HubBench.epoch)
    }
    let visitor = loops[loop].slots[slot].visitor
    let grant = visitor.grant(topic)
    loops[loop].inputs.append(
      SimulatedInput(
        kind: .subscribe(topic: topic, resume: resume, actor: visitor.actor, grant: grant), session: session,
        input: .subscribe(
          SubscribeInput(
            session: session, actor: Cast.actors[visitor.actor], messageID: Cast.messages[3],
            request: Subscribe(channel: Cast.channels[topic], resume: resume), grant: grant))))
  }

  /// What a driver says of itself: sometimes only how it is, sometimes what it drives.
  private func driverStatus() -> DriverStatusReport {
    let words = [message("van"), message("bus"), message("xl")].map(\.text)
    let status = [DriverStatus.available, .unavailable, .background][pick(3)]
    return DriverStatusReport(
      status: status, vehicleType: oneIn(2) ? words[pick(3)] : nil,
      tags: oneIn(2) ? Array(words.prefix(pick(4))) : nil)
  }

  private func search() -> DriverSearch {
    let filter = DriverFilter(
      status: oneIn(4) ? .available : nil, tags: oneIn(4) ? [InlineText("xl")!] : [],
      maxAge: oneIn(4) ? 30 : nil, includesStale: oneIn(3))
    let area: DriverSearch.Area =
      oneIn(2)
      ? .nearby(at(52.5, 13.4), radiusMeters: oneIn(2) ? 4_000 : nil)
      : .box(BoundingBox(center: at(52.5, 13.4), radiusMeters: 4_000))
    return DriverSearch(area: area, limit: pick(9) + 1, filter: filter)
  }

  func askSomething() {
    let loop = pick(loops.count)
    let session = loops[loop].reference(pick(Cast.slots))
    let input: HubInput =
      switch pick(6) {
      case 0: .query(session, .driver(Cast.driverIDs[pick(Cast.drivers)]))
      case 1:
        .query(session, .drivers(search(), oneIn(2) ? .ops : .riders, by: HubBench.asker), replyTo: Cast.messages[6])
      case 4:
        .trips(
          session,
          .show(
            TripQuery(
              id: Cast.tripIDs[pick(Cast.trips)], actor: Actor(role: .ops, id: Cast.driverIDs[0]), grant: .granted)))
      case 5: .trips(session, .list(TripListQuery(limit: 1 + pick(4), below: UInt64(1 + pick(40)))))
      case 2: .driverStatus(session, Cast.messages[4], driverStatus())
      default: .ping(session, Cast.messages[5], Ping())
      }
    loops[loop].inputs.append(SimulatedInput(kind: .other, session: session, input: input))
  }
}

extension Coordinate {
  /// A step in a random direction; the world is small, so a degree is a degree.
  fileprivate func moved(by meters: Double, _ random: inout SplitMix64) -> Coordinate {
    let degrees = meters / 111_195
    return at(
      min(80, max(10, latitude + degrees * Double.random(in: -0.7...0.7, using: &random))),
      min(100, max(-100, longitude + degrees * Double.random(in: -0.7...0.7, using: &random))))
  }
}
