// The second lane: who waits while a thousand drivers send their backlogs, and who does not.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

extension HubLimits {
  fileprivate static var crowded: HubLimits {
    var limits = HubLimits.roomy
    limits.drivers = 3000
    limits.driversWithFixTimes = 3000
    return limits
  }
}

@Suite struct HubBacklogTests {
  private func backlog(_ bench: HubBench, _ session: SessionRef, _ count: Int) -> HubInput {
    bench.batch(session, (0..<count).map { bench.measured(bench.clock - Int64(count - $0) * 1000) })
  }

  @Test("A thousand drivers with 500 fixes each at once: each live fix of others is published in its own turn")
  func thousand() {
    let bench = HubBench(limits: .crowded)
    bench.turn(bench.subscribe(.fleet))
    let live = (0..<40).map { bench.connect("live-\($0)", slot: UInt32($0)) }
    let others = (0..<1000).map { bench.connect("d-\($0)", slot: UInt32(100 + $0)) }
    bench.pass(seconds: 1)
    var acks = bench.turn(others.map { backlog(bench, $0, 500) }).acks.count
    #expect(acks == 3, "two for the credit, and one because nobody else wanted anything")
    var turns = 0
    var handled = acks * 500
    while bench.hub.hasMoreDue {
      bench.advance(seconds: 0.001)
      let now = bench.clock
      let before = bench.hub.counters
      // Turns with much live work, little, and none.
      let count = turns % 4 == 3 ? 0 : turns % 4 == 2 ? 1 : 40
      let turn = bench.turn(live.prefix(count).map { bench.fix($0) })
      #expect(turn.positions.count { $0.timestamp.milliseconds == now } == count)
      let after = bench.hub.counters
      let batched = Int(after.fixesReceived - before.fixesReceived) - count
      #expect(batched <= 500 || count == 0 && batched <= 1000, "never more than one batch over the budget")
      handled += batched
      acks += turn.acks.count
      turns += 1
    }
    #expect(acks == 1000 && handled == 500_000)
    #expect(bench.hub.shownCounters().fixesWaiting == 0 && turns > 500)
  }

  @Test("While live work comes in each turn, batches take at most a quarter of the work, and are not starved")
  func quarter() {
    let bench = HubBench(limits: .crowded)
    let live = (0..<300).map { bench.connect("live-\($0)", slot: UInt32($0)) }
    let others = (0..<100).map { bench.connect("d-\($0)", slot: UInt32(400 + $0)) }
    bench.turn(others.map { backlog(bench, $0, 500) })
    var (lives, turns) = (0, 0)
    let start = bench.hub.counters.fixesReceived
    while bench.hub.hasMoreDue, turns < 100 {
      bench.advance(seconds: 0.01)
      bench.turn(live.map { bench.fix($0) })
      lives += live.count
      turns += 1
    }
    let batched = Int(bench.hub.counters.fixesReceived - start) - lives
    let earned = lives / 3 + turns * Backlog.creditOfTurn
    #expect(batched <= earned + 500 && batched >= earned - 1500)
  }

  @Test("A small batch does not wait: it is handled in order, before what came behind it in the same turn")
  func smallBatch() {
    let bench = HubBench()
    bench.turn(bench.subscribe(.fleet))
    let session = bench.connect("d")
    let clock = bench.clock
    let turn = bench.turn(
      bench.batch(session, [bench.measured(clock - 2000), bench.measured(clock - 1000)]), bench.fix(session))
    #expect(turn.positions.map { $0.timestamp.milliseconds - clock } == [-2000, -1000, 0])
    #expect(turn.acks.count == 1 && !bench.hub.hasMoreDue)
  }

