// What one identity may have of the hub's tables, and what of each is kept for ops.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct IdentityLimitTests {
  private static let search = DriverSearch(area: .nearby(at(52.52, 13.405), radiusMeters: 1000))

  private func query(_ bench: HubBench, _ role: Role, _ name: String, slot: UInt32) -> HubInput {
    .query(
      bench.session(slot: slot),
      .drivers(Self.search, role == .ops ? .ops : .riders, by: Actor(role: role, id: id(name))),
      replyTo: message("q"))
  }

  @Test("a rider has so many queries under way over all its sessions; others ask on, and it does when it is answered")
  func queries() {
    var limits = HubLimits.roomy
    limits.queriesPerIdentity = RoleLimits(driver: 1, rider: 3, ops: 5)
    let bench = HubBench(limits: limits)
    let inputs =
      (0..<5).map { query(bench, .rider, "r", slot: 10 + $0) } + [query(bench, .rider, "s", slot: 30)]
      + (0..<6).map { query(bench, .ops, "r", slot: 40 + $0) }
    let refused = bench.turn(inputs)
    #expect(refused.codes == [.rateLimited, .rateLimited, .rateLimited])
    #expect(refused.errors.allSatisfy { $0.isOwnLimit && $0.retryAfter == 1 })
    #expect(refused.errors.first?.message.contains("max-queries-per-rider") == true)
    #expect(refused.errors.last?.message.contains("max-queries-per-ops") == true)
    #expect(bench.hub.counters.hits(ShareLimit.queriesPerIdentity) == 3)
    for _ in 0..<20 { bench.turn() }
    let searches = (bench.hub.searches.bySession.count, bench.hub.searches.byIdentity.count)
    #expect(bench.hub.searches.isEmpty && searches == (0, 0), "nothing is kept of who was answered")
    #expect(bench.turn((0..<3).map { query(bench, .rider, "r", slot: 60 + $0) }).codes.isEmpty)
  }

  @Test("of the queries under way a tenth is for ops")
  func queriesForOps() {
    var limits = HubLimits.roomy
    limits.queries = 20
    let bench = HubBench(limits: limits)
    let riders = (0..<25).map { query(bench, .rider, "r\($0)", slot: 100 + UInt32($0)) }
    let ops = (0..<3).map { query(bench, .ops, "o", slot: 200 + UInt32($0)) }
    let turn = bench.turn(riders + ops)
    #expect(turn.codes.count == 7 + 1 && turn.errors.allSatisfy { !$0.isOwnLimit })
    #expect(bench.hub.counters.hits(HubTable.queries) == 8)
  }

  @Test("a rider begins so many trips by a pattern, and more when the first are forgotten; a restart changes nothing")
  func tripsOfOneRider() throws {
    var limits = HubLimits.roomy
    limits.tripsPerRider = 2
    let bench = HubBench(limits: limits)
    #expect(bench.turn((0..<2).map { bench.move(.rider, "R", "z-\($0)", .requested) }).codes.isEmpty)
    let refused = bench.turn(bench.move(.rider, "R", "z-2", .requested))
    #expect(refused.codes == [.rateLimited] && refused.errors.first?.retryAfter == 60)
    #expect(refused.errors.first?.message.contains("max-trips-per-rider") == true)
    #expect(bench.hub.counters.hits(.tripsPerRider) == 1 && bench.hub.shownCounters().entries(.trips) == 2)
    // What it has continues, ops begin trips for it, and others theirs.
    #expect(bench.turn(bench.move(.rider, "R", "z-0", .cancelled)).codes.isEmpty)
    #expect(bench.turn(bench.move(.ops, "o", "z-2", .requested, rider: "R")).codes.isEmpty)
    #expect(bench.turn(bench.move(.rider, "s", "z-3", .requested)).codes.isEmpty)
    #expect(bench.turn(bench.move(.rider, "R", "z-4", .requested)).codes == [.rateLimited])
    // A driver can't use up what is the rider's.
    #expect(bench.turn(bench.move(.driver, "d", "z-5", .requested, rider: "V")).codes.isEmpty)
    #expect(bench.turn(bench.move(.driver, "d", "z-6", .requested, rider: "V")).codes.isEmpty)
    #expect(bench.turn(bench.move(.rider, "V", "z-7", .requested)).codes.isEmpty)
    // In another hub that reads back what this one knows.
    var snapshot: [[UInt8]] = []
    bench.hub.writeSnapshot { snapshot.append(Array($0)) }
    let again = try DurableBench(reading: snapshot, limits: limits)
    #expect(again.hub.shownCounters().entries(.trips) == 7)
    #expect(Turn(loops: [again.turn([again.move(.rider, "R", "z-9", .requested)])]).codes == [.rateLimited])
    bench.tick(seconds: 62)
    for _ in 0..<3 { bench.pass(seconds: 86_400) }
    #expect(bench.hub.shownCounters().entries(.trips) == 0)
    #expect(bench.turn(bench.move(.rider, "R", "z-5", .requested)).codes.isEmpty)
  }

  @Test(
    "the routes of one creator's trips have so many bytes, ops' as many as there is room; a restart counts them again")
  func routes() throws {
    func route(_ points: Int) throws -> Route {
      try Route(points: (0..<points).map { try #require(Coordinate(latitude: 0, longitude: Double($0) / 1e5)) })
    }
    let (small, large) = (try route(10), try route(20))  // two bytes a point
    #expect(small.polyline.utf8.count == 20 && large.polyline.utf8.count == 40)
    var limits = HubLimits.roomy
    limits.routeBytes = 200
    limits.routeBytesPerIdentity = 60
    let bench = HubBench(limits: limits)
    for (role, name) in [(Role.driver, "d"), (.rider, "r")] {
      func begin(_ trip: String, _ route: Route?) -> HubInput {
        bench.move(role, name, name + trip, .requested, route: route)
      }
      #expect(bench.turn(begin("1", large), begin("2", small)).codes.isEmpty)
      let refused = bench.turn(begin("3", small))
      #expect(refused.codes == [.rateLimited] && refused.errors.first?.isOwnLimit == true)
      #expect(refused.errors.first?.message.contains("at most 60 bytes of routes") == true)
      // Without one it begins, and gets one when another trip gives its own up.
      #expect(bench.turn(begin("3", nil)).codes.isEmpty)
      #expect(bench.turn(bench.change(role, name, name + "3", route: small)).codes == [.rateLimited])
      #expect(bench.turn(bench.change(role, name, name + "1", route: small)).codes.isEmpty)
      #expect(bench.turn(bench.change(role, name, name + "3", route: small)).codes.isEmpty)
    }
    #expect(bench.hub.counters.hits(.routeBytesPerIdentity) == 4)
    #expect(bench.hub.shownCounters().entries(.routeBytes) == 120)
    // Of all of them a tenth is for ops.
    #expect(bench.turn(bench.move(.rider, "s", "s1", .requested, route: large)).codes.isEmpty)
    #expect(bench.turn(bench.move(.rider, "t", "t1", .requested, route: large)).codes == [.storageFull])
    #expect(bench.turn(bench.move(.ops, "o", "o1", .requested, route: large)).codes.isEmpty)
    #expect(bench.turn(bench.move(.ops, "o", "o2", .requested, route: small)).codes == [.storageFull])
    #expect(bench.hub.counters.hits(HubTable.routeBytes) == 2)
    var snapshot: [[UInt8]] = []
    bench.hub.writeSnapshot { snapshot.append(Array($0)) }
    let again = try DurableBench(reading: snapshot, limits: limits)
    #expect(again.hub.shownCounters().entries(.routeBytes) == 200)
    #expect(
      Turn(loops: [again.turn([bench.move(.ops, "o", "o2", .requested, route: small)])]).codes == [.storageFull])
    bench.tick(seconds: 62)
    for _ in 0..<3 { bench.pass(seconds: 86_400) }
    #expect(
      bench.hub.shownCounters().entries(.trips) == 0 && bench.hub.shownCounters().entries(.routeBytes) == 0)
    #expect(bench.turn(bench.move(.rider, "r", "r4", .requested, route: large)).codes.isEmpty)
  }

  @Test("of the tables of trips, channels and cells a tenth is for ops; riders and drivers stop before it")
  func tenth() {
    var limits = HubLimits.roomy
    limits.trips = 10
    limits.channels = 20
    limits.areas = 10
    let bench = HubBench(limits: limits)
    let session = bench.connect("d")
    #expect(bench.turn((0..<8).map { bench.move(.rider, "r", "t\($0)", .requested) }).codes.isEmpty)
    #expect(bench.turn(bench.fix(session, trip: "t8")).codes.isEmpty)
    #expect(
      bench.turn(bench.move(.rider, "r", "t9", .requested), bench.fix(session, trip: "t9")).codes == [
        .storageFull, .storageFull,
      ])
    #expect(bench.turn(bench.move(.ops, "o", "t9", .requested)).codes.isEmpty)
    #expect(bench.turn(bench.move(.ops, "o", "t10", .requested)).codes == [.storageFull])
    #expect(bench.hub.counters.hits(HubTable.trips) == 3)
    // Ten trips and a driver have channels of their own.
    #expect(bench.hub.channels.count == 11)
    func subscribe(_ role: Role, _ number: Int) -> HubInput {
      bench.subscribe(bench.trip("c\(number)"), slot: UInt32(200 + number), by: (role, "x"))
    }
    #expect(bench.turn((0..<7).map { subscribe(.rider, $0) }).refusedSubscriptions.isEmpty)
    #expect(bench.turn(subscribe(.rider, 7)).refusedSubscriptions.map(\.code) == [.rateLimited])
    #expect(bench.turn(subscribe(.ops, 8), subscribe(.ops, 9)).refusedSubscriptions.isEmpty)
    #expect(bench.turn(subscribe(.ops, 10)).refusedSubscriptions.map(\.code) == [.rateLimited])
    #expect(bench.hub.counters.hits(.channels) == 2)
  }

  @Test("nine of ten cells are for riders, the tenth for ops")
  func cells() {
    var limits = HubLimits.roomy
    limits.areas = 10
    let bench = HubBench(limits: limits)
    func cell(_ number: Int) -> Channel { .area(GeohashCell(at(52.52, 13 + Double(number) * 0.2), precision: 5)) }
    for number in 0..<9 { #expect(bench.map(.rider, cell(number), slot: 100).refusals.isEmpty) }
    #expect(bench.map(.rider, cell(9), slot: 101).refusals.map(\.code) == [.rateLimited])
    #expect(bench.map(.rider, cell(8), slot: 102).refusals.isEmpty, "what is watched already takes no room")
    #expect(bench.map(.ops, cell(9), slot: 103).refusals.isEmpty)
    #expect(bench.map(.ops, cell(10), slot: 104).refusals.map(\.code) == [.rateLimited])
    #expect(bench.hub.counters.hits(HubTable.areas) == 2)
    let shown = bench.hub.shownCounters()
    #expect(shown.entries(.areas) == 10 && limits.capacity(of: .areas) == 10)
  }
}
