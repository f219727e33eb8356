// ETAs and notices of a trip: drives with a known truth, through the hub.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubETATests {
  @Test("on a straight drive to the pickup the ETA is the crow's time times the area's factor")
  func direct() throws {
    let trip = try TripBench(dropoff: (0, 9000))
    trip.drive(from: (6000, 0), to: (100, 0), speed: 10)
    let first = try #require(trip.etas.first)
    #expect(first.second == 1 && first.update.target == .pickup && first.update.basis == .direct)
    #expect(abs(first.update.distance - 1.3 * 5990) < 40)
    for (second, update) in trip.etas where second > 60 {
      let meters = 6000 - 10 * second
      // Nothing is known of a faster way than the prior's, and the pace is the truth's within 2 % by now.
      #expect(abs(update.distance - 1.3 * meters) < 1.3 * meters * 0.01 + 15, "\(update) at \(second)")
      #expect(abs(update.eta - 0.13 * meters) < 0.13 * meters * 0.05 + 3, "\(update) at \(second)")
    }
  }

  @Test("along a route the ETA is within 5 % or 5 s of the truth once the pace is known", arguments: [1.0, 4])
  func route(interval: Double) throws {
    // A zigzag of 6.1 km over 4 km, that crosses itself once.
    let points: [Offset] = [
      (0, 0), (1000, 0), (1000, 800), (400, 800), (400, -600), (2000, -600), (2000, 300), (2600, 300),
    ]
    let trip = try TripBench(dropoff: (2600, 300), route: points)
    trip.fix((0, 0), speed: 0)
    trip.move(.arrivedPickup, .tripStarted)
    let start = trip.second
    let length = zip(points, points.dropFirst()).reduce(0.0) {
      $0 + abs($1.0.east - $1.1.east) + abs($1.0.north - $1.1.north)
    }
    for (from, to) in zip(points, points.dropFirst()) { trip.drive(from: from, to: to, speed: 10, interval: interval) }
    let received = trip.etas.filter { $0.update.target == .dropoff && $0.second > start + 1 }
    #expect(received.allSatisfy { $0.update.basis == .route })
    let arrival = try #require(received.last).update.arrivalTime
    #expect(abs(arrival.seconds(since: trip.bench.now.timestamp)) < 6, "\(arrival)")
    for (second, update) in received where second > start + 120 {
      let truth = length / 10 - (second - start)
      #expect(abs(update.eta - truth) < max(truth * 0.05, 5), "\(update.eta) for \(truth)")
      #expect(abs(update.distance - truth * 10) < 60)
    }
    #expect(trip.kinds(.offRoute).isEmpty)
  }

  @Test("an ETA across the antimeridian is like any other")
  func antimeridian() throws {
    let trip = try TripBench(dropoff: (4000, 0), route: [(0, 0), (2000, 0), (4000, 0)], origin: at(-17, 179.99))
    trip.fix((0, 0), speed: 0)
    trip.move(.arrivedPickup, .tripStarted)
    trip.drive(from: (0, 0), to: (3000, 0), speed: 15)
    let last = try #require(trip.etas.last?.update)
    #expect(last.basis == .route && abs(last.distance - (4000 - 15 * (trip.etas.last!.second))) < 80)
  }

  @Test("ETAs come 5 s apart or more, and each says something new: over 4 s and 4 %, or another basis or target")
  func rate() throws {
    let trip = try TripBench(dropoff: (0, 5000))
    var random = SplitMix64(seed: 6)
    var east = 8000.0
    for _ in 0..<900 where east > 0 {
      let speed = Double.random(in: 0...20, using: &random)
      east -= speed
      trip.bench.advance(seconds: 1)
      trip.fix((east, 0), speed: speed)
    }
    #expect(trip.etas.count > 5)
    for (before, after) in zip(trip.etas, trip.etas.dropFirst()) {
      #expect(after.second - before.second >= 5)
      let change = abs(after.update.arrivalTime.seconds(since: before.update.arrivalTime))
      #expect(change > max(4, min(0.04 * after.update.eta, 60)) - 0.1, "\(change) s of \(after.update.eta)")
    }
    // Whoever drives as expected makes no news.
    let steady = try TripBench(dropoff: (9000, 0), route: [(0, 0), (9000, 0)])
    steady.fix((0, 0), speed: 8)
    steady.move(.arrivedPickup, .tripStarted)
    steady.drive(from: (0, 0), to: (8000, 0), speed: 8)
    #expect(steady.etas.count < 6, "\(steady.etas.count)")
  }

  @Test("near is 300 m or 2 minutes, whichever is first; there is 50 m for 15 s; each once for each target")
  func nearAndThere() throws {
    let trip = try TripBench(dropoff: (0, 3000))
    trip.drive(from: (3000, 0), to: (0, 0), speed: 20)
    let near = try #require(trip.notifications.first)
    #expect(near.notification.kind == .driverArriving && near.notification.leg?.target == .pickup)
    #expect(near.notification.driverID == id("d"))
    let leg = try #require(near.notification.leg)
    #expect(leg.eta <= 120 && leg.eta > 110 && leg.distance > 300, "by its time")
    trip.stand((20, 0), seconds: 10)
    #expect(trip.kinds(.driverArrived).isEmpty)
    let before = trip.second
    trip.stand((20, 0), seconds: 40)
    let arrived = trip.kinds(.driverArrived)
    #expect(arrived.count == 1 && arrived[0] - before <= 6)
    // Out and in again: sent already.
    trip.drive(from: (20, 0), to: (600, 0), speed: 10)
    trip.drive(from: (600, 0), to: (0, 0), speed: 10)
    trip.stand((0, 0), seconds: 30)
    #expect(trip.notifications.count == 2)
    trip.move(.arrivedPickup)
    trip.stand((0, 0), seconds: 30)
    #expect(trip.notifications.count == 2, "while it waits it arrives nowhere")
    trip.move(.tripStarted)
    trip.drive(from: (0, 0), to: (0, 3000), speed: 2.5, interval: 4)
    trip.stand((0, 3000), seconds: 20)
    #expect(
      trip.notifications.map(\.notification.kind) == [
        .driverArriving, .driverArrived, .driverArriving, .driverArrived,
      ])
    #expect(trip.notifications[2].notification.leg?.target == .dropoff)
  }

  @Test("of a batch, and of the fixes that waited in a tunnel, the newest gives the ETA", arguments: [15, 45])
  func batches(count: Int) throws {
    let trip = try TripBench(dropoff: (9000, 0), route: [(0, 0), (9000, 0)])
    trip.fix((0, 0), speed: 0)
    trip.move(.arrivedPickup, .tripStarted)
    trip.drive(from: (0, 0), to: (1000, 0), speed: 10, interval: 4)
    var east = 1000.0
    while east + 40 * Double(count) < 9000 {
      trip.batch(from: (east, 0), to: (east + 40 * Double(count), 0), count: count, interval: 4)
      east += 40 * Double(count)
      let last = try #require(trip.etas.last)
      let truth = (9000 - east) / 10
      let shown = last.update.arrivalTime.seconds(since: trip.bench.now.timestamp)
      #expect(abs(shown - truth) < max(5, truth * 0.05), "\(shown) for \(truth) at \(east) m")
    }
    #expect(trip.etas.count < 9, "one a batch at most")
  }

  @Test("a route that ends far from the dropoff, as one of another precision does, is not followed, and is counted")
  func otherPrecision() throws {
    let trip = try TripBench(dropoff: (2000, 0), route: [(0, 0), (20_000, 0)])
    trip.fix((0, 0), speed: 0)
    trip.move(.arrivedPickup, .tripStarted)
    trip.drive(from: (0, 0), to: (1000, 0), speed: 10)
    #expect(trip.etas.allSatisfy { $0.update.basis == .direct })
    #expect(trip.bench.hub.counters.routesNotFollowed == 1)
  }

  @Test("who passes by does not arrive")
  func passingBy() throws {
    let trip = try TripBench(dropoff: (0, 3000))
    trip.drive(from: (600, 0), to: (-600, 0), speed: 10)
    #expect(trip.kinds(.driverArriving).count == 1 && trip.kinds(.driverArrived).isEmpty)
  }

  @Test("a stay begins within 50 m and ends beyond 75: a position that wanders between does not begin it anew")
  func dwell() {
    let empty = UnitVector(at(0, 0))
    var leg = ActiveLeg(target: .pickup, place: empty, route: nil, start: at(0, 0), startMeters: 0)
    let rules = TripRules()
    let stay: [(Double, Double, Bool)] = [
      (0, 51, false), (1, 50, false), (8, 74, false), (15, 51, false), (15.999, 20, false), (16, 75, true),
      (20, 76, false), (40, 60, false), (41, 49, false), (55.9, 75, false), (56, 75, true),
    ]
    for (seconds, meters, isThere) in stay {
      #expect(leg.dwells(meters, at: .test(seconds), rules: rules) == isThere, "\(seconds)")
    }
  }

  @Test("the radius, the dwell and the times are the operator's")
  func ownRules() throws {
    var timings = HubTimings()
    timings.trips.arrivingMeters = 1000
    timings.trips.arrivingSeconds = 10
    timings.trips.arrivedMeters = 200
    timings.trips.leftMeters = 250
    timings.trips.dwellSeconds = 5
    let trip = try TripBench(dropoff: (0, 9000), timings: timings)
    trip.drive(from: (2000, 0), to: (150, 0), speed: 10)
    #expect(abs((trip.kinds(.driverArriving).first ?? 0) - 100) < 3)
    #expect(abs((trip.kinds(.driverArrived).first ?? 0) - 185) < 3)
  }

  @Test("off the route is notified once for each leaving, and the ETA is direct until the driver is back")
  func offRoute() throws {
    let trip = try TripBench(dropoff: (9000, 0), route: [(0, 0), (9000, 0)])
    trip.fix((0, 0), speed: 0)
    trip.move(.arrivedPickup, .tripStarted)
    trip.drive(from: (0, 0), to: (1000, 0), speed: 10, interval: 2)
    #expect(trip.etas.last?.update.basis == .route)
    for round in 1...2 {
      let east = Double(round) * 1000
      trip.drive(from: (east, 0), to: (east, 400), speed: 10, interval: 2)
      trip.drive(from: (east, 400), to: (east + 700, 400), speed: 10, interval: 2)
      #expect(trip.kinds(.offRoute).count == round)
      #expect(trip.etas.last?.update.basis == .direct)
      trip.drive(from: (east + 700, 400), to: (east + 700, 0), speed: 10, interval: 2)
      trip.drive(from: (east + 700, 0), to: (east + 1000, 0), speed: 10, interval: 2)
      #expect(trip.etas.last?.update.basis == .route)
    }
    #expect(trip.notifications.last?.notification.leg?.target == .dropoff)
  }

  @Test("who subscribes gets the ETA that others know, counted down; who comes back gets it behind the events")
  func snapshot() throws {
    let trip = try TripBench(dropoff: (0, 5000))
    trip.drive(from: (5000, 0), to: (4000, 0), speed: 10)
    let known = try #require(trip.etas.last?.update)
    trip.bench.advance(seconds: 30)
    let bench = trip.bench
    let turn = bench.turn(
      bench.subscribe(bench.trip("t"), slot: 81), bench.subscribe(bench.trip("t"), since: 1, slot: 82))
    let eta = try #require(turn.subscribed.first?.answer.snapshot?.eta)
    #expect(eta.arrivalTime == known.arrivalTime && eta.distance == known.distance && eta.after == 3)
    #expect(abs(eta.eta - known.arrivalTime.seconds(since: bench.now.timestamp)) <= 0.5)
    let back = try #require(turn.subscribed.last)
    #expect(back.answer.recovered && back.answer.snapshot?.eta == nil)
    guard case .etaUpdate(let last) = back.missed.last?.body, case .driverLocation = back.missed.dropLast().last?.body
    else {
      Issue.record("\(back.missed)")
      return
    }
    #expect(last == eta)
    // None for where nobody is going.
    trip.move(.arrivedPickup, .tripStarted, .arrivedDestination)
    let over = bench.turn(bench.subscribe(bench.trip("t"), slot: 83))
    let left = over.subscribed.first?.answer.snapshot
    #expect(left?.eta == nil && left?.position != nil)
  }

  @Test("a trip without places has no ETA; the hub keeps nothing for it")
  func withoutPlaces() throws {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("u")))
    let session = bench.connect("d")
    var turn = bench.turn(bench.fix(session, trip: "u", speed: 10))
    bench.advance(seconds: 10)
    turn = bench.turn(bench.fix(session, trip: "u", at: at(52.521, 13.405), speed: 10))
    #expect(turn.positions.count == 1 && turn.etas.isEmpty && bench.hub.trips.legs.count == 0)
  }

  @Test("legs that were driven teach the area's factor; a leg is kept only while it is driven")
  func learning() throws {
    let trip = try TripBench(dropoff: (0, 9000))
    trip.drive(from: (4000, 0), to: (4000, 3000), speed: 15)
    trip.drive(from: (4000, 3000), to: (0, 3000), speed: 15)
    trip.drive(from: (0, 3000), to: (0, 0), speed: 15)
    #expect(trip.bench.hub.trips.legs.count == 1)
    trip.move(.arrivedPickup)
    // 10 km instead of 4, on top of the 13 for 10 that were assumed.
    let factor = trip.bench.hub.trips.legs.circuity.factor(at: trip.place((0, 0)))
    #expect(abs(factor - 23.0 / 14) < 0.01, "\(factor)")
    trip.move(.tripStarted, .cancelled)
    #expect(trip.bench.hub.trips.legs.count == 0 && trip.bench.hub.trips.legs.routePoints == 0)
  }

  @Test(
    "where there is no room for another route the ETA is direct, to the dropoff or the route's end, and it is counted",
    arguments: [(2000, 0), nil] as [Offset?])
  func routeLimit(dropoff: Offset?) throws {
    var limits = HubLimits.roomy
    limits.routePoints = Route.maximumPoints - 1
    let trip = try TripBench(dropoff: dropoff, route: [(0, 0), (2000, 0)], limits: limits)
    trip.fix((0, 0), speed: 0)
    trip.move(.arrivedPickup, .tripStarted)
    trip.drive(from: (0, 0), to: (1990, 0), speed: 10)
    trip.stand((1990, 0), seconds: 15)
    let etas = trip.etas.filter { $0.update.target == .dropoff }
    #expect(!etas.isEmpty && etas.allSatisfy { $0.update.basis == .direct })
    #expect(trip.kinds(.driverArriving).count == 2 && trip.kinds(.driverArrived).count == 1)
    #expect(trip.bench.hub.counters.routesNotFollowed == 1)
    limits.routePoints += 1
    let roomy = try TripBench(dropoff: (2000, 0), route: [(0, 0), (2000, 0)], limits: limits)
    roomy.fix((0, 0), speed: 0)
    roomy.move(.arrivedPickup, .tripStarted)
    #expect(roomy.bench.hub.counters.routesNotFollowed == 0 && roomy.bench.hub.trips.legs.routePoints == 2)
    roomy.move(.arrivedDestination)
    #expect(roomy.bench.hub.trips.legs.routePoints == 0)
  }
}
