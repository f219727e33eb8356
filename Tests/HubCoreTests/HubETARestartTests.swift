// Notifications of a trip over a restart: none is repeated, and the summary continues.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubETARestartTests {
  private let plane = LocalPlane(origin: at(48.1, 11.5))
  private let session = SessionRef(outlet: 0, slot: 3, generation: 9)

  private func place(_ east: Double, _ north: Double) -> Coordinate {
    plane.coordinate(eastMeters: east, northMeters: north)
  }

  private func fix(_ bench: DurableBench, _ place: Coordinate, speed: Double) -> HubInput {
    .fix(
      FixInput(
        session: session, messageID: bench.freshMessage(), sent: bench.now.timestamp, received: bench.now,
        update: LocationUpdate(
          tripID: id("T"), fix: Fix(coordinate: place, timestamp: bench.now.timestamp, accuracy: 5, speed: speed)),
        tripIsGranted: true))
  }

  private func request(_ bench: DurableBench, edgeMeters: Double = 9000) throws -> HubInput {
    let report = TripStatusReport(
      tripID: id("T"), status: .requested, timestamp: bench.now.timestamp, pickup: place(0, 0), dropoff: place(9000, 0),
      driverID: id("D"), route: try Route(points: stride(from: 0, through: 9000, by: edgeMeters).map { place($0, 0) }))
    return .tripStatus(
      TripStatusInput(
        session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .ops, id: id("o")),
        messageID: bench.freshMessage(), report: report, tripIsGranted: true))
  }

  /// Drives along x with a fix each 2 s, and gives the kinds of notifications that left.
  private func drive(
    _ bench: DurableBench, from: Double, to: Double, north: Double = 0
  ) -> [HubMessages.Notification.Kind] {
    var kinds: [HubMessages.Notification.Kind] = []
    var east = from
    while east <= to {
      bench.advance(seconds: 2)
      var outputs = bench.turn([fix(bench, place(east, north), speed: 10)])
      #expect(Turn(loops: [outputs]).notifications.isEmpty, "an event waits for the disk")
      outputs += bench.store()
      kinds += Turn(loops: [outputs]).notifications.filter { $0.leg != nil }.map(\.kind)
      east += 20
    }
    return kinds
  }

  private func moves(_ bench: DurableBench, _ steps: [TripStatus]) {
    bench.turn(steps.map { bench.move(.driver, "D", "T", $0) })
    bench.store()
  }

  @Test("a route longer than any way on Earth gives an ETA that can be stored and read back")
  func endlessRoute() throws {
    let bench = try DurableBench()
    bench.turn([.driverConnecting(session, id("D")), bench.subscribe("T"), try request(bench)])
    moves(bench, [.accepted, .driverEnRoute, .arrivedPickup, .tripStarted])
    _ = drive(bench, from: 0, to: 60)
    let endless = try Route(points: (0..<60).map { at(0, $0 % 2 == 0 ? 0 : 179.9) } + [place(9000, 0)])
    bench.turn([
      .tripChange(
        TripChangeInput(
          session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .ops, id: id("o")),
          messageID: bench.freshMessage(), timestamp: bench.now.timestamp,
          change: TripChange(tripID: id("T"), route: endless)))
    ])
    bench.store()
    #expect(bench.hub.trips[0].lastPublishedETA?.meters == Estimate.longestMeters)
    #expect(
      try DurableBench(reading: bench.submitted, seed: 9).hub.trips[0].lastPublishedETA?.meters
        == Estimate.longestMeters)
  }

  @Test("after a restart near and off the route are not sent again, and all is counted on")
  func restart() throws {
    let first = try DurableBench()
    first.turn([.driverConnecting(session, id("D")), first.subscribe("T"), try request(first)])
    moves(first, [.accepted, .driverEnRoute])
    #expect(drive(first, from: -900, to: -200) == [.driverArriving])
    moves(first, [.arrivedPickup, .tripStarted])
    #expect(drive(first, from: 0, to: 2000) == [])
    let before = first.submitted.count
    #expect(drive(first, from: 2000, to: 2500, north: 300) == [.offRoute])
    let route = Array(try #require(first.hub.trips[0].route).polyline.utf8)
    #expect(!first.submitted[before...].contains { $0.contains(route) }, "it is not written once more")
    // A move writes the trip as it is.
    moves(first, [])
    let summary = first.hub.trips[0].progress.summary
    let second = try DurableBench(reading: first.submitted, seed: 77, uptime: 9_000_000_000_000)
    let stored = second.hub.trips[0].progress
    #expect(stored.notices == [.pickupNear, .offRoute])
    #expect(stored.approachMeters == first.hub.trips[0].progress.approachMeters)
    #expect(stored.summary.track <= summary.track && stored.summary.track > 2000)
    second.turn([.driverConnecting(session, id("D")), second.subscribe("T")])
    second.store()
    #expect(drive(second, from: 2500, to: 3500, north: 300) == [])
    #expect(drive(second, from: 3500, to: 5000) == [])
    #expect(!second.hub.trips[0].progress.notices.contains(.offRoute), "it is back")
    #expect(drive(second, from: 5000, to: 5500, north: 300) == [.offRoute])
    #expect(drive(second, from: 5500, to: 8990) == [.driverArriving])
    let third = try DurableBench(reading: first.submitted + second.submitted, seed: 5)
    #expect(third.hub.trips[0].progress.notices == [.pickupNear, .dropoffNear])
  }

  @Test("after a restart the ETA is that of what is left of the route, with the first fix")
  func restLeft() throws {
    let first = try DurableBench()
    first.turn([.driverConnecting(session, id("D")), first.subscribe("T"), try request(first, edgeMeters: 40)])
    moves(first, [.accepted, .driverEnRoute])
    _ = drive(first, from: 0, to: 20)
    moves(first, [.arrivedPickup, .tripStarted])
    _ = drive(first, from: 40, to: 4000)
    let second = try DurableBench(reading: first.submitted, seed: 77, uptime: 9_000_000_000_000)
    second.turn([.driverConnecting(session, id("D")), second.subscribe("T")])
    second.store()
    second.advance(seconds: 20)
    let etas = Turn(loops: [second.turn([fix(second, place(4200, 0), speed: 10)])]).etas
    #expect(etas.allSatisfy { $0.basis == .route && abs($0.distance - 4800) < 30 }, "\(etas)")
    #expect(second.hub.trips[0].lastPublishedETA?.basis == .route)
  }

  @Test("while nothing can be stored nothing is sent, and all is when there is room again")
  func full() throws {
    let bench = try DurableBench()
    bench.turn([.driverConnecting(session, id("D")), bench.subscribe("T"), try request(bench)])
    moves(bench, [.accepted, .driverEnRoute])
    bench.store(condition: .unavailable)
    bench.advance(seconds: 1)
    bench.turn([fix(bench, place(100, 0), speed: 10)])
    #expect(bench.hub.counters.eventsNotStored == 0, "it is late, not lost")
    bench.store(condition: .good)
    #expect(drive(bench, from: 120, to: 130) == [.driverArriving])
  }
}