  @Test("What a driver says behind a batch that waits keeps its order: fixes, its move, its status and its pong")
  func order() {
    let bench = HubBench(limits: .crowded)
    bench.turn(bench.subscribe(bench.trip("t")), bench.subscribe(bench.driver("d")))
    let session = bench.connect("d", slot: 5)
    let others = (0..<6).map { bench.connect("o-\($0)", slot: UInt32(10 + $0)) }
    bench.turn(bench.fix(session, trip: "t", milliseconds: bench.clock - 60_000))
    let clock = bench.clock
    var inputs = others.map { backlog(bench, $0, 500) }
    inputs += [
      bench.batch(session, trip: "t", [bench.measured(clock - 2000), bench.measured(clock - 1000)]),
      bench.fix(session, trip: "t"), bench.move(.driver, "d", "t", .driverEnRoute, slot: 5),
      .ping(session, bench.freshMessage(), Ping()),
    ]
    // The move is of the driver's session, which is what makes it wait.
    if case .tripStatus(var move) = inputs[8] {
      move.session = session
      inputs[8] = .tripStatus(move)
    }
    var outputs = bench.turn(inputs).all
    #expect(Turn(loops: [outputs]).positions.isEmpty)
    // Gone before its turn: what came is true all the same.
    outputs += bench.turn(.driverDisconnected(session)).all
    while bench.hub.hasMoreDue { outputs += bench.turn().all }
    let turn = Turn(loops: [outputs])
    let received = turn.deliveries.compactMap { delivery -> Int64? in
      guard delivery.publication.channel == bench.trip("t") else { return nil }
      guard case .driverLocation(let location) = delivery.publication.body else { return 1 }
      return location.timestamp.milliseconds - clock
    }
    #expect(received == [-2000, -1000, 0, 1], "the batch, the live fix, the move")
    #expect(turn.acks.count == 8 && turn.replies.contains { if case .pong = $0 { true } else { false } })
    let driver = bench.hub.drivers.find(id("d"))
    #expect(driver.map { bench.hub.drivers[$0].waiting } == 0)
  }

  @Test("What waits of a driver that has left for another hub is dropped: its client sends it again there")
  func leaves() {
    let bench = HubBench(limits: .crowded, loops: 2)
    bench.hub.joinCluster(outlet: 1)
    let session = bench.connect("d", slot: 5)
    let others = (0..<6).map { bench.connect("o-\($0)", slot: UInt32(10 + $0)) }
    bench.turn(others.map { backlog(bench, $0, 500) } + [backlog(bench, session, 10), bench.fix(session)])
    bench.turn(.cluster(.driverElsewhere(id("d"), arrival: 1)))
    while bench.hub.hasMoreDue { bench.turn() }
    #expect(bench.hub.counters.fixesOrphaned == 11 && bench.hub.counters.fixesReceived == 3011)
    let driver = bench.hub.drivers.find(id("d"))!
    #expect(bench.hub.drivers[driver].position == nil && bench.hub.drivers[driver].waiting == 0)
  }

  @Test("A batch from another hub that waited is put off where its driver has left, and does not bring it back")
  func forwardedLeaves() {
    let bench = HubBench(limits: .crowded, loops: 2)
    bench.hub.joinCluster(outlet: 1)
    _ = bench.connect("d", slot: 5)
    let others = (0..<6).map { bench.connect("o-\($0)", slot: UInt32(10 + $0)) }
    let posted = bench.batch(
      SessionRef(outlet: 1, slot: 0, generation: 9), driver: "d",
      (0..<10).map { bench.measured(bench.clock - Int64(10 - $0) * 1000) })
    bench.turn(others.map { backlog(bench, $0, 500) } + [posted])
    let driver = bench.hub.drivers.find(id("d"))!
    #expect(bench.hub.drivers[driver].waiting == 1)
    bench.turn(.cluster(.driverElsewhere(id("d"), arrival: bench.hub.drivers[driver].arrivals)))
    while bench.hub.hasMoreDue { bench.turn() }
    #expect(bench.hub.counters.fixesPutOff == 10 && bench.hub.drivers[driver].position == nil)
    let isElsewhere = bench.hub.drivers[driver].isElsewhere
    #expect(isElsewhere)
  }

  @Test("Past its limit the lane takes no batch, and live fixes go before their driver's batch after all")
  func limit() {
    var limits = HubLimits.crowded
    limits.waitingFixes = 1200
    let bench = HubBench(limits: limits)
    bench.turn(bench.subscribe(.fleet))
    let sessions = (0..<8).map { bench.connect("d-\($0)", slot: UInt32($0)) }
    bench.pass(seconds: 1)
    var inputs = sessions.map { backlog(bench, $0, 500) }
    inputs.append(bench.batch(sessions[4], (0..<200).map { bench.measured(bench.clock - $0 * 1000) }))
    inputs.append(bench.fix(sessions[3]))
    let clock = bench.clock
    let turn = bench.turn(inputs)
    #expect(turn.codes.contains(.rateLimited) && turn.errors.allSatisfy { $0.retryAfter != nil })
    #expect(turn.positions.contains { $0.driverID == id("d-3") && $0.timestamp.milliseconds == clock })
    #expect(bench.hub.counters.hits(.waitingFixes) == 4 && bench.hub.counters.fixesPutOff == 2000)
  }

