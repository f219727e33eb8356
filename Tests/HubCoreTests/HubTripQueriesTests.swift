// Trips that are asked for over HTTP, and what is shown of them.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

extension Turn {
  fileprivate var results: [TripAnswer] {
    all.compactMap { if case .trips(_, let answer, _) = $0 { answer } else { nil } }
  }
  fileprivate var trip: TripReport? {
    for case .trip(let report, _) in results { return report }
    return nil
  }
  fileprivate var isNew: Bool? {
    for case .trip(_, let isNew) in results { return isNew }
    return nil
  }
  fileprivate var page: (trips: [TripReport], next: UInt64?)? {
    for case .list(let page) in results { return (page.trips, page.next?.number) }
    return nil
  }
  fileprivate var refusal: ErrorCode? {
    for case .refused(let error) in results { return error.code }
    return nil
  }
}

extension HubBench {
  fileprivate func request(_ trip: String, driver: String? = nil, pickup: Coordinate? = nil) -> HubInput {
    let report = TripStatusReport(
      tripID: id(trip), status: .requested, timestamp: now.timestamp, pickup: pickup, driverID: driver.map(id),
      riderID: id("r"), route: try! Route(polyline: "_p~iF~ps|U_ulLnnqC"))
    return .trips(session(slot: 90), .begin(report))
  }

  fileprivate func show(
    _ trip: String, _ role: Role = .ops, _ actor: String = "o", _ grant: ChannelGrant = .granted
  ) -> HubInput {
    let query = TripQuery(id: id(trip), actor: Actor(role: role, id: id(actor)), grant: grant)
    return .trips(session(slot: 91), .show(query))
  }

  fileprivate func list(_ query: TripListQuery) -> HubInput { .trips(session(slot: 92), .list(query)) }
}

@Suite struct HubTripQueriesTests {
  @Test("a trip that is asked for begins as requested, is published, and is shown")
  func requested() throws {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")))
    let turn = bench.turn(bench.request("t", driver: "d", pickup: at(48, 11)))
    #expect(turn.isNew == true)
    #expect(turn.moves.map(\.status) == [.requested])
    let trip = try #require(turn.trip)
    #expect(trip.tripID == id("t") && trip.status == .requested && trip.driverID == id("d") && trip.riderID == id("r"))
    #expect(trip.pickup == at(48, 11) && trip.route == "_p~iF~ps|U_ulLnnqC")
    #expect(bench.hub.trips.newestNumber == 1)
    #expect(trip.created == bench.now.timestamp && trip.updated == trip.created && trip.ended == nil)
    bench.advance(seconds: 5)
    #expect(bench.turn(bench.move(.driver, "d", "t", .accepted)).acks.count == 1)
    let after = try #require(bench.turn(bench.show("t")).trip)
    #expect(after.status == .accepted && after.created == trip.created && after.updated == bench.now.timestamp)
    #expect(bench.hub.counters.tripMoves == 2)
  }

  @Test("the same content again, also when the trip has moved on, changes nothing; other content is a conflict")
  func again() throws {
    let bench = HubBench()
    bench.turn(bench.request("t"))
    #expect(bench.turn(bench.move(.driver, "d", "t", .accepted)).acks.count == 1)
    bench.advance(seconds: 60)
    let again = bench.turn(bench.request("t"))
    #expect(again.isNew == false && again.moves.isEmpty)
    #expect(again.trip?.status == .accepted && again.trip?.driverID == id("d"))
    #expect(bench.turn(bench.request("t", driver: "d")).refusal == .invalidTransition)
    #expect(bench.turn(bench.request("t", pickup: at(0, 0))).refusal == .invalidTransition)
    #expect(bench.hub.counters.tripMoves == 2)
    // A trip that came by a trip_status is another one's, whatever it says.
    bench.turn(bench.move(.rider, "r", "u", .requested))
    #expect(bench.turn(bench.request("u")).refusal == .invalidTransition)
  }

  @Test("a full table refuses another trip")
  func full() {
    var limits = HubLimits.roomy
    limits.trips = 1
    let bench = HubBench(limits: limits)
    #expect(bench.turn(bench.request("t")).isNew == true)
    #expect(bench.turn(bench.request("u")).refusal == .storageFull)
    #expect(bench.turn(bench.request("t")).isNew == false)
  }

