// A rider books, changes and cancels trips, with a real hub; and what comes of it where the connection ends, or the
// client.
import HubGateway
import HubGeo
import HubMessages
import Testing

@testable import LocationHubClient

@Suite(.timeLimit(.minutes(5))) struct RiderTripTests {
  private let home = Coordinate(latitude: 48, longitude: 11)!
  private let station = Coordinate(latitude: 48.02, longitude: 11)!

  private func rider(_ hub: TestHub, _ id: DriverID = "r1") throws -> RiderHub {
    let rider = try RiderHub("ws://127.0.0.1:\(hub.port)", tokens: .development(.rider, id))
    rider.start()
    return rider
  }

  private func code(_ work: () async throws -> Void) async -> HubError.Code? {
    do { try await work() } catch { return (error as? HubError)?.code }
    return nil
  }

  @Test("a rider books a trip, changes where it goes, and cancels it; the same again changes nothing")
  func books() async throws {
    let hub = try TestHub()
    let rider = try rider(hub)
    for _ in 0..<2 { try await rider.request("T1", from: home, to: station) }
    var trip = try await rider.getTrip("T1")
    #expect(trip.status == .requested && trip.riderID == "r1" && trip.pickup == home && trip.dropoff == station)
    #expect(await code { try await rider.request("T1", from: station) } == .hub(.invalidTransition))
    try await rider.change("T1", pickup: station, dropoff: home)
    trip = try await rider.getTrip("T1")
    #expect(trip.pickup == station && trip.dropoff == home)
    #expect(await code { try await rider.change("T1") } == .badValue)
    let stranger = try self.rider(hub, "r2")
    #expect(await code { try await stranger.cancel("T1") } == .hub(.forbidden))
    try await rider.cancel("T1")
    #expect(try await rider.getTrip("T1").status == .cancelled)
    #expect(await code { try await rider.cancel("T9") } == .hub(.unknownTrip))
    await rider.stop()
    await stranger.stop()
  }

  @Test("a trip that is booked with criteria is offered to a driver who fits, at once")
  func offered() async throws {
    let hub = try TestHub()
    let driver = try DriverHub(
      "ws://127.0.0.1:\(hub.port)", tokens: .development(.driver, "d1"), store: .memory)
    driver.start()
    driver.report(DeviceState(isCharging: true))
    try await driver.setStatus(.available, vehicleType: "van", tags: ["lift"])
    driver.send(Fix(coordinate: home, timestamp: .now, accuracy: 5))
    try await hub.metrics(have: "locationhub_fixes_total{outcome=\"accepted\"} 1")
    var offers = driver.offers.makeAsyncIterator()
    try await hub.metrics(have: "locationhub_subscriptions 1")
    let rider = try rider(hub)
    #expect(
      OfferCriteria(vehicleType: "") == nil
        && OfferCriteria(vehicleType: nil, tags: Array(repeating: "lift", count: 9)) == nil)
    try await rider.request("T1", from: home, offering: OfferCriteria(vehicleType: "van", tags: ["lift"]))
    // On a busy machine the connection may break and come again, which is a gap.
    var first = await offers.next()
    while case .gap? = first { first = await offers.next() }
    guard case .offered("T1", _)? = first else { return #expect(first == nil, "no offer") }
    #expect(try await driver.accept("T1").riderID == "r1")
    await rider.stop()
    await driver.stop()
    guard case .ended(let error)? = await offers.next() else { return #expect(Bool(false)) }
    #expect(error.code == .stopped)
    #expect(await offers.next() == nil)
  }

  @Test("what a rider has asked for goes out after a break, once, and not after stop(), by which it has failed")
  func kept() throws {
    let client = try EngineClient(.json, .rider)
    client.isOffline = true
    client.start()
    var outcomes: [HubError?] = []
    func ask(_ trip: TripID) {
      let report = TripStatusReport(tripID: trip, status: .requested, timestamp: client.now.timestamp, pickup: home)
      client.engine.request(report) { outcomes.append($0.error) }
      client.turn()
    }
    ask("T1")
    client.isOffline = false
    client.pass()
    func written() throws -> [(type: String, id: String, payload: [String: Any])] {
      try client.takeWritten().filter { $0.type == "trip_status" }
    }
    let first = try written()
    #expect(first.count == 1 && outcomes.isEmpty)
    client.cut()
    client.pass()
    let second = try written()
    #expect(second.count == 1 && second[0].id == first[0].id, "the hub knows it by its id")
    client.say("ack", #"{"replyTo":"\#(first[0].id)"}"#)
    #expect(outcomes == [nil])
    client.isOffline = true
    client.cut()
    ask("T2")
    client.stop()
    #expect(outcomes.count == 2 && outcomes[1]?.code == .stopped)
    client.isOffline = false
    client.start()
    #expect(client.session.state == .open)
    #expect(try written().isEmpty)
  }
}

extension Result where Failure == HubError {
  fileprivate var error: HubError? { if case .failure(let error) = self { error } else { nil } }
}