  @Test("Behind its own messages that wait a driver's batch is refused at the limit, another driver's is not")
  func perDriver() {
    var limits = HubLimits.crowded
    limits.waitingPerDriver = 3
    let bench = HubBench(limits: limits)
    let sessions = (0..<4).map { bench.connect("d-\($0)", slot: UInt32($0)) }
    bench.pass(seconds: 1)
    // The first two use up the credit.
    var inputs = [backlog(bench, sessions[0], 500), backlog(bench, sessions[1], 500)]
    inputs += (0..<4).map { _ in backlog(bench, sessions[2], 10) } + [backlog(bench, sessions[3], 10)]
    let turn = bench.turn(inputs)
    #expect(turn.codes == [.rateLimited] && bench.hub.counters.fixesPutOff == 10)
    #expect(bench.hub.drivers[2].waiting <= 3)
  }

  @Test("Who resumes many events waits, too, and other subscriptions behind it, in order; live positions do not")
  func resumes() {
    var limits = HubLimits.crowded
    limits.waitingResumes = 40
    let bench = HubBench(limits: limits)
    let session = bench.connect("live", slot: 1)
    for status in [TripStatus.requested, .cancelled] { bench.turn(bench.move(.ops, "o", "t", status)) }
    bench.turn(bench.subscribe(bench.driver("live")))
    // Nothing is left of the credit.
    let busy = bench.connect("busy", slot: 2)
    bench.turn(backlog(bench, busy, 500), backlog(bench, busy, 500), backlog(bench, busy, 500), bench.fix(session))
    bench.advance(seconds: 1)
    var inputs = (0..<50).map { bench.subscribe(bench.trip("t"), since: 0, slot: UInt32(100 + $0)) }
    inputs.append(.unsubscribe(SessionRef(outlet: 0, slot: 100, generation: 1), bench.freshMessage(), bench.trip("t")))
    inputs.append(bench.fix(session))
    let first = bench.turn(inputs)
    #expect(first.positions.count == 1)
    var outputs = first.all
    while bench.hub.hasMoreDue { outputs += bench.turn().all }
    let turn = Turn(loops: [outputs])
    #expect(turn.subscribed.count == 40 && turn.refusedSubscriptions.count == 10)
    #expect(turn.subscribed.allSatisfy { $0.missed.count == 2 })
    #expect(turn.refusedSubscriptions.allSatisfy { $0.code == .rateLimited })
    let last = turn.all.lastIndex { if case .subscribed = $0 { true } else { false } }
    let unsubscribed = turn.all.firstIndex { if case .unsubscribed = $0 { true } else { false } }
    #expect(unsubscribed ?? 0 > last ?? 0)
  }

  @Test("Who resumes a few events with long routes pays for their bytes, and others behind it wait")
  func longRoutes() throws {
    let bench = HubBench(limits: .crowded)
    let session = bench.connect("live", slot: 1)
    bench.turn(bench.move(.rider, "r", "t", .requested))
    for number in 0..<20 {
      let points = (0..<5000).map { at(48 + Double(number) * 0.1, 11.5 + Double($0 % 2) * 0.0001) }
      bench.turn(bench.change(.rider, "r", "t", route: try Route(points: points)))
    }
    bench.pass(seconds: 1)
    var inputs = (0..<40).map { bench.subscribe(bench.trip("t"), since: 1, slot: UInt32(100 + $0)) }
    inputs.append(bench.fix(session))
    let first = bench.turn(inputs)
    #expect(first.positions.isEmpty && first.acks.count <= 1)
    let bytes = try #require(first.subscribed.first).missed.reduce(0) { $0 + $1.contentBytes }
    #expect(bytes > 200_000 && first.subscribed.count < 8, "\(bytes) bytes, \(first.subscribed.count) times")
    var all = first.subscribed.count
    while bench.hub.hasMoreDue { all += bench.turn().subscribed.count }
    #expect(all == 40)
  }
}
