// The hub that counts the events of all hubs' trips, over its own death: no number is given out twice, and a
// client that was sent one that is lost gets a notice of a gap.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct TripsCounterTests {
  private func bench(reading records: [[UInt8]] = [], counts: Bool) throws -> DurableBench {
    let bench = try DurableBench(reading: records, loops: 2)
    bench.hub.joinCluster(outlet: 1)
    if counts { bench.turn([.cluster(.numberTrips(true))]) }
    bench.store()
    return bench
  }

  private func begin(_ bench: DurableBench, _ trip: String) -> HubInput {
    guard case .tripStatus(let input) = bench.move(.ops, "o", trip, .requested) else { preconditionFailure() }
    return .cluster(.tripRequestHere(.move(input)))
  }

  private func others(_ trip: String, _ bench: DurableBench) -> HubInput {
    let update = TripUpdate(
      tripID: id(trip), status: .accepted, previousStatus: .requested, driverID: id("D"),
      timestamp: bench.now.timestamp, location: nil, sequence: 7)
    return .cluster(
      .relayed(Publication(channel: .trips, number: 1, timestamp: bench.now.timestamp, body: .tripUpdate(update))))
  }

  private func subscribe(_ bench: DurableBench, since: UInt64? = nil) throws -> (answer: Subscribed, missed: Int) {
    let asked = Turn(loops: [bench.turn([bench.subscribe(.trips, since: since)]) + bench.store()])
    let answer = try #require(asked.subscribed.first)
    return (answer.answer, answer.missed.count)
  }

  @Test("Its own and others' events come under one count; none of others is in its journal")
  func counts() throws {
    let bench = try bench(counts: true)
    let first = try subscribe(bench).answer.sequence
    var shown: [UInt64] = []
    for number in 0..<3 {
      let outputs = bench.turn([others("O\(number)", bench), begin(bench, "T\(number)")])
      shown += Turn(loops: [outputs + bench.store()]).moves.filter { $0.riderID != nil || $0.tripID != id("T") }
        .map(\.sequence)
    }
    #expect(shown == (1...6).map { first + $0 })
    var stored: [Identifier] = []
    for record in bench.submitted {
      record.withUnsafeBytes {
        StoredEvents.forEach(in: $0) { event, _ in
          if event.channel == .trips, case .tripUpdate(let update) = event.body { stored.append(update.tripID) }
          return true
        }
      }
    }
    #expect(stored == ["T0", "T1", "T2"].map(id))
    let back = try subscribe(bench, since: first + 2)
    #expect(back.answer.recovered && back.missed == 4)
  }

  @Test("Read back, it continues behind all numbers that it may have given, from its journal and from a snapshot")
  func readBack() throws {
    let bench = try bench(counts: true)
    _ = try subscribe(bench)
    bench.turn([begin(bench, "T")])
    for number in 0..<300 { bench.turn([others("O\(number)", bench)]) }
    bench.store()
    let newest = try subscribe(bench).answer.sequence
    for records in [bench.submitted, try bench.snapshot()] {
      let next = try self.bench(reading: records, counts: false)
      let sequenceAtStart = next.hub.channels.trips.map { next.hub.channels.sequence($0) }
      #expect(try #require(sequenceAtStart) > newest)
      next.turn([.cluster(.numberTrips(true))])
      for number in 0..<3 { next.turn([others("N\(number)", next)]) }
      next.store()
      for since in [newest - 5, newest, newest + 1] {
        #expect(try !subscribe(next, since: since).answer.recovered)
      }
      let sequence = try subscribe(next).answer.sequence
      #expect(try subscribe(next, since: sequence - 2).missed == 2)
    }
  }

  @Test("A hub that does not count has its own trips' numbers over a restart, and nothing is missing between")
  func ownFeed() throws {
    let bench = try bench(counts: false)
    func ask(_ bench: DurableBench, _ since: UInt64?) -> HubInput {
      .cluster(
        .subscribeHere(
          SubscribeInput(
            session: SessionRef(outlet: 1, slot: 0, generation: 1), actor: .cluster, messageID: bench.freshMessage(),
            request: Subscribe(
              channel: .trips, resume: since.map { ResumePoint(since: $0, epoch: InlineText("epoch-1")!) }),
            grant: .granted)))
    }
    let first = Turn(loops: [bench.turn([ask(bench, nil)]) + bench.store()]).subscribed
    let since = try #require(first.first?.answer.sequence)
    for number in 0..<3 { bench.turn([begin(bench, "T\(number)")]) }
    bench.store()
    let next = try self.bench(reading: bench.submitted, counts: false)
    next.turn([begin(next, "T3")])
    let again = Turn(loops: [next.turn([ask(next, since)]) + next.store()]).subscribed
    #expect(again.first?.answer.recovered == true && again.first?.missed.count == 4)
    // From the time at which it counts, or does not any more, nobody continues with an older number.
    for counts in [true, false] {
      next.turn([.cluster(.numberTrips(counts))])
      let outputs = next.turn([ask(next, since + 4)]) + next.store()
      let isCounted = outputs.compactMap {
        if case .subscribed(_, _, _, _, let isCounted) = $0 { isCounted } else { nil }
      }
      #expect(isCounted == [counts] && Turn(loops: [outputs]).subscribed.first?.answer.recovered == false)
    }
  }

  @Test("While the disk takes nothing others' events do not pile up: a number is left out, which reveals it")
  func unstored() throws {
    let bench = try bench(counts: true)
    let first = try subscribe(bench).answer.sequence
    bench.turn([begin(bench, "T")])
    bench.store(0, condition: .unavailable)
    let held = bench.hub.storage.held.count
    for number in 0..<1000 { bench.turn([others("O\(number)", bench)]) }
    #expect(bench.hub.storage.held.count == held)
    bench.store()
    let shown = Turn(loops: [bench.turn([others("N", bench)]) + bench.store()]).moves
    #expect(shown.map(\.sequence) == [first + 1002])
    #expect(try !subscribe(bench, since: first + 1).answer.recovered)
  }
}
