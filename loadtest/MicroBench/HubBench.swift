// A hub with one driver on a trip and one rider who follows it: what a fix costs between the gateway's two lists.

import HubBytes
import HubCore
import HubGeo
import HubMessages

struct HubBench: ~Copyable {
  private static let driver = SessionRef(outlet: 0, slot: 0, generation: 1)
  private static let rider = SessionRef(outlet: 0, slot: 1, generation: 1)

  private var hub: Hub
  private var inputs = HubInputs()
  private var outputs = HubOutputs()
  private let trip: Identifier
  private let messageID: MessageID
  private var milliseconds: Int64 = 1_763_680_000_000

  /// `isStored`: with a journal, whose records are thrown away. `isOnRoute`: the trip has a route that the driver is
  /// on.
  init(isOnRoute: Bool = false, isStored: Bool = false) {
    guard let driver = Identifier("driver-17"), let trip = Identifier("T17"), let messageID = MessageID("d17-123"),
      let epoch = InlineText("bench")
    else { preconditionFailure("the ids are right") }
    self.trip = trip
    self.messageID = messageID
    let limits = HubLimits(
      drivers: 1000, trips: 1000, channels: 1000, eventsPerChannel: 16, events: 1000, queryHits: 10,
      queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 100, profiles: 100)
    hub = Hub(
      limits: limits, timings: HubTimings(), sampling: SamplingRules(), epoch: epoch, seed: 1, outlets: 1,
      now: Moment(uptime: 0, timestamp: Timestamp(milliseconds: milliseconds)))
    if isStored { hub.attachJournal(limit: 1 << 20, startsEpoch: true, epoch: epoch) }
    inputs.append(.driverConnecting(HubBench.driver, driver))
    inputs.append(
      .subscribe(
        SubscribeInput(
          session: HubBench.rider, actor: Actor(role: .ops, id: driver), messageID: messageID,
          request: Subscribe(channel: .trip(trip)), grant: .granted)))
    turn()
    if isOnRoute { startTrip(driver) }
  }

  /// A trip to the north with a place on its route each 150 m, as far as the bench drives.
  private mutating func startTrip(_ driver: Identifier) {
    let points = (0..<2000).compactMap { Coordinate(latitude: HubBench.latitude(80_000 + 10 * $0), longitude: 11.5) }
    guard let first = points.first, let last = points.last else { preconditionFailure("they are on Earth") }
    let route: Route
    do throws(Route.Fault) { route = try Route(points: points) } catch { preconditionFailure("\(error)") }
    for (number, status) in TripStatus.allCases.prefix(5).enumerated() {
      guard let id = MessageID("m\(number)") else { preconditionFailure("the ids are right") }
      let report = TripStatusReport(
        tripID: trip, status: status, timestamp: now.timestamp, pickup: first, dropoff: last, driverID: driver,
        route: route)
      inputs.append(
        .tripStatus(
          TripStatusInput(
            session: HubBench.rider, actor: Actor(role: .ops, id: driver), messageID: id, report: report,
            tripIsGranted: true)))
    }
    turn()
  }

  private static func latitude(_ second: Int) -> Double { Double(second) * 15 / 111_195 }

  private var now: Moment {
    Moment(
      uptime: (milliseconds - 1_763_680_000_000) * 1_000_000 + 1, timestamp: Timestamp(milliseconds: milliseconds))
  }

  private mutating func turn() {
    hub.handle(inputs, now: now)
    hub.endTurn()
    var newest: UInt64 = 0
    hub.takeRecords { _, ticket in
      newest = ticket
      return true
    }
    hub.stored(through: newest, condition: .good)
    hub.drain(0, into: &outputs)
    inputs.removeAll()
  }

  /// Drives north at 15 m/s, a fix a second.
  mutating func takeFix() -> Int {
    milliseconds += 1000
    let second = Int(milliseconds / 1000) % 100_000
    guard let place = Coordinate(latitude: HubBench.latitude(second), longitude: 11.5) else { return 0 }
    let fix = Fix(
      coordinate: place, timestamp: Timestamp(milliseconds: milliseconds), accuracy: 5, heading: 0, speed: 15)
    inputs.append(
      common: FixInput(
        session: HubBench.driver, messageID: messageID, sent: now.timestamp, received: now,
        update: LocationUpdate(tripID: trip, fix: fix), tripIsGranted: true))
    turn()
    return outputs.count
  }

  /// Fixes of a batch.
  static let batch = 50

  /// One drive, 50 fixes at once.
  mutating func takeBatch() -> Int {
    let fixes = (0..<HubBench.batch).map { _ -> Result<Fix, ErrorCode> in
      milliseconds += 1000
      guard let place = Coordinate(latitude: HubBench.latitude(Int(milliseconds / 1000) % 100_000), longitude: 11.5)
      else { return .failure(.invalidLocation) }
      return .success(
        Fix(coordinate: place, timestamp: Timestamp(milliseconds: milliseconds), accuracy: 5, heading: 0, speed: 15))
    }
    inputs.append(
      .batch(
        BatchInput(
          session: HubBench.driver, driverID: nil, messageID: messageID, sent: now.timestamp, received: now,
          batch: LocationBatch(tripID: trip, fixes: fixes), tripIsGranted: true)))
    turn()
    return outputs.count
  }
}
