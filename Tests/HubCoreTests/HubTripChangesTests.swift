// Changes of a trip's pickup, dropoff and route: who may make them, what is published, and the driver's new way.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubTripChangesTests {
  private let route = Route.through(at(48.1, 11.5), at(48.2, 11.5))

  @Test("a change is acked, sent once on the trip's and its driver's channel with what changed, and shown from then on")
  func received() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")), bench.subscribe(bench.driver("d")))
    _ = bench.connect("d")
    bench.turn(bench.move(.rider, "r", "t", .requested), bench.move(.driver, "d", "t", .accepted))
    let turn = bench.turn(bench.change(.rider, "r", "t", dropoff: at(48.2, 11.6), message: message("c")))
    #expect(turn.acks.map(\.replyTo) == [message("c")] && turn.moves.count == 2)
    for update in turn.moves {
      #expect(update.status == .accepted && update.previousStatus == nil && update.driverID == id("d"))
      #expect(update.dropoff == at(48.2, 11.6) && update.pickup == nil && update.route == nil)
    }
    #expect(turn.moves.map(\.sequence) == [3, 2])
    #expect(bench.hub.trips[0].report.dropoff == at(48.2, 11.6))
    // The same message again, and the same content in another one, change nothing.
    for id in ["c", "c2"] {
      let again = bench.turn(bench.change(.rider, "r", "t", dropoff: at(48.2, 11.6), message: message(id)))
      #expect(again.acks.count == 1 && again.deliveries.isEmpty)
    }
    #expect(bench.hub.counters.tripChanges == 1)
    let missed = bench.turn(bench.subscribe(bench.trip("t"), since: 2)).subscribed.first?.missed
    #expect(missed?.compactMap(\.move?.dropoff) == [at(48.2, 11.6)])
  }

  @Test("a change that changed nothing is remembered too: sent again after another one it changes nothing")
  func repeated() {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "r", "t", .requested))
    let (here, there) = (at(48.1, 11.5), at(48.2, 11.6))
    for (place, name) in [(here, "c1"), (here, "c2"), (there, "c3"), (here, "c2")] {
      #expect(bench.turn(bench.change(.rider, "r", "t", pickup: place, message: message(name))).acks.count == 1)
    }
    #expect(bench.hub.trips[0].pickup == there && bench.hub.counters.tripChanges == 2)
  }

  @Test("who may begin the trip may change it: its rider, ops, and the driver of a trip without a rider")
  func rights() {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "r", "t", .requested), bench.move(.driver, "d", "t", .accepted))
    bench.turn(bench.fix(bench.connect("d"), trip: "own"))
    let rows: [(Role, String, trip: String, ErrorCode?)] = [
      (.rider, "r", "t", nil), (.ops, "o", "t", nil), (.driver, "d", "t", .forbidden), (.rider, "r2", "t", .forbidden),
      (.driver, "d", "own", nil), (.ops, "o", "own", nil), (.rider, "r", "own", .forbidden),
      (.driver, "d2", "own", .forbidden), (.ops, "o", "none", .unknownTrip), (.rider, "r", "none", .unknownTrip),
    ]
    for (role, actor, trip, code) in rows {
      let turn = bench.turn(bench.change(role, actor, trip, pickup: at(48.1, 11.5)))
      #expect(turn.codes == (code.map { [$0] } ?? []) && turn.acks.count == (code == nil ? 1 : 0), "\(actor) \(trip)")
    }
    #expect(bench.hub.counters.tripMovesRefused == 6)
  }

  @Test("a trip changes until its driver has arrived at the destination; then the refusal says its state")
  func states() {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "r", "t", .requested))
    var step = 0.0
    for status in TripStatus.allCases where status != .cancelled {
      if status != .requested { bench.turn(bench.move(.driver, "d", "t", status)) }
      step += 0.01
      let turn = bench.turn(bench.change(.rider, "r", "t", dropoff: at(48 + step, 11.6)))
      if status < .arrivedDestination {
        #expect(turn.acks.count == 1 && turn.errors.isEmpty, "\(status)")
      } else {
        #expect(turn.codes == [.invalidTransition] && turn.errors.first?.status == status)
      }
    }
  }

  @Test("a route goes with the places that it led between, unless a new one comes with the change")
  func routes() {
    let bench = HubBench()
    bench.turn(bench.move(.ops, "o", "t", .requested))
    #expect(bench.turn(bench.change(.ops, "o", "t", route: route)).acks.count == 1)
    #expect(bench.hub.trips[0].route == route)
    let moved = bench.turn(
      bench.subscribe(bench.trip("t")), bench.change(.ops, "o", "t", dropoff: at(48.2, 11.5), route: route))
    #expect(bench.hub.trips[0].route == route)
    #expect(moved.moves.map(\.route) == [route.polyline], "a new place without one would say that there is none")
    bench.turn(bench.change(.ops, "o", "t", dropoff: at(48.2, 11.5)))
    #expect(bench.hub.trips[0].route == route, "nothing is another")
    bench.turn(bench.change(.ops, "o", "t", pickup: at(48.11, 11.5)))
    #expect(bench.hub.trips[0].route == nil)
  }

  @Test("the new ETA comes at once; on a new route progress starts anew; near and there are sent again of a new place")
  func guided() throws {
    let trip = try TripBench(dropoff: (4000, 0), route: [(0, 0), (4000, 0)])
    trip.fix((0, 0), speed: 0)
    trip.move(.arrivedPickup, .tripStarted)
    trip.drive(from: (0, 0), to: (3900, 0), speed: 10)
    #expect(trip.kinds(.driverArriving).count == 2, "at the pickup and at the dropoff")
    let way = try Route(points: [trip.place((3900, 0)), trip.place((3900, 3000))])
    let turn = trip.bench.turn(trip.bench.change(.ops, "o", "t", dropoff: trip.place((3900, 3000)), route: way))
    let eta = try #require(turn.etas.first)
    #expect(eta.basis == .route && eta.target == .dropoff && abs(eta.distance - 3000) < 60)
    #expect(turn.moves.first?.route == way.polyline)
    trip.drive(from: (3900, 0), to: (3900, 2990), speed: 10)
    #expect(trip.kinds(.driverArriving).count == 3 && trip.kinds(.offRoute).isEmpty)
    let direct = trip.bench.turn(trip.bench.change(.ops, "o", "t", dropoff: trip.place((3900, 9000))))
    #expect(direct.etas.first?.basis == .direct)
  }

  @Test("a trip that began by a fix can get its dropoff, and has an ETA from then on")
  func begunByFix() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.subscribe(bench.trip("t")), bench.fix(session, trip: "t"))
    bench.advance(seconds: 1)
    #expect(bench.turn(bench.fix(session, trip: "t")).etas.isEmpty)
    let turn = bench.turn(bench.change(.driver, "d", "t", pickup: at(52.53, 13.405)))
    #expect(turn.etas.map(\.target) == [.pickup] && turn.moves.map(\.pickup) == [at(52.53, 13.405)])
  }

  @Test("all kept events hold so many bytes of routes; beyond that the oldest of all are forgotten, without gaps")
  func limit() {
    var limits = HubLimits.roomy
    limits.eventContentBytes = 3 * route.polyline.utf8.count
    let bench = HubBench(limits: limits)
    let other = Route.through(at(48.2, 11.5), at(48.1, 11.5))
    for (trip, role, actor) in [("t", Role.rider, "r"), ("u", .ops, "o")] {
      bench.turn(bench.move(role, actor, trip, .requested))
      for route in [route, other] {
        #expect(bench.turn(bench.change(role, actor, trip, route: route)).acks.count == 1, "whoever asks")
      }
    }
    #expect(bench.hub.channels.contentBytes == 3 * route.polyline.utf8.count)
    let kept = bench.turn(bench.subscribe(bench.trip("t"), since: 2)).subscribed.first
    #expect(kept?.answer.recovered == true && kept?.missed.compactMap(\.move?.sequence) == [3])
    let gone = bench.turn(bench.subscribe(bench.trip("t"), since: 1, slot: 81)).subscribed.first
    #expect(gone?.answer.recovered == false)
    let whole = bench.turn(bench.subscribe(bench.trip("u"), since: 0)).subscribed.first
    #expect(whole?.missed.compactMap(\.move?.sequence) == [1, 2, 3])
    // One event alone may be as long as it is.
    let long = Route.through(at(48.1, 11.5), at(48.2, 11.5), at(48.3, 11.5), at(48.4, 11.5), at(48.5, 11.5), at(49, 11))
    #expect(bench.turn(bench.change(.ops, "o", "u", route: long)).acks.count == 1)
  }

  @Test("a channel's events hold so many bytes of routes and texts: beyond that its oldest are forgotten, without gaps")
  func limitOfChannel() {
    var limits = HubLimits.roomy
    limits.eventContentBytesPerChannel = 2 * route.polyline.utf8.count
    let bench = HubBench(limits: limits)
    bench.turn(bench.move(.ops, "o", "t", .requested))
    let other = Route.through(at(48.2, 11.5), at(48.1, 11.5))
    for step in 0..<5 { bench.turn(bench.change(.ops, "o", "t", route: step % 2 == 0 ? route : other)) }
    #expect(bench.hub.channels.contentBytes == 2 * route.polyline.utf8.count)
    let kept = bench.turn(bench.subscribe(bench.trip("t"), since: 4)).subscribed.first
    #expect(kept?.answer.recovered == true && kept?.missed.compactMap(\.move?.sequence) == [5, 6])
    let gone = bench.turn(bench.subscribe(bench.trip("t"), since: 3)).subscribed.first
    #expect(gone?.answer.recovered == false)
    // One event alone may be as long as it is.
    let long = Route.through(at(48.1, 11.5), at(48.2, 11.5), at(48.3, 11.5), at(48.4, 11.5), at(48.5, 11.5), at(49, 11))
    #expect(bench.turn(bench.change(.ops, "o", "t", route: long)).acks.count == 1)
    let alone = bench.turn(bench.subscribe(bench.trip("t"), since: 6)).subscribed.first
    #expect(alone?.missed.compactMap(\.move?.sequence) == [7])
  }

  @Test("a change that changes nothing is acked, and nothing is stored of it, however often it comes")
  func withoutEffect() throws {
    let bench = try DurableBench()
    bench.turn([bench.move(.ops, "o", "T", .requested)])
    bench.store()
    func change(_ message: String) -> HubInput {
      .tripChange(
        TripChangeInput(
          session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .ops, id: id("o")),
          messageID: MessageID(message)!, timestamp: bench.now.timestamp,
          change: TripChange(tripID: id("T"), route: route)))
    }
    bench.turn([change("c0")])
    bench.store()
    let stored = bench.submitted.count
    for number in 1...20 {
      let answers = bench.turn([change("c\(number)")]) + bench.store()
      #expect(Turn(loops: [answers]).acks.count == 1)
    }
    #expect(bench.submitted.count == stored)
  }

  @Test("an acked change is there after a restart: the trip, its event, and by whom it was made")
  func restart() throws {
    let first = try DurableBench()
    first.turn([first.move(.ops, "o", "T", .requested)])
    first.store()
    let change = TripChangeInput(
      session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .ops, id: id("o")),
      messageID: message("c"), timestamp: first.now.timestamp,
      change: TripChange(tripID: id("T"), pickup: at(48.1, 11.5), dropoff: at(48.2, 11.5), route: route))
    #expect(Turn(loops: [first.turn([.tripChange(change)])]).acks.isEmpty, "it is not stored yet")
    #expect(Turn(loops: [first.store()]).acks.count == 1)
    let second = try DurableBench(reading: first.submitted, seed: 9)
    #expect(try second.state() == first.state())
    let found = second.hub.trips.find(id("T"))
    let trip = try #require(found)
    #expect(second.hub.trips[trip].dropoff == at(48.2, 11.5) && second.hub.trips[trip].route == route)
    second.store()
    let again = Turn(loops: [second.turn([.tripChange(change)])])
    #expect(again.acks.count == 1 && second.hub.counters.tripChanges == 0)
    let missed = Turn(loops: [second.turn([second.subscribe("T", since: 1)])]).subscribed.first?.missed
    #expect(missed?.compactMap(\.move).map(\.route) == [route.polyline])
    second.store(condition: .unavailable)
    #expect(Turn(loops: [second.turn([.tripChange(change)])]).codes == [.storageFull])
  }
}

extension Route {
  fileprivate static func through(_ places: Coordinate...) -> Route {
    do { return try Route(points: places) } catch { preconditionFailure("\(error)") }
  }
}
