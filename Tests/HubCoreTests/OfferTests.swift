// Offers of trips to drivers: who is asked, in which order, and what ends an offer.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct OfferTests {
  @Test("The nearest driver is asked, with its way and its time; who accepts has the trip, without any grant")
  func accepted() throws {
    let bench = HubBench()
    bench.drivers(3)
    let turn = bench.request("T", OfferCriteria())
    #expect(turn.acks.count == 1 && turn.heard == [Heard("D1", "T", "made")])
    let made = try #require(turn.deliveries.first { if case .offer = $0.publication.body { true } else { false } })
    guard case .offer(let offer) = made.publication.body, case .made(let terms) = offer.state else { return }
    #expect((95...105).contains(terms.distance) && terms.pickup == offerPickup && terms.dropoff == nil)
    #expect(terms.eta > 5 && terms.eta < 60 && terms.expires == time(bench.clock + 15_000))
    #expect(bench.accept("D2", "T").codes == [.forbidden], "it was not asked")
    let taken = bench.accept("D1", "T")
    #expect(taken.acks.count == 1 && taken.heard.isEmpty, "the trip's own event says it")
    #expect(bench.tick(seconds: 60).heard.isEmpty)
    #expect(bench.hub.counters.offers == [1, 0, 0, 0] && bench.hub.counters.tripsUnserved == 0)
    #expect(bench.ask("T", .show).offers?.end == .taken)
  }

  @Test("Where ops give the trip to another driver, the offer is withdrawn")
  func assigned() {
    let bench = HubBench()
    bench.drivers(2)
    #expect(bench.request("T", OfferCriteria()).heard == [Heard("D1", "T", "made")])
    let turn = bench.turn(bench.move(.ops, "o", "T", .accepted, driver: "D2"))
    #expect(turn.acks.count == 1 && turn.heard == [Heard("D1", "T", "taken")])
    #expect(bench.hub.trips[0].driverID == id("D2"))
  }

  @Test("Who declines, is silent or leaves gives way to the next nearest; when nobody is left the trip is unserved")
  func theNext() throws {
    let bench = HubBench()
    let sessions = bench.drivers(4)
    #expect(bench.request("T", OfferCriteria()).heard == [Heard("D1", "T", "made")])
    #expect(bench.decline("D1", "T").heard == [Heard("D1", "T", "declined"), Heard("D2", "T", "made")])
    #expect(bench.decline("D1", "T").acks.count == 1, "sent again")
    #expect(bench.decline("D4", "T").codes == [.notFound], "it was not asked")
    #expect(bench.tick(seconds: 14).heard.isEmpty)
    #expect(bench.tick(seconds: 3).heard == [Heard("D2", "T", "expired"), Heard("D3", "T", "made")])
    let away = bench.turn(.driverStatus(sessions[2], bench.freshMessage(), DriverStatusReport(status: .unavailable)))
    #expect(away.heard == [Heard("D3", "T", "unavailable"), Heard("D4", "T", "made")])
    #expect(bench.decline("D4", "T").heard == [Heard("D4", "T", "declined"), Heard("-", "T", "unserved")])
    #expect(bench.hub.counters.offers == [0, 2, 1, 1] && bench.hub.counters.tripsUnserved == 1)
    #expect(
      bench.ask("T", .show).offers?.asked.map(\.answer.name.description) == [
        "declined", "expired", "unavailable", "declined",
      ])
    #expect(bench.accept("D1", "T").codes == [.forbidden])
  }

  @Test("Several are asked at once: the first has the trip, the others are notified")
  func atOnce() {
    let bench = HubBench()
    bench.drivers(5)
    let turn = bench.request("T", OfferCriteria(atOnce: 3))
    #expect(turn.heard == [Heard("D1", "T", "made"), Heard("D2", "T", "made"), Heard("D3", "T", "made")])
    #expect(bench.decline("D2", "T").heard == [Heard("D2", "T", "declined"), Heard("D4", "T", "made")])
    #expect(bench.accept("D3", "T").heard == [Heard("D1", "T", "taken"), Heard("D4", "T", "taken")])
    #expect(bench.accept("D1", "T").codes == [.forbidden], "the first one wins")
  }

  @Test("Where the trip's places change, who has an open offer gets it again, with these and the same time to answer")
  func changed() throws {
    let bench = HubBench()
    bench.drivers(4)
    let rider = Actor(role: .rider, id: id("r"))
    let first = bench.request("T", OfferCriteria(atOnce: 2), by: rider)
    #expect(first.heard == [Heard("D1", "T", "made"), Heard("D2", "T", "made")])
    #expect(bench.decline("D1", "T").heard == [Heard("D1", "T", "declined"), Heard("D3", "T", "made")])
    bench.advance(seconds: 3)
    let (pickup, dropoff) = (offerPickup.moved(90, 1000), offerPickup.moved(0, 5000))
    let turn = bench.turn(bench.change(.rider, "r", "T", pickup: pickup, dropoff: dropoff))
    #expect(turn.acks.count == 1 && turn.heard == [Heard("D2", "T", "made"), Heard("D3", "T", "made")])
    #expect(turn.terms.allSatisfy { $0.pickup == pickup && $0.dropoff == dropoff })
    #expect(turn.terms.map(\.expires) == Array(repeating: first.terms[0].expires, count: 2))
    for (terms, meters) in zip(turn.terms, [800.0, 700]) { #expect(abs(terms.distance - meters) < 5) }
    // Nothing of the offer is another.
    for _ in 0..<2 {
      let route = try Route(points: [pickup, dropoff])
      let again = bench.turn(bench.change(.rider, "r", "T", pickup: pickup, route: route))
      #expect(again.acks.count == 1 && again.heard.isEmpty)
    }
    #expect(bench.accept("D2", "T").heard == [Heard("D3", "T", "taken")])
    #expect(bench.turn(bench.change(.rider, "r", "T", pickup: offerPickup)).heard.isEmpty, "it has its update")
  }

  @Test("Where the pickup changes, who is near the new one is asked at once, as far as fewer are asked than may be")
  func changedPickup() {
    let bench = HubBench()
    bench.drivers(3)
    #expect(bench.request("T", OfferCriteria(atOnce: 2, radius: 150)).heard == [Heard("D1", "T", "made")])
    let turn = bench.turn(bench.change(.ops, "o", "T", pickup: offerPickup.moved(90, 300)))
    #expect(turn.heard == [Heard("D1", "T", "made"), Heard("D3", "T", "made")])
  }

  @Test("A driver has one open offer at a time, and none while it is on a trip")
  func oneEach() {
    let bench = HubBench()
    bench.drivers(2)
    #expect(bench.request("T1", OfferCriteria()).heard == [Heard("D1", "T1", "made")])
    #expect(bench.request("T2", OfferCriteria()).heard == [Heard("D2", "T2", "made")])
    #expect(bench.request("T3", OfferCriteria()).heard == [Heard("-", "T3", "unserved")], "both have one")
    // D1 takes the trip of D2: its own is offered to nobody else, for D2 was asked for the other one.
    #expect(bench.accept("D1", "T1").acks.count == 1)
    #expect(bench.decline("D2", "T2").heard == [Heard("D2", "T2", "declined"), Heard("-", "T2", "unserved")])
    #expect(bench.request("T4", OfferCriteria()).heard == [Heard("D2", "T4", "made")])
    let busy = bench.turn(
      bench.move(.ops, "o", "T5", .requested, driver: "D2"), bench.move(.driver, "D2", "T5", .accepted))
    #expect(busy.heard == [Heard("D2", "T4", "unavailable"), Heard("-", "T4", "unserved")])
  }

  @Test("A cancelled trip, one that is taken without an offer, and an end by ops withdraw all offers")
  func withdrawn() {
    let bench = HubBench()
    bench.drivers(3)
    _ = bench.request("T1", OfferCriteria(atOnce: 2))
    #expect(
      bench.turn(bench.move(.ops, "o", "T1", .cancelled)).heard == [
        Heard("D1", "T1", "cancelled"), Heard("D2", "T1", "cancelled"),
      ])
    _ = bench.request("T2", OfferCriteria())
    #expect(bench.turn(bench.move(.driver, "D3", "T2", .accepted)).heard == [Heard("D1", "T2", "taken")])
    _ = bench.request("T3", OfferCriteria())
    let stopped = bench.ask("T3", .stop)
    #expect(stopped.heard == [Heard("D1", "T3", "stopped")])
    #expect(bench.ask("T3", .show).offers?.end == .stopped)
    #expect(bench.ask("T3", .stop).heard.isEmpty)
    #expect(bench.tick(seconds: 30).heard.isEmpty)
  }

  @Test("Only drivers within the radius, of the vehicle type, who are there are asked")
  func fitting() {
    let bench = HubBench()
    let sessions = bench.drivers(3)
    let van = DriverStatusReport(status: .available, vehicleType: InlineText("van")!)
    bench.turn(.driverStatus(sessions[1], bench.freshMessage(), van))
    #expect(bench.request("T1", OfferCriteria(vehicleType: "van")).heard == [Heard("D2", "T1", "made")])
    #expect(bench.request("T2", OfferCriteria(radius: 50)).heard == [Heard("-", "T2", "unserved")])
    bench.advance(seconds: 1)
    bench.turn(.driverDisconnected(sessions[0]))
    #expect(bench.request("T3", OfferCriteria()).heard == [Heard("D3", "T3", "made")], "D1 hung up")
  }

  @Test("No more drivers are asked than were to be")
  func limit() {
    let bench = HubBench()
    bench.drivers(4)
    #expect(bench.request("T", OfferCriteria(limit: 2)).heard == [Heard("D1", "T", "made")])
    #expect(bench.decline("D1", "T").heard == [Heard("D1", "T", "declined"), Heard("D2", "T", "made")])
    #expect(bench.decline("D2", "T").heard == [Heard("D2", "T", "declined"), Heard("-", "T", "unserved")])
  }

  @Test("Ops begin offers of a trip that is there; the same again changes nothing, another one is refused")
  func endpoint() {
    let bench = HubBench()
    bench.drivers(2)
    #expect(bench.ask("T", .begin(OfferCriteria(), key: nil)).refusals == [.unknownTrip])
    _ = bench.request("T", nil)
    #expect(bench.ask("T", .show).refusals == [.notFound] && bench.ask("T", .stop).refusals == [.notFound])
    let key = message("k1")
    let begun = bench.ask("T", .begin(OfferCriteria(), key: key))
    #expect(begun.heard == [Heard("D1", "T", "made")] && begun.offers?.asked.isEmpty == true)
    #expect(bench.ask("T", .begin(OfferCriteria(), key: key)).offers?.asked.count == 1)
    #expect(bench.ask("T", .begin(OfferCriteria(limit: 5), key: key)).refusals == [.invalidTransition])
    #expect(bench.ask("T", .begin(OfferCriteria(), key: nil)).refusals.isEmpty, "the same of the same")
    #expect(bench.ask("T", .begin(OfferCriteria(), key: message("k2"))).refusals == [.invalidTransition])
    #expect(bench.ask("T", .begin(OfferCriteria(), key: nil), by: "other").refusals == [.invalidTransition])
    _ = bench.ask("T", .stop)
    #expect(bench.ask("T", .begin(OfferCriteria(), key: key)).offers?.end == .stopped, "it was begun once")
    #expect(bench.ask("T", .begin(OfferCriteria(), key: nil)).heard == [Heard("D1", "T", "made")])
    _ = bench.accept("D1", "T")
    #expect(bench.ask("T", .begin(OfferCriteria(), key: message("k3"))).refusals == [.invalidTransition])
    bench.turn(bench.move(.ops, "o", "T", .cancelled))
    #expect(bench.ask("T", .begin(OfferCriteria(), key: message("k4"))).refusals == [.invalidTransition])
  }

  @Test("A request that can't be offered begins no trip")
  func badRequests() {
    let bench = HubBench()
    let ops = Actor(role: .ops, id: id("o"))
    for (input, code) in [
      (
        requested("T", by: ops, OfferCriteria(), pickup: nil, at: bench.now, message: message("a")),
        ErrorCode.badMessage
      ),
      (requested("T", by: ops, OfferCriteria(), driver: "D", at: bench.now, message: message("b")), .badMessage),
      (
        requested("T", by: Actor(role: .driver, id: id("D")), OfferCriteria(), at: bench.now, message: message("c")),
        .forbidden
      ),
    ] {
      #expect(bench.turn(input).codes == [code])
    }
    #expect(bench.hub.shownCounters().entries(.trips) == 0)
  }

  @Test("One rider has offers of so many trips made at once, and so has the hub; ended ones give way")
  func limits() {
    var limits = HubLimits.roomy
    limits.offers = 20
    limits.offersPerIdentity = RoleLimits(driver: 1, rider: 2, ops: 100)
    let bench = HubBench(limits: limits)
    bench.drivers(30)
    let rider = Actor(role: .rider, id: id("R"))
    for trip in ["R1", "R2"] { #expect(bench.request(trip, OfferCriteria(), by: rider).acks.count == 1) }
    #expect(bench.request("R3", OfferCriteria(), by: rider).codes == [.rateLimited])
    #expect(bench.hub.counters.hits(ShareLimit.offersPerIdentity) == 1)
    #expect(bench.request("R3", nil, by: rider).acks.count == 1, "without offers it may be requested")
    // Two of twenty are kept for ops.
    for number in 0..<16 {
      let actor = Actor(role: .rider, id: id("S\(number)"))
      #expect(bench.request("S\(number)", OfferCriteria(), by: actor).acks.count == 1)
    }
    #expect(bench.request("X", OfferCriteria(), by: Actor(role: .rider, id: id("X"))).codes == [.storageFull])
    for trip in ["O1", "O2"] { #expect(bench.request(trip, OfferCriteria()).acks.count == 1) }
    #expect(bench.request("O3", OfferCriteria()).codes == [.storageFull])
    #expect(bench.hub.counters.hits(HubTable.offers) == 2)
    #expect(bench.hub.shownCounters().entries(.offers) == 20)
    _ = bench.ask("O1", .stop)
    #expect(bench.request("O3", OfferCriteria()).acks.count == 1)
    #expect(bench.ask("O1", .show).refusals == [.notFound], "it gave way")
  }

  @Test("Where crowds do not fit, the look continues over turns and still finds the nearest who does")
  func crowds() {
    let (bench, _) = crowd()
    var all = bench.request("T", OfferCriteria(atOnce: 2, radius: 50_000, vehicleType: "van")).heard
    var turns = 0
    while bench.hub.hasMoreDue, turns < 100 {
      all += bench.turn([]).heard
      turns += 1
    }
    #expect(turns > 2 && Set(all.map(\.driver)) == ["D120", "D140"], "\(all)")
  }

  /// A hub whose turns look at 40 drivers, and 150 drivers of whom two fit: D120 and D140.
  private func crowd() -> (bench: HubBench, sessions: [SessionRef]) {
    var limits = HubLimits.roomy
    limits.offerBudget = SearchBudget(cells: 40, candidates: 40)
    let bench = HubBench(limits: limits)
    let sessions = bench.drivers(150)
    let van = DriverStatusReport(status: .available, vehicleType: InlineText("van")!)
    for number in [120, 140] { bench.turn(.driverStatus(sessions[number - 1], bench.freshMessage(), van)) }
    return (bench, sessions)
  }

  @Test("Of two trips that look over turns for the same two drivers each gets one")
  func twoLook() {
    let (bench, _) = crowd()
    let vans = OfferCriteria(radius: 50_000, vehicleType: "van")
    var all = bench.request("A", vans).heard + bench.request("B", vans).heard
    for _ in 0..<200 where bench.hub.hasMoreDue { all += bench.turn([]).heard }
    #expect(all.map(\.word) == ["made", "made"], "\(all)")
    #expect(Set(all.map(\.driver)) == ["D120", "D140"] && Set(all.map(\.trip)) == ["A", "B"])
  }

  @Test("A driver that repeats its status does not hold up the look for the next one")
  func repeatedStatus() {
    let (bench, sessions) = crowd()
    var all = bench.request("T", OfferCriteria(atOnce: 2, seconds: 120, radius: 50_000, vehicleType: "van")).heard
    for _ in 0..<100 where bench.hub.hasMoreDue {
      let same = DriverStatusReport(status: .available)
      all += bench.turn(.driverStatus(sessions[119], bench.freshMessage(), same)).heard
    }
    #expect(all.map(\.word) == ["made", "made"] && Set(all.map(\.driver)) == ["D120", "D140"], "\(all)")
  }

  @Test("An app that was restarted is sent its open offer, with the same time to answer; nobody else is")
  func restartedApp() throws {
    let bench = HubBench()
    bench.drivers(2)
    let made = try #require(bench.request("T", OfferCriteria()).terms.first)
    bench.advance(seconds: 4)
    func own(_ name: String, slot: UInt32, since: UInt64? = nil) -> [Offer.Terms] {
      bench.turn(bench.subscribe(bench.driver(name), since: since, slot: slot, by: (.driver, name))).terms
    }
    let again = own("D1", slot: 301)
    #expect(again.map(\.expires) == Array(repeating: made.expires, count: again.count) && !again.isEmpty)
    #expect(own("D1", slot: 302, since: 1_000_000).isEmpty == false, "what it missed is not known")
    #expect(own("D2", slot: 303).isEmpty)
    #expect(bench.turn(bench.subscribe(bench.driver("D1"), slot: 304)).terms.isEmpty, "ops")
    let sequence = bench.hub.channels.newest(bench.driver("D1"))
    #expect(own("D1", slot: 305, since: sequence).isEmpty, "it has missed nothing")
    _ = bench.decline("D1", "T")
    #expect(own("D1", slot: 306).isEmpty)
  }

  @Test("How far a driver is goes by the place that riders are shown: a small radius tells nothing of the rest")
  func radius() {
    let bench = HubBench()
    bench.drivers(1)
    let place = offerPickup.moved(90, 100)
    let shown = UnitVector(offerPickup).distance(to: UnitVector(PublicGrid.snapped(place)))
    #expect(abs(shown - 100) > 0.5, "the middle of its field is elsewhere")
    #expect(
      bench.request("T1", OfferCriteria(radius: shown - 0.25)).heard == [Heard("-", "T1", "unserved")],
      "also where it is nearer")
    #expect(
      bench.request("T2", OfferCriteria(radius: shown + 0.25)).heard == [Heard("D1", "T2", "made")],
      "also where it is farther")
  }
}
