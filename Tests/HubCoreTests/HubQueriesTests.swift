// Questions about drivers against brute force: every driver looked at, with filters, over as many turns as it takes.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubQueriesTests {
  private static let center = at(52.52, 13.4)
  private static let types = ["van", "bus", "car"]

  /// A city of drivers, each with a type, some tags and a status by its number; what the hub shows of each is the
  /// oracle.
  private func city(_ count: Int, around center: Coordinate = center, budget: SearchBudget) -> HubBench {
    var limits = HubLimits.roomy
    limits.queryHits = 1000
    limits.queryBudget = budget
    let bench = HubBench(limits: limits)
    var random = SplitMix64(seed: 4)
    for number in 0..<count {
      let session = bench.connect("d\(number)", slot: UInt32(number))
      let status: DriverStatus = number % 5 == 0 ? .unavailable : number % 7 == 0 ? .background : .available
      let report = DriverStatusReport(
        status: status, vehicleType: InlineText(Self.types[number % 3]),
        tags: number % 4 == 0 ? [InlineText("xl")!] : [])
      let place = center.destination(
        bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: .random(in: 0..<4_000, using: &random))
      bench.turn(.driverStatus(session, bench.freshMessage(), report), bench.fix(session, at: place))
    }
    return bench
  }

  /// What a search should give, from the reports of all drivers.
  private func expected(_ bench: HubBench, _ count: Int, _ search: DriverSearch) -> [DriverReport] {
    let middle =
      switch search.area {
      case .nearby(let center, _): center
      case .box(let box): box.center
      case .polygons(let polygons): polygons.boundingBox.center
      }
    return (0..<count).compactMap { number -> DriverReport? in
      guard var report = bench.report(of: "d\(number)"), let place = report.position?.coordinate else { return nil }
      let filter = search.filter
      if report.isOnline == false, !filter.includesStale { return nil }
      if let status = filter.status, report.status != status { return nil }
      if let type = filter.vehicleType, report.vehicleType != type { return nil }
      if !filter.tags.allSatisfy(report.tags.contains) { return nil }
      if let age = filter.maxAge, report.position!.age > age { return nil }
      let distance = middle.distance(to: place)
      switch search.area {
      case .nearby(_, let radius): if distance > radius ?? .infinity { return nil }
      case .box(let box): if !box.contains(place) { return nil }
      case .polygons(let polygons): if !polygons.contains(place) { return nil }
      }
      report.distance = (distance * 100).rounded() / 100
      report.isOnline = filter.includesStale ? report.isOnline : nil
      return report
    }.sorted { ($0.distance!, $0.driverID.description) < ($1.distance!, $1.driverID.description) }
  }

  private static let polygons = try! MultiPolygon(
    [
      [
        [at(52.50, 13.38), at(52.50, 13.42), at(52.53, 13.43), at(52.515, 13.40), at(52.53, 13.37), at(52.50, 13.38)],
        [at(52.505, 13.395), at(52.505, 13.405), at(52.51, 13.40), at(52.505, 13.395)],
      ],
      [[at(52.535, 13.39), at(52.535, 13.41), at(52.545, 13.40), at(52.535, 13.39)]],
    ], limit: 100)

  private static let searches: [DriverSearch] = [
    DriverSearch(area: .nearby(center, radiusMeters: nil), limit: 10),
    DriverSearch(area: .nearby(at(52.54, 13.37), radiusMeters: 1_500), limit: 1000),
    DriverSearch(
      area: .nearby(center, radiusMeters: nil), limit: 5,
      filter: DriverFilter(status: .available, vehicleType: InlineText("bus"))),
    DriverSearch(
      area: .nearby(center, radiusMeters: nil), limit: 3,
      filter: DriverFilter(status: .background, vehicleType: InlineText("van"), tags: [InlineText("xl")!])),
    DriverSearch(area: .nearby(center, radiusMeters: nil), limit: 50, filter: DriverFilter(includesStale: true)),
    DriverSearch(
      area: .nearby(center, radiusMeters: nil), limit: 7, filter: DriverFilter(vehicleType: InlineText("no"))),
    DriverSearch(area: .box(BoundingBox(south: 52.51, west: 13.38, north: 52.53, east: 13.41)!), limit: 1000),
    DriverSearch(area: .box(BoundingBox(south: 52.51, west: 13.38, north: 52.53, east: 13.41)!), limit: 4),
    DriverSearch(area: .polygons(polygons), limit: 1000),
    DriverSearch(area: .polygons(polygons), limit: 20, filter: DriverFilter(tags: [InlineText("xl")!], maxAge: 1e6)),
  ]

  @Test(
    "every search is complete and exact, in one turn or in hundreds", arguments: searches.indices,
    [SearchBudget.standard, SearchBudget(cells: 7, candidates: 10), SearchBudget(cells: 1, candidates: 1)])
  func oracle(number: Int, budget: SearchBudget) throws {
    let count = 400
    let bench = city(count, budget: budget)
    let search = Self.searches[number]
    let all = expected(bench, count, search)
    let answer = try #require(bench.ask(search))
    let limit = try #require(search.limit)
    #expect(answer.drivers == Array(all.prefix(limit)))
    if case .nearby = search.area {
      #expect(answer.more == 0)
    } else {
      #expect(answer.more == max(0, all.count - limit))
    }
    #expect(bench.hub.counters.searches == 1 && bench.hub.searches.isEmpty)
  }

  @Test("the answer is right at the antimeridian and at a pole", arguments: [at(-16.8, 179.99), at(89.99, 20)])
  func corners(center: Coordinate) throws {
    let count = 150
    let bench = city(count, around: center, budget: SearchBudget(cells: 20, candidates: 20))
    for area in [
      DriverSearch.Area.nearby(center, radiusMeters: 2_000), .box(BoundingBox(center: center, radiusMeters: 1_500)),
    ] {
      let search = DriverSearch(area: area, limit: 1000)
      #expect(bench.ask(search)?.drivers == expected(bench, count, search))
    }
  }

  @Test("no turn takes more than its budget, and those who need more take turns")
  func turns() throws {
    let budget = SearchBudget(cells: 20, candidates: 20)
    let bench = city(400, budget: budget)
    let search = Self.searches[1]
    let first = bench.turn(
      .query(bench.session(slot: 70), .drivers(search, .ops, by: HubBench.asker), replyTo: message("long")),
      .query(bench.session(slot: 71), .drivers(Self.searches[0], .ops, by: HubBench.asker), replyTo: message("short")))
    #expect(first.all.isEmpty && bench.hub.hasMoreDue)
    var order: [MessageID?] = []
    for _ in 0..<1_000 where bench.hub.hasMoreDue {
      for case .queryResult(_, _, let replyTo) in bench.turn().all { order.append(replyTo) }
    }
    #expect(order == [message("short"), message("long")])
    #expect(bench.hub.counters.searchesContinued == 2)
  }

  @Test("too many questions at once get rate_limited, of one session and of all")
  func tooMany() {
    var limits = HubLimits.roomy
    limits.queries = 5
    limits.queriesPerSession = 3
    let bench = HubBench(limits: limits)
    let session = bench.session(slot: 70)
    func ask(_ session: SessionRef) -> HubInput {
      .query(session, .drivers(Self.searches[0], .ops, by: HubBench.asker), replyTo: message("q"))
    }
    let own = bench.turn((0..<4).map { _ in ask(session) })
    #expect(own.codes == [.rateLimited] && own.errors.first?.retryAfter == 1)
    #expect(own.errors.first?.replyTo == message("q"))
    let all = bench.turn((0..<7).map { ask(bench.session(slot: 71 + UInt32($0))) })
    #expect(all.codes == [.rateLimited, .rateLimited] && bench.hub.counters.searchesRefused == 3)
    #expect(bench.turn(ask(session)).codes.isEmpty, "those before are answered")
  }

  @Test("who stays is in the answer while all others drive about, nobody is in it twice, and no more are than are")
  func moving() throws {
    for area in [
      DriverSearch.Area.nearby(Self.center, radiusMeters: 4_500),
      .box(BoundingBox(center: Self.center, radiusMeters: 4_500)),
    ] {
      try moving(in: area)
    }
  }

  private func moving(in area: DriverSearch.Area) throws {
    let count = 300
    let bench = city(count, budget: SearchBudget(cells: 10, candidates: 10))
    var random = SplitMix64(seed: 9)
    let sessions = (0..<count).map { bench.hub.drivers[bench.hub.drivers.find(id("d\($0)"))!].session! }
    let answer = try #require(
      bench.ask(DriverSearch(area: area, limit: 1000)) {
        for number in stride(from: 1, to: count, by: 2) {
          let place = Self.center.destination(
            bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: .random(in: 0..<4_000, using: &random)
          )
          let driver = bench.hub.drivers.driver(of: sessions[number])!
          let position = Position(
            coordinate: place, speed: nil, heading: nil, accuracy: 5, confidence: .high,
            timestamp: bench.hub.now.timestamp)
          bench.hub.drivers.storePosition(position, of: driver, trip: nil, at: bench.hub.now)
          bench.hub.drivers.reindex(driver)
        }
      })
    let found = answer.drivers.map(\.driverID.description)
    #expect(Set(found).count == found.count && answer.more == 0)
    for number in stride(from: 0, to: count, by: 2) { #expect(found.contains("d\(number)")) }
  }

  @Test("a page of drivers counts in its table as long as it is put together")
  func pages() {
    var limits = HubLimits.roomy
    limits.driversListedPerTurn = 2
    let bench = HubBench(limits: limits)
    for number in 0..<5 { _ = bench.connect("d\(number)", slot: UInt32(number)) }
    func entries() -> Int { bench.hub.shownCounters().entries(.driverLists) }
    #expect(entries() == 0)
    bench.turn(.query(bench.session(slot: 70), .list(DriverListQuery(limit: 5))))
    #expect(entries() == 1)
    for _ in 0..<3 { bench.turn() }
    #expect(entries() == 0)
  }

  @Test("a stale driver is found only by who asks for stale ones, and says that it is offline")
  func stale() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.fix(session, at: Self.center))
    bench.tick(seconds: 62)
    #expect(bench.nearby(Self.center, limit: 5) == [])
    var search = DriverSearch(area: .nearby(Self.center, radiusMeters: nil), limit: 5)
    search.filter.includesStale = true
    #expect(bench.ask(search)?.drivers.map(\.isOnline) == [false])
    bench.turn(bench.fix(session, at: Self.center))
    #expect(bench.ask(search)?.drivers.map(\.isOnline) == [true])
    for _ in 0..<3 { bench.pass(seconds: 86_400) }
    bench.turn(.driverDisconnected(session))
    for _ in 0..<4 { bench.pass(seconds: 86_400) }
    #expect(bench.hub.shownCounters().entries(.drivers) == 0 && bench.ask(search)?.drivers == [])
    #expect(bench.hub.drivers.staleIndex.count == 0)
  }

  @Test("a filter sees a new status at once, also of who stays where it is")
  func relabelled() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.fix(session, at: Self.center))
    func found(_ status: DriverStatus) -> Int? {
      bench.ask(
        DriverSearch(
          area: .nearby(Self.center, radiusMeters: 100), limit: 5, filter: DriverFilter(status: status)))?.drivers.count
    }
    #expect(found(.available) == 1 && found(.unavailable) == 0)
    bench.turn(.driverStatus(session, message("s"), DriverStatusReport(status: .unavailable)))
    #expect(found(.available) == 0 && found(.unavailable) == 1)
    bench.turn(bench.fix(session, trip: "t", at: Self.center))
    #expect(found(.unavailable) == 0 && found(.onTrip) == 1)
    bench.turn(bench.move(.ops, "o", "t", .cancelled))
    #expect(found(.unavailable) == 1 && found(.onTrip) == 0)
  }
}
