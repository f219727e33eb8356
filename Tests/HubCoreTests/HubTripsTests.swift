// Trips as their parties see them: how they begin and move, who may do what, and what is left of them.
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubTripsTests {
  /// What happens to a trip on its way to a state, each step by its driver.
  private func drive(_ bench: HubBench, _ trip: String, to status: TripStatus, driver: String = "d") {
    let forward: [TripStatus] = [
      .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed,
    ]
    bench.turn(bench.move(.rider, "r", trip, .requested))
    if status == .requested { return }
    if status == .cancelled {
      #expect(bench.turn(bench.move(.rider, "r", trip, .cancelled)).acks.count == 1)
      return
    }
    for step in forward {
      #expect(bench.turn(bench.move(.driver, driver, trip, step)).acks.count == 1)
      if step == status { return }
    }
  }

  @Test("a trip that nobody requested begins with its driver's first fix, accepted and that driver's")
  func begunByFix() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")))
    let session = bench.connect("d")
    let turn = bench.turn(bench.fix(session, trip: "t"))
    #expect(turn.moves.map(\.status) == [.accepted])
    #expect(turn.moves.first?.driverID == id("d"))
    #expect(turn.moves.first?.previousStatus == nil)
    #expect(turn.positions.first?.tripID == id("t"))
    #expect(turn.positions.first?.after == 1, "the event came first")
    #expect(bench.turn(bench.move(.driver, "d", "t", .driverEnRoute)).acks.count == 1)
  }

  @Test("the whole way from requested to completed, on the trip's and the driver's channel")
  func wholeWay() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")), bench.subscribe(bench.driver("d")))
    _ = bench.connect("d")
    var onTrip: [TripUpdate] = []
    var onDriver: [TripUpdate] = []
    let steps: [(Role, String, TripStatus)] = [
      (.rider, "r", .requested), (.driver, "d", .accepted), (.driver, "d", .driverEnRoute),
      (.ops, "o", .arrivedPickup), (.driver, "d", .tripStarted), (.driver, "d", .arrivedDestination),
      (.driver, "d", .completed),
    ]
    for (role, actor, status) in steps {
      let turn = bench.turn(bench.move(role, actor, "t", status))
      #expect(turn.acks.count == 1)
      for delivery in turn.deliveries {
        guard let move = delivery.publication.move else { continue }
        if delivery.publication.channel == bench.trip("t") { onTrip.append(move) } else { onDriver.append(move) }
      }
    }
    #expect(onTrip.map(\.status) == Array(TripStatus.allCases[0...6]))
    #expect(onTrip.map(\.previousStatus) == [nil] + onTrip.dropLast().map { Optional($0.status) })
    #expect(onTrip.map(\.sequence) == Array(1...7))
    #expect(onDriver.map(\.status) == Array(TripStatus.allCases[1...6]))
    #expect(onDriver.map(\.sequence) == Array(1...6))
    #expect(bench.hub.counters.tripMoves == 7)
  }

  @Test("every move by every party from every state is either made or refused with the contract's code")
  func matrix() {
    for from in TripStatus.allCases {
      for target in TripStatus.allCases {
        for (role, actor) in [(Role.ops, "o"), (.driver, "d"), (.rider, "r"), (.driver, "x"), (.rider, "y")] {
          let bench = HubBench()
          drive(bench, "t", to: from)
          let turn = bench.turn(bench.move(role, actor, "t", target, granted: actor == "d" || actor == "r"))
          let trip = bench.hub.trips[0]
          let party = trip.party(of: Actor(role: role, id: id(actor)))
          let mayAccept = actor == "d" && trip.driverID == nil && target == .accepted
          let comment: Comment = "\(role) \(actor): \(from) → \(target)"
          if actor == "r", target == .requested, !from.isFinal {
            #expect(turn.acks.first?.trip?.status == from && turn.errors.isEmpty, comment)
            #expect(bench.hub.trips[0].status == from, comment)
          } else if !mayAccept && !party.mayMove(from: from, to: target) {
            #expect(turn.codes == [.forbidden], comment)
          } else if !from.allows(target) || (role == .ops && target == .accepted && trip.driverID == nil) {
            // Ops cannot accept for nobody: a trip without a driver is accepted by the driver that takes it.
            #expect(turn.codes == [.invalidTransition], comment)
            #expect(turn.errors.first?.status == from, comment)
          } else {
            #expect(turn.acks.count == 1 && turn.errors.isEmpty, comment)
            #expect(bench.hub.trips[0].status == target, comment)
          }
        }
      }
    }
  }

  @Test("any other status than requested for a trip that the hub does not know gets unknown_trip")
  func unknownTrip() {
    let bench = HubBench()
    for status in TripStatus.allCases where status != .requested {
      #expect(bench.turn(bench.move(.ops, "o", "t", status)).codes == [.unknownTrip])
    }
    #expect(bench.hub.shownCounters().entries(.trips) == 0)
    #expect(bench.hub.counters.tripMovesRefused == 7)
  }

  @Test("a rider and a driver of the same id who use the same messageId are two senders")
  func sameNumberOfTwoRoles() {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "7", "t", .requested, message: message("1")))
    let turn = bench.turn(bench.move(.driver, "7", "t", .accepted, message: message("1")))
    #expect(turn.acks.count == 1)
    #expect(bench.hub.trips[0].status == .accepted)
  }

  @Test(
    "requested again with another messageId: an ack with the trip as it stands where it is the same, else its state")
  func requestedAgain() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")))
    bench.turn(bench.move(.rider, "r", "t", .requested))
    bench.turn(bench.move(.driver, "d", "t", .accepted), bench.move(.driver, "d", "t", .driverEnRoute))
    let moves = bench.hub.counters.tripMoves
    for (role, actor, rider) in [(Role.rider, "r", nil), (.rider, "r", "r"), (.driver, "d", "r"), (.ops, "o", "r")] {
      let turn = bench.turn(bench.move(role, actor, "t", .requested, rider: rider))
      #expect(turn.acks.map(\.trip) == [bench.hub.trips[0].state] && turn.deliveries.isEmpty, "\(role)")
      #expect(turn.acks.first?.trip?.driverID == id("d") && turn.acks.first?.trip?.status == .driverEnRoute)
    }
    #expect(bench.hub.counters.tripMoves == moves)
    let others: [(Role, String, driver: String?, rider: String?)] = [
      (.ops, "o", nil, nil), (.ops, "o", "d2", "r"), (.rider, "r", nil, "r2"), (.driver, "d", nil, nil),
    ]
    for (role, actor, driver, rider) in others {
      let turn = bench.turn(bench.move(role, actor, "t", .requested, driver: driver, rider: rider))
      #expect(turn.codes == [.invalidTransition] && turn.errors.first?.status == .driverEnRoute, "\(role)")
    }
    for (role, actor) in [(Role.rider, "r2"), (.driver, "d2")] {
      #expect(bench.turn(bench.move(role, actor, "t", .requested)).codes == [.forbidden])
    }
    bench.turn(bench.move(.ops, "o", "t", .cancelled))
    let over = bench.turn(bench.move(.rider, "r", "t", .requested))
    #expect(over.codes == [.invalidTransition] && over.errors.first?.status == .cancelled, "it is over")
  }

  @Test("a rider requests for itself, a driver for itself, ops for all")
  func mayRequest() {
    let bench = HubBench()
    let foreign = bench.turn(bench.move(.rider, "r", "t1", .requested, rider: "other"))
    #expect(foreign.errors.first?.message.hasSuffix(": a rider requests trips for itself only") == true)
    #expect(bench.turn(bench.move(.driver, "d", "t1", .requested, driver: "other")).codes == [.forbidden])
    let unnamed = bench.turn(bench.move(.rider, "r", "t1", .requested, granted: false))
    #expect(unnamed.errors.first?.message.hasSuffix(": its token's trips do not include it") == true)
    #expect(foreign.codes == [.forbidden] && unnamed.codes == [.forbidden])
    #expect(bench.turn(bench.move(.rider, "r", "t1", .requested, rider: "r")).acks.count == 1)
    #expect(bench.turn(bench.move(.driver, "d", "t2", .requested)).acks.count == 1)
    #expect(
      bench.turn(bench.move(.ops, "o", "t3", .requested, driver: "d", rider: "r", granted: false)).acks.count == 1)
    #expect(bench.hub.trips[0].riderID == id("r"))
    #expect(bench.hub.trips[1].driverID == id("d"))
    #expect(bench.hub.trips[2].driverID == id("d") && bench.hub.trips[2].riderID == id("r"))
  }

  @Test("the first accepted wins; another driver's gets forbidden, and so do its fixes")
  func firstAcceptedWins() {
    let bench = HubBench()
    drive(bench, "t", to: .requested)
    #expect(bench.turn(bench.move(.driver, "d1", "t", .accepted)).acks.count == 1)
    #expect(bench.turn(bench.move(.driver, "d2", "t", .accepted)).codes == [.forbidden])
    let second = bench.connect("d2")
    #expect(bench.turn(bench.fix(second, trip: "t")).codes == [.forbidden])
    #expect(bench.hub.counters.fixesForbidden == 1)
    #expect(bench.hub.trips[0].driverID == id("d1"))
  }

  @Test("a driver whose token does not name the trip neither accepts nor begins it, unless it was requested for it")
  func entitlement() {
    let bench = HubBench()
    drive(bench, "t", to: .requested)
    #expect(bench.turn(bench.move(.driver, "d", "t", .accepted, granted: false)).codes == [.forbidden])
    let session = bench.connect("d")
    #expect(bench.turn(bench.fix(session, trip: "t", granted: false)).codes == [.forbidden])
    #expect(bench.turn(bench.fix(session, trip: "new", granted: false)).codes == [.forbidden])
    bench.turn(bench.move(.ops, "o", "named", .requested, driver: "d"))
    #expect(bench.turn(bench.fix(session, trip: "named", granted: false)).errors.isEmpty)
    #expect(bench.turn(bench.move(.driver, "d", "named", .accepted, granted: false)).acks.count == 1)
  }

  @Test("a move from another state than the sender believes is refused with the state that it is in")
  func expectedStatus() {
    let bench = HubBench()
    drive(bench, "t", to: .accepted)
    let wrong = bench.turn(bench.move(.driver, "d", "t", .driverEnRoute, expected: .requested))
    #expect(wrong.codes == [.invalidTransition])
    #expect(wrong.errors.first?.status == .accepted)
    #expect(bench.turn(bench.move(.driver, "d", "t", .driverEnRoute, expected: .accepted)).acks.count == 1)
  }

  @Test("the same message again gets the same ack and changes nothing, until 16 others have come")
  func idempotent() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")))
    let request = bench.move(.rider, "r", "t", .requested, message: message("once"))
    #expect(bench.turn(request).moves.count == 1)
    let again = bench.turn(request)
    #expect(again.acks == [Ack(replyTo: message("once"))])
    #expect(again.moves.isEmpty)
    #expect(bench.hub.counters.tripMoves == 1)
    bench.turn(bench.move(.driver, "d", "t", .accepted))
    #expect(bench.turn(request).acks.count == 1, "also when the trip has moved on")
    let foreign = bench.turn(bench.move(.driver, "d", "t", .requested, message: message("once")))
    #expect(foreign.codes == [.invalidTransition], "another sender's message of that id is another message")
  }

  @Test("a driver is on_trip from accepted until the end, and what it reported shows again after it")
  func onTrip() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(.driverStatus(session, message("s"), DriverStatusReport(status: .background)))
    let index = bench.hub.drivers.find(id("d"))!
    drive(bench, "t", to: .requested)
    #expect(bench.hub.drivers[index].status == .background)
    bench.turn(bench.move(.driver, "d", "t", .accepted))
    #expect(bench.hub.drivers[index].status == .onTrip)
    bench.turn(bench.fix(session, trip: "second"))
    bench.turn(bench.move(.driver, "d", "t", .cancelled))
    #expect(bench.hub.drivers[index].status == .onTrip, "the second trip continues")
    bench.turn(bench.move(.ops, "o", "second", .cancelled))
    #expect(bench.hub.drivers[index].status == .background)
  }

  @Test("a trip that a driver took while the driver table was full does not spoil its count of trips")
  func uncountedTrip() {
    var limits = HubLimits.roomy
    limits.drivers = 1
    let bench = HubBench(limits: limits)
    let first = bench.connect("first")
    drive(bench, "t", to: .accepted, driver: "late")
    #expect(bench.hub.drivers.find(id("late")) == nil)
    bench.turn(.driverDisconnected(first))
    bench.tick(seconds: 70)
    bench.pass(seconds: 90_000)
    _ = bench.connect("late")
    bench.turn(bench.move(.driver, "late", "t", .cancelled))
    let late = bench.hub.drivers.find(id("late"))!
    #expect(bench.hub.drivers[late].activeTrips == 0)
  }

  @Test("after the end positions go on for 60 s; then every loop's subscribers are let go with trip_ended")
  func grace() {
    let bench = HubBench(loops: 2)
    bench.turn(bench.subscribe(bench.trip("t")), bench.subscribe(bench.trip("t"), loop: 1))
    let session = bench.connect("d")
    bench.turn(bench.fix(session, trip: "t"))
    bench.turn(bench.move(.ops, "o", "t", .cancelled))
    for _ in 0..<5 {
      #expect(bench.tick(seconds: 10).ended.isEmpty)
      #expect(bench.turn(bench.fix(session, trip: "t")).positions.count == 2)
    }
    let over = bench.tick(seconds: 12)
    #expect(over.loops.map { Turn(loops: [$0]).ended.count } == [1, 1])
    #expect(over.ended.allSatisfy { $0.0 == bench.trip("t") && $0.1 == .tripEnded })
    let after = bench.turn(bench.fix(session, trip: "t"))
    #expect(after.positions.isEmpty && after.errors.isEmpty)
    #expect(bench.hub.counters.positionsPublished == 7, "they go on on the driver's own channel")
  }

  @Test("an ended trip's events may be recovered for 24 h, and then it is forgotten")
  func recovery() {
    let bench = HubBench()
    drive(bench, "t", to: .completed)
    bench.tick(seconds: 70)
    let late = bench.turn(bench.subscribe(bench.trip("t"), since: 2))
    #expect(late.subscribed.first?.answer.recovered == true)
    #expect(late.subscribed.first?.missed.map(\.sequence) == [3, 4, 5, 6, 7])
    #expect(late.subscribed.first?.answer.snapshot?.trip?.status == .completed)
    #expect(late.subscribed.first?.answer.snapshot?.position == nil)
    #expect(late.ended.count == 1, "there is nothing to wait for")
    bench.turn(.released(outlet: 0, late.subscribed[0].handle))
    bench.pass(seconds: 86_400 - 75)
    #expect(bench.hub.shownCounters().entries(.trips) == 1)
    bench.tick(seconds: 10)
    #expect(bench.hub.shownCounters().entries(.trips) == 0)
    let forgotten = bench.turn(bench.subscribe(bench.trip("t"), since: 2))
    #expect(forgotten.subscribed.first?.answer.recovered == false)
    #expect(forgotten.subscribed.first?.answer.snapshot == nil)
  }

  @Test("a trip without a move and without a position for 24 h is cancelled, and forgotten 24 h later")
  func abandoned() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")))
    let session = bench.connect("d")
    bench.turn(bench.move(.rider, "r", "asked", .requested), bench.fix(session, trip: "t"))
    bench.pass(seconds: 80_000)
    bench.turn(bench.fix(session, trip: "t"), bench.fix(session, accuracy: 5000))
    bench.pass(seconds: 10_000)
    #expect(bench.hub.trips[0].status == .cancelled, "nobody took it")
    #expect(bench.hub.trips[1].status == .accepted, "its driver was heard")
    #expect(bench.hub.drivers[0].status == .onTrip)
    let over = bench.pass(seconds: 76_402)
    #expect(over.moves.map(\.status) == [.cancelled])
    #expect(over.moves.first?.previousStatus == .accepted)
    #expect(bench.hub.drivers[0].status == .available)
    #expect(bench.tick(seconds: 62).ended.map(\.0) == [bench.trip("t")])
    #expect(bench.turn(bench.move(.ops, "o", "t", .driverEnRoute)).codes == [.invalidTransition])
    bench.pass(seconds: 86_400)
    #expect(bench.hub.shownCounters().entries(.trips) == 0)
  }

  @Test("at the limit of trips requested gets storage_full and a fix likewise, both with a time to try again")
  func full() {
    var limits = HubLimits.roomy
    limits.trips = 1
    let bench = HubBench(limits: limits)
    drive(bench, "t", to: .requested)
    let request = bench.turn(bench.move(.rider, "r", "t2", .requested))
    #expect(request.codes == [.storageFull])
    #expect(request.errors.first?.retryAfter != nil)
    let session = bench.connect("d")
    let fix = bench.turn(bench.fix(session, trip: "t2"))
    #expect(fix.codes == [.storageFull])
    #expect(fix.errors.first?.retryAfter != nil)
    #expect(bench.hub.counters.hits(.trips) == 2)
  }

  @Test("a driver begins so many trips, by fixes and requests, and more once the first are forgotten")
  func tripsOfOneDriver() {
    var limits = HubLimits.roomy
    limits.tripsPerDriver = 2
    let bench = HubBench(limits: limits)
    let session = bench.connect("d")
    #expect(bench.turn(bench.fix(session, trip: "t1"), bench.move(.driver, "d", "t2", .requested)).codes.isEmpty)
    let refused = bench.turn(bench.fix(session, trip: "t3"), bench.move(.driver, "d", "t3", .requested))
    #expect(refused.codes == [.rateLimited, .rateLimited])
    #expect(refused.errors.allSatisfy { $0.retryAfter == 60 })
    #expect(bench.hub.counters.hits(.tripsPerDriver) == 2 && bench.hub.shownCounters().entries(.trips) == 2)
    // What others request for it, and what is known already, is not its doing.
    #expect(
      bench.turn(bench.move(.ops, "o", "t4", .requested, driver: "d"), bench.fix(session, trip: "t4")).codes.isEmpty)
    #expect(bench.turn(bench.fix(bench.connect("e", slot: 1), trip: "t3")).codes.isEmpty)
    // Ending one makes no room: that would only be a slower way to fill the table.
    #expect(bench.turn(bench.move(.driver, "d", "t1", .cancelled)).codes.isEmpty)
    #expect(bench.turn(bench.fix(session, trip: "t5")).codes == [.rateLimited])
    bench.tick(seconds: 62)
    for _ in 0..<3 { bench.pass(seconds: 86_400) }
    #expect(bench.hub.shownCounters().entries(.trips) == 0)
    #expect(bench.turn(bench.fix(session, trip: "t5")).codes.isEmpty)
  }

  @Test("a driver that the hub does not know begins no more trips than one that is connected")
  func tripsOfAnUnknownDriver() {
    var limits = HubLimits.roomy
    limits.tripsPerDriver = 2
    let bench = HubBench(limits: limits)
    #expect(bench.turn((1...2).map { bench.move(.driver, "d", "t\($0)", .requested) }).codes.isEmpty)
    #expect(bench.turn(bench.move(.driver, "d", "t3", .requested)).codes == [.rateLimited])
    #expect(bench.turn(bench.move(.driver, "e", "t3", .requested, granted: false)).codes == [.forbidden])
    #expect(bench.hub.drivers.find(id("e")) == nil, "no token, no record")
    #expect(bench.turn(bench.fix(bench.connect("d"), trip: "t4")).codes == [.rateLimited])
  }

  @Test("where no driver more can be known, an unknown one begins no trip")
  func noRoomForDrivers() {
    var limits = HubLimits.roomy
    limits.drivers = 1
    let bench = HubBench(limits: limits)
    _ = bench.connect("d")
    #expect(bench.turn(bench.move(.driver, "e", "t1", .requested)).codes == [.storageFull])
    #expect(bench.turn(bench.move(.driver, "d", "t1", .requested)).codes.isEmpty)
  }

  @Test("a trip that ops book for a driver who was never here is on the driver's channel")
  func bookedAhead() {
    let bench = HubBench()
    #expect(bench.turn(bench.subscribe(bench.driver("d")), bench.subscribe(bench.driver("e"))).codes.isEmpty)
    let turn = bench.turn(bench.move(.ops, "o", "t1", .requested, driver: "d"))
    #expect(turn.moves.map(\.tripID) == [id("t1")])
    bench.turn(bench.move(.ops, "o", "t2", .requested), bench.move(.driver, "e", "t2", .accepted))
    #expect(bench.hub.drivers.find(id("e")) != nil)
    let again = bench.turn(bench.subscribe(bench.driver("d"), since: 0, slot: 81))
    #expect(again.subscribed.first?.missed.compactMap(\.move?.tripID) == [id("t1")])
    #expect(bench.hub.shownCounters().driversOnline == 0)
    #expect(bench.tick(seconds: 200).notifications.isEmpty, "who never came has not left")
  }

  @Test("however often it is changed, a requested trip is known again by its request")
  func knownByItsRequest() {
    let bench = HubBench()
    let first = message("first")
    #expect(bench.turn(bench.move(.ops, "o", "t1", .requested, rider: "r", message: first)).codes.isEmpty)
    for number in 1...(HubLimits.movesPerTrip + 4) {
      let place = at(48.1, 11 + Double(number) / 100)
      #expect(bench.turn(bench.change(.rider, "r", "t1", pickup: place)).codes.isEmpty)
    }
    #expect(bench.turn(bench.move(.ops, "o", "t1", .accepted)).codes == [.invalidTransition])
    let again = bench.turn(bench.move(.ops, "o", "t1", .requested, rider: "r", message: first))
    #expect(again.codes.isEmpty && again.acks.count == 1 && bench.hub.counters.tripMoves == 1)
  }
}
