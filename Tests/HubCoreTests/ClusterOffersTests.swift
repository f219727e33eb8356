// Offers of one hub of a cluster, where the test plays the other hubs: what these are asked, and what their answers
// lead to.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct ClusterOffersTests {
  private let ops = Actor(role: .ops, id: id("o"))

  private func bench(_ change: (inout HubLimits) -> Void = { _ in }) -> HubBench {
    var limits = HubLimits.roomy
    change(&limits)
    let bench = HubBench(limits: limits, loops: 2)
    bench.hub.joinCluster(outlet: 1)
    return bench
  }

  /// A trip of this hub, with offers.
  private func request(_ trip: String, _ criteria: OfferCriteria, _ bench: HubBench) -> Turn {
    guard
      case .tripStatus(let input) = requested(trip, by: ops, criteria, at: bench.now, message: bench.freshMessage())
    else { preconditionFailure("it makes a trip_status") }
    return bench.turn(.cluster(.tripRequestHere(.move(input))))
  }

  private func answer(_ question: FleetQuestion, _ reports: [DriverReport], _ bench: HubBench) -> Turn {
    bench.turn(.cluster(.answered(question, .result(.drivers(DriverList(drivers: reports))))))
  }

  private func refuse(_ question: FleetQuestion, retryAfter: Double?, _ bench: HubBench) -> Turn {
    let refusal = ErrorReply(code: .rateLimited, message: "too much", retryAfter: retryAfter)
    return bench.turn(.cluster(.answered(question, .refused(refusal))))
  }

  /// Drivers of other hubs, each 10 m further east of the pickup of all trips.
  private func drivers(_ numbers: ClosedRange<Int>) -> [DriverReport] {
    numbers.map { number in
      var report = DriverReport(driverID: id("D\(number)"), status: .available)
      let place = offerPickup.moved(90, Double(number) * 10)
      report.distance = offerPickup.distance(to: place)
      report.position = DriverReport.Place(
        coordinate: place, heading: nil, speed: nil, accuracy: nil, age: 1, timestamp: nil)
      return report
    }
  }

  @Test("Where a hub refuses a search, all are asked again when the refusal says, or in 2 s, not after a minute")
  func refused() throws {
    for (retryAfter, seconds) in [(1, 1), (5, 5), (nil, 2), (1e300, 60)] as [(Double?, Int)] {
      let bench = bench()
      let question = try #require(request("T", OfferCriteria(), bench).questions.first)
      #expect(refuse(question, retryAfter: retryAfter, bench).questions.isEmpty)
      #expect(bench.tick(seconds: seconds - 1).questions.isEmpty)
      let again = try #require(bench.tick(seconds: 3).questions.first)
      #expect(refuse(again, retryAfter: retryAfter, bench).questions.isEmpty)
      #expect(bench.tick(seconds: min(60, 2 * seconds) - 1).questions.isEmpty, "twice as long")
      let last = try #require(bench.tick(seconds: 3).questions.first)
      #expect(answer(last, drivers(1...1), bench).sent.map(\.driverID) == [id("D1")])
    }
  }

  @Test("So many questions wait for an answer at once; further trips wait for these, in their order, and take no turns")
  func limit() {
    let bench = bench { $0.offerGathers = 2 }
    let asked = ["A", "B", "C", "D"].flatMap { request($0, OfferCriteria(), bench).questions }
    #expect(asked.map(\.actor.id) == [id("A"), id("B")])
    let (hasMoreDue, waiting) = (bench.hub.hasMoreDue, bench.hub.offers.queue.isEmpty)
    #expect(!hasMoreDue && !waiting)
    #expect(bench.tick(seconds: 10).questions.isEmpty)
    #expect(refuse(asked[1], retryAfter: 1, bench).questions.map(\.actor.id) == [id("C")])
    // The answer to a trip whose offers have ended makes room as well.
    _ = bench.ask("A", .stop)
    #expect(answer(asked[0], drivers(1...1), bench).questions.map(\.actor.id) == [id("D")])
    #expect(bench.tick(seconds: 3).questions.isEmpty, "B is next")
  }

  @Test("An answer for a pickup that has changed meanwhile says nothing: all hubs are asked again, round the new one")
  func changed() throws {
    let bench = bench()
    let question = try #require(request("T", OfferCriteria(), bench).questions.first)
    let pickup = offerPickup.moved(0, 20_000)
    #expect(bench.turn(bench.change(.ops, "o", "T", pickup: pickup)).questions.isEmpty)
    let again = try #require(answer(question, drivers(1...1), bench).questions.first)
    guard case .query(.drivers(let search)) = again.request, case .nearby(pickup, _) = search.area else {
      Issue.record("\(again.request)")
      return
    }
    #expect(bench.ask("T", .show).offers?.end == nil)
    #expect(answer(again, [], bench).questions.isEmpty)
    #expect(bench.ask("T", .show).offers?.end == .unserved)
  }

  @Test("A full answer is not the last one, also where an offer has been declined since the question")
  func declined() throws {
    let bench = bench()
    let first = try #require(request("T", OfferCriteria(atOnce: 2), bench).questions.first)
    // One of them is in the radius.
    let far = drivers(1101...1200)
    let turn = answer(first, drivers(1...1) + far.prefix(first.limit - 1), bench)
    let offer = try #require(turn.sent.first)
    let second = try #require(turn.questions.first)
    #expect(turn.sent.count == 1 && second.limit > first.limit)
    #expect(bench.decline("D1", "T").acks.count == 1 && offer.driverID == id("D1"))
    let third = try #require(answer(second, Array(far.prefix(second.limit)), bench).questions.first)
    #expect(third.limit > second.limit && bench.ask("T", .show).offers?.end == nil)
    #expect(answer(third, Array(far.prefix(third.limit - 1)), bench).questions.isEmpty)
    #expect(bench.ask("T", .show).offers?.end == .unserved, "there are no more")
  }

  @Test("Drivers whose hubs do not ask them are passed over up to a limit; further ones count as asked")
  func passed() throws {
    let bench = bench { $0.queryHits = 500 }
    let all = drivers(1...200)
    var turn = request("T", OfferCriteria(limit: 2), bench)
    for _ in all {
      guard let question = turn.questions.first else { break }
      let asked = try #require(answer(question, Array(all.prefix(question.limit)), bench).sent.first)
      turn = bench.turn(.offer(.nobody, asked.declined))
    }
    let report = try #require(bench.ask("T", .show).offers)
    #expect(report.end == .unserved && report.asked.count == HubLimits.passedDriversPerOffer + 1)
  }

  @Test("A hub keeps so many of its drivers' offers of another hub's trip, and forgets the oldest that have ended")
  func kept() throws {
    let bench = bench()
    let count = HubLimits.passedDriversPerOffer + 2
    bench.drivers(count)
    let search = OfferSearch(ofOther: id("T"), at: bench.now.timestamp)
    for number in 1...count {
      let asked = AskedDriver(
        id: id("D\(number)"), driver: nil, offered: bench.now.timestamp, expires: bench.now.timestamp, deadline: 0,
        answer: .open)
      var offer = SentOffer(asked, of: search, pickup: offerPickup)
      #expect(bench.turn(.offer(.nobody, offer)).heard == [Heard("D\(number)", "T", "made")])
      if number == 1 { continue }  // its offer stays open
      offer.answer = .withdrawn(.declined)
      #expect(bench.turn(.offer(.nobody, offer)).heard == [Heard("D\(number)", "T", "declined")])
    }
    var kept: [Identifier] = []
    bench.hub.offers.forEachRecord { record in
      if case .offers(let offers) = record { kept += offers.report.asked.map(\.driverID) }
    }
    #expect(kept == [id("D1")] + (4...count).map { id("D\($0)") })
  }
}

extension Turn {
  fileprivate var outputs: [ClusterOutput] {
    all.compactMap { if case .cluster(let output) = $0 { output } else { nil } }
  }

  /// What all hubs are asked.
  fileprivate var questions: [FleetQuestion] {
    outputs.compactMap { if case .ask(let question) = $0 { question } else { nil } }
  }

  /// Offers to drivers of other hubs.
  fileprivate var sent: [SentOffer] {
    outputs.compactMap { if case .tripRequest(.offer(_, let offer)) = $0 { offer } else { nil } }
  }
}

extension FleetQuestion {
  fileprivate var limit: Int {
    guard case .query(.drivers(let search)) = request else { return 0 }
    return search.limit ?? 0
  }
}