  @Test("a trip is shown to whoever may follow it, and to nobody else")
  func rights() {
    let bench = HubBench()
    bench.turn(bench.request("t", driver: "d"))
    #expect(bench.turn(bench.show("t")).trip != nil)
    #expect(bench.turn(bench.show("t", .rider, "r", .onlyForParties)).trip != nil)
    #expect(bench.turn(bench.show("t", .driver, "d", .onlyForParties)).trip != nil)
    #expect(bench.turn(bench.show("t", .rider, "x", .granted)).trip != nil, "its token names the trip")
    #expect(bench.turn(bench.show("t", .rider, "x", .onlyForParties)).refusal == .forbidden)
    #expect(bench.turn(bench.show("t", .driver, "x", .onlyForParties)).refusal == .forbidden)
    #expect(bench.turn(bench.show("t", .driver, "x", .whileUnclaimed)).refusal == .forbidden)
    // Whether there is such a trip is revealed only to those who could see it.
    #expect(bench.turn(bench.show("none", .rider, "x", .onlyForParties)).refusal == .forbidden)
    #expect(bench.turn(bench.show("none")).refusal == .unknownTrip)
    // After the end, and the grace: its own people only.
    bench.turn(bench.move(.ops, "o", "t", .cancelled))
    bench.tick(seconds: 61)
    #expect(bench.turn(bench.show("t", .rider, "x", .granted)).refusal == .forbidden)
    #expect(bench.turn(bench.show("t", .rider, "r", .onlyForParties)).trip?.summary != nil)
    #expect(bench.turn(bench.show("t")).trip?.ended != nil)
  }

  @Test("pages come newest first, and together they have every trip once")
  func pages() throws {
    let bench = HubBench()
    for trip in 0..<25 { bench.turn(bench.request("t\(trip)")) }
    var seen: [String] = []
    var below = UInt64.max
    for (size, isLast) in [(10, false), (10, false), (5, true)] {
      let page = try #require(bench.turn(bench.list(TripListQuery(limit: 10, below: below))).page)
      #expect(page.trips.count == size && (page.next == nil) == isLast)
      #expect(page.trips.allSatisfy { $0.route == nil })
      seen += page.trips.map { "\($0.tripID)" }
      below = page.next ?? 0
      bench.turn(bench.request("later\(size)"))  // in no page behind the first
    }
    #expect(seen == (0..<25).reversed().map { "t\($0)" })
  }

  @Test("a list holds what has the state, the driver and the time that were asked for")
  func filters() throws {
    let bench = HubBench()
    for trip in 0..<6 {
      bench.turn(bench.request("t\(trip)", driver: trip < 3 ? "d" : "e"))
      bench.advance(seconds: 1)
    }
    let before = bench.now.timestamp
    bench.turn(bench.move(.driver, "d", "t1", .accepted))
    func found(_ query: TripListQuery) throws -> [String] {
      try #require(bench.turn(bench.list(query)).page).trips.map { "\($0.tripID)" }
    }
    #expect(try found(TripListQuery(driverID: id("d"), limit: 10)) == ["t2", "t1", "t0"])
    #expect(try found(TripListQuery(statuses: TripStatusSet([.accepted]), limit: 10)) == ["t1"])
    #expect(try found(TripListQuery(since: before, limit: 10)) == ["t1"])
    #expect(try found(TripListQuery(since: before, limit: 10, below: 2)).isEmpty)
    #expect(try found(TripListQuery(statuses: TripStatusSet([.accepted, .requested]), limit: 2)) == ["t5", "t4"])
  }

  @Test("a turn looks at so many trips and no more; the list continues in the next, and others are not held up by it")
  func budget() throws {
    var limits = HubLimits.roomy
    limits.tripsListedPerTurn = 20
    limits.tripLists = 2
    let bench = HubBench(limits: limits)
    for trip in 0..<100 { bench.turn(bench.request("t\(trip)", driver: trip == 7 ? "d" : nil)) }
    let rare = bench.list(TripListQuery(driverID: id("d"), limit: 1))
    #expect(bench.turn(rare).page == nil && bench.hub.hasMoreDue)
    // A short one is through first, and a third one is too many.
    #expect(bench.turn(bench.list(TripListQuery(limit: 1))).page == nil)
    #expect(bench.turn(bench.list(TripListQuery(limit: 1))).refusal == .rateLimited)
    var turns = 0
    var pages: [[String]] = []
    while bench.hub.hasMoreDue, turns < 20 {
      for case .list(let page) in bench.turn().results { pages.append(page.trips.map { "\($0.tripID)" }) }
      turns += 1
    }
    #expect(turns <= 6, "93 trips, 20 a turn")
    #expect(pages.last == ["t7"])
  }

  @Test("numbers, times and what was asked for are durable, also when the newest trip is forgotten")
  func durable() throws {
    let first = try DurableBench()
    let bench = HubBench()
    first.turn([bench.request("t"), bench.request("u")])
    first.store()
    let second = try DurableBench(reading: first.submitted)
    let answered = second.turn([bench.show("u"), bench.request("t")]) + second.store()
    let trips = answered.compactMap {
      if case .trips(_, .trip(let report, let isNew), _) = $0 { (report, isNew) } else { nil }
    }
    #expect(trips.map(\.0.tripID) == [id("u"), id("t")] && trips.allSatisfy { !$0.1 })
    #expect(second.hub.trips.newestNumber == 2)
    #expect(trips[0].0.created == first.now.timestamp)
    // Both end and are forgotten; a snapshot says which numbers were given.
    second.turn([bench.move(.ops, "o", "t", .cancelled), bench.move(.ops, "o", "u", .cancelled)])
    second.store()
    for _ in 0..<3 {
      second.advance(seconds: 86_400)
      second.turn([])
      second.store()
    }
    #expect(second.hub.trips.count == 0)
    var snapshot: [[UInt8]] = []
    second.hub.writeSnapshot { snapshot.append(Array($0)) }
    let third = try DurableBench(reading: snapshot)
    let made = third.turn([bench.request("v")]) + third.store()
    #expect(made.contains { if case .trips(_, .trip(_, isNew: true), _) = $0 { true } else { false } })
    #expect(third.hub.trips.newestNumber == 3)
  }

  @Test("a trip is shown, and an answer given, only when its content is stored")
  func waits() throws {
    let durable = try DurableBench()
    let bench = HubBench()
    func answers(_ outputs: [HubOutput]) -> Int {
      outputs.count { if case .trips = $0 { true } else { false } }
    }
    #expect(answers(durable.turn([bench.request("t")])) == 0)
    #expect(answers(durable.turn([bench.show("t"), bench.list(TripListQuery(limit: 5)), bench.request("t")])) == 0)
    #expect(answers(durable.store()) == 4)
  }

  @Test("while nothing can be stored new trips, what is not stored, and lists are refused at once; the rest is shown")
  func storageFull() throws {
    let durable = try DurableBench()
    let bench = HubBench()
    func ask(_ question: HubInput) -> Turn { Turn(loops: [durable.turn([question])]) }
    _ = ask(bench.request("t"))
    #expect(Turn(loops: [durable.store()]).trip?.tripID == id("t"))
    #expect(ask(bench.request("u")).results.isEmpty)
    // Who waits for the disk is answered at once; what it asked for is stored later all the same.
    let full = Turn(loops: [durable.store(0, condition: .unavailable)])
    #expect(full.refusal == .storageFull && full.results.count == 1)
    let list = bench.list(TripListQuery(limit: 10))
    for question in [bench.request("v"), bench.show("u"), list] {
      let turn = ask(question)
      #expect(turn.refusal == .storageFull && turn.results.count == 1)
    }
    #expect(ask(bench.show("t")).trip?.tripID == id("t"))
    #expect(ask(bench.show("w")).refusal == .unknownTrip)
    #expect(durable.hub.counters.refusedForStorage == 4)
    #expect(Turn(loops: [durable.store()]).results.isEmpty, "nobody is answered twice")
    #expect(ask(list).page?.trips.count == 2)
  }
}
