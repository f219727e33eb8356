// The way of a fix: what is published where, what is not, and that each ends in exactly one counter.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubLocationsTests {
  @Test("an accepted fix is published once on the trip's, the driver's and the fleet's channel")
  func channels() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")), bench.subscribe(bench.driver("d")), bench.subscribe(.fleet))
    let session = bench.connect("d")
    bench.turn(bench.fix(session, trip: "t"))
    bench.tick(seconds: 1)
    let turn = bench.turn(bench.fix(session, trip: "t"))
    #expect(turn.deliveries.map(\.publication.channel) == [bench.trip("t"), bench.driver("d"), .fleet])
    let statuses = turn.deliveries.map { delivery -> DriverStatus? in
      if case .driverLocation(let location) = delivery.publication.body { location.status } else { nil }
    }
    #expect(statuses == [nil, nil, .onTrip], "what it is doing is for ops")
    #expect(Set(turn.deliveries.map(\.conflationKey)).count == 3)
    #expect(turn.positions.map(\.after) == [1, 1, 0], "each channel's own newest event")
    #expect(bench.hub.counters.positionsPublished == 2)
  }

  @Test("a fix is handed once to each loop that has a subscriber, however many it has, and to no other")
  func loops() {
    let bench = HubBench(loops: 3)
    for slot in 0..<5 as Range<UInt32> { bench.turn(bench.subscribe(bench.driver("d"), loop: 2, slot: slot)) }
    bench.turn(bench.subscribe(bench.driver("d"), loop: 0))
    let session = bench.connect("d", loop: 1)
    let turn = bench.turn(bench.fix(session))
    #expect(turn.loops.map(\.count) == [1, 0, 1])
    #expect(bench.hub.shownCounters().deliveries == 2)
  }

  @Test("latency is measured from when the fix came in")
  func received() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    let input = bench.fix(session)
    let came = bench.uptime
    bench.pass(seconds: 2)
    #expect(bench.turn(input).deliveries.first?.received == came)
  }

  @Test("history, duplicates and refused fixes are not published; the sender gets errors for the refused only")
  func notPublished() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    let base = bench.clock
    #expect(bench.turn(bench.fix(session, milliseconds: base)).positions.count == 1)
    let quiet = bench.turn(
      bench.fix(session, milliseconds: base), bench.fix(session, milliseconds: base - 1),
      bench.fix(session, milliseconds: base + 700_000))
    #expect(quiet.all.isEmpty)
    let refused = bench.turn(
      bench.fix(session, accuracy: 5000, milliseconds: base + 1),
      bench.fix(session, at: at(0, 0), milliseconds: base + 2),
      bench.fix(session, at: at(48.1, 11.5), milliseconds: base + 3000))
    #expect(refused.codes == [.implausibleLocation, .implausibleLocation, .implausibleLocation])
    #expect(refused.positions.isEmpty)
    let counters = bench.hub.counters
    #expect(counters.fixesDuplicate == 1 && counters.fixesHistory == 1 && counters.fixesHeld == 1)
    #expect(counters.fixesRefused[Int(Tracker.Refusal.inaccurate.rawValue)] == 1)
    #expect(counters.fixesRefused[Int(Tracker.Refusal.nullIsland.rawValue)] == 1)
    #expect(counters.fixesRefused[Int(Tracker.Refusal.tooFast.rawValue)] == 1)
    #expect(counters.fixesReceived == 7 && counters.fixesAccepted == 1)
  }

  @Test("a fix whose place can't be makes a position where the motion leads, and is counted by its reason")
  func absorbed() throws {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    for second in 0..<20 {
      #expect(bench.turn(bench.fix(session, milliseconds: bench.clock + Int64(second) * 1000)).positions.count == 1)
    }
    let outcome = bench.turn(
      bench.fix(session, at: at(52.53, 13.405), milliseconds: bench.clock + 20_000))
    #expect(outcome.codes.isEmpty && outcome.positions.count == 1)
    #expect(bench.hub.counters.fixesAbsorbed[Int(Tracker.Refusal.tooFast.rawValue)] == 1)
    #expect(bench.hub.counters.fixesAccepted == 21)
  }

  @Test("a leap in time is held back, and comes out before the fix that confirms it")
  func leap() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    let base = bench.clock
    bench.turn(bench.fix(session, milliseconds: base))
    bench.tick(seconds: 1)
    #expect(bench.turn(bench.fix(session, milliseconds: base + 3_600_000)).all.isEmpty)
    bench.tick(seconds: 1)
    let turn = bench.turn(bench.fix(session, milliseconds: base + 3_601_000))
    #expect(turn.positions.map(\.timestamp.milliseconds) == [base + 3_600_000, base + 3_601_000])
    #expect(bench.hub.counters.fixesReleased == 1)
    #expect(bench.hub.counters.fixesAccepted == 3 && bench.hub.counters.positionsPublished == 3)
  }

  @Test("age is from the fix to the publication by the session's clock, a new session's clock being unknown again")
  func age() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    let phone = bench.clock - 3_600_000  // an hour behind
    bench.turn(bench.fix(session, milliseconds: phone, sent: phone))
    bench.pass(seconds: 5)
    // Measured 2 s before it was sent, and 3 s late on the way.
    let late = bench.turn(bench.fix(session, milliseconds: phone + 0_500, sent: phone + 2_000))
    #expect(late.positions.map(\.age) == [4.5])
    let again = bench.connect("d", slot: 3)
    let turn = bench.turn(bench.fix(again, milliseconds: phone + 6_000, sent: phone + 5_000))
    #expect(turn.positions.first?.age == 0)
  }

  @Test("a batch over HTTP says nothing about the clock of the driver's session")
  func ageAfterHTTP() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    let phone = bench.clock - 60_000  // a minute behind
    bench.turn(bench.fix(session, milliseconds: phone, sent: phone))
    // The gateway has no envelope there: it passes its own clock.
    bench.turn(bench.batch(bench.session(slot: 9), driver: "d", [bench.measured(phone - 5000)]))
    bench.pass(seconds: 2)
    let turn = bench.turn(bench.fix(session, milliseconds: phone + 1_000, sent: phone + 2_000))
    #expect(turn.positions.map(\.age) == [1])
  }

  // MARK: Batches

  @Test("a batch's ack has the outcome of each fix; only what is new and newest is published")
  func batch() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    let base = bench.clock
    bench.turn(bench.fix(session, milliseconds: base))
    let turn = bench.turn(
      bench.batch(
        session,
        [
          bench.measured(base - 2000), .failure(.invalidLocation), bench.measured(base),
          bench.measured(base + 1000), bench.measured(base + 1000), bench.measured(base + 2000, accuracy: 4000),
          bench.measured(base + 3000),
        ]))
    let summary = turn.acks.first?.batch
    #expect(summary?.accepted == 3)
    #expect(summary?.duplicates == 2)
    #expect(
      summary?.rejected == [.init(index: 1, code: .invalidLocation), .init(index: 5, code: .implausibleLocation)])
    #expect(turn.positions.map(\.timestamp.milliseconds) == [base + 1000, base + 3000])
    #expect(bench.hub.counters.fixesUnreadable == 1)
  }

  @Test("the same batch again is all duplicates, also where its fixes are history")
  func repeatedBatch() {
    let bench = HubBench()
    let session = bench.connect("d")
    let base = bench.clock
    bench.turn(bench.fix(session, milliseconds: base))
    let fixes = (1...20).map { bench.measured(base - Int64($0) * 1000) }
    #expect(bench.turn(bench.batch(session, fixes)).acks.first?.batch?.accepted == 20)
    let again = bench.turn(bench.batch(session, fixes)).acks.first?.batch
    #expect(again?.accepted == 0 && again?.duplicates == 20)
    bench.turn(bench.fix(session, milliseconds: base - 3000))
    #expect(bench.hub.counters.fixesDuplicate == 21, "on whatever way it comes")
  }

  @Test("past the limit of remembered fix times a repeated old fix counts as history, and the limit is counted")
  func fixTimesLimit() {
    var limits = HubLimits.roomy
    limits.driversWithFixTimes = 1
    let bench = HubBench(limits: limits)
    let base = bench.clock
    for name in ["d1", "d2"] {
      let session = bench.connect(name, slot: name == "d1" ? 1 : 2)
      bench.turn(bench.fix(session, milliseconds: base))
      bench.turn(bench.batch(session, [bench.measured(base - 1000)]))
      let again = bench.turn(bench.batch(session, [bench.measured(base - 1000)])).acks.first?.batch
      #expect(again?.duplicates == (name == "d1" ? 1 : 0))
    }
    #expect(bench.hub.counters.hits(.fixTimes) == 2)
    #expect(bench.hub.drivers.fixTimes.count == 1)
  }

  @Test("past the limit of times for one driver the oldest are not recognised any more, the newest still are")
  func fixTimesOfOneDriver() {
    var limits = HubLimits.roomy
    limits.fixTimesPerDriver = 10
    let bench = HubBench(limits: limits)
    let session = bench.connect("d")
    let base = bench.clock
    let fixes = (0..<30).map { bench.measured(base + Int64($0) * 1000) }
    #expect(bench.turn(bench.batch(session, fixes)).acks.first?.batch?.accepted == 30)
    let again = bench.turn(bench.batch(session, fixes)).acks.first?.batch
    #expect(again?.duplicates == 10)
    #expect(again?.accepted == 20, "as history: nothing is published twice")
    #expect(bench.hub.counters.positionsPublished == 30)
  }

  @Test("a batch that names a foreign trip is refused as a whole")
  func forbiddenBatch() {
    let bench = HubBench()
    let session = bench.connect("d")
    let turn = bench.turn(
      bench.batch(session, trip: "t", granted: false, [bench.measured(1), bench.measured(2), .failure(.badMessage)]))
    #expect(turn.codes == [.forbidden])
    #expect(bench.hub.counters.fixesForbidden == 3)
    #expect(bench.hub.counters.fixesUnreadable == 0)
  }

  @Test("fixes that name a trip for which there is no room are put off, not forbidden, alone and in a batch")
  func noRoomForTrip() {
    var limits = HubLimits.roomy
    limits.trips = 1
    let bench = HubBench(limits: limits)
    bench.turn(bench.move(.rider, "r", "t1", .requested), bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    let turn = bench.turn(bench.fix(session, trip: "t2"))
    #expect(turn.codes == [.storageFull] && turn.positions.isEmpty)
    let batch = bench.turn(bench.batch(session, trip: "t2", [bench.measured(bench.clock + 1000)]))
    #expect(batch.codes == [.storageFull] && batch.positions.isEmpty)
    #expect(bench.hub.counters.fixesForbidden == 0 && bench.hub.counters.fixesPutOff == 2)
  }

  @Test("a batch over HTTP needs no session, and brings a driver online that has none")
  func batchOverHTTP() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    for round in 0..<4 {
      let turn = bench.turn(
        bench.batch(bench.session(slot: 9), driver: "d", [bench.measured(bench.clock)]))
      #expect(turn.acks.first?.batch?.accepted == 1)
      #expect(turn.positions.count == 1)
      #expect(bench.tick(seconds: 50).notifications.isEmpty, "round \(round)")
    }
    // It sends each 50 s: 125 s of silence make it offline.
    #expect(bench.tick(seconds: 73).notifications.isEmpty)
    #expect(bench.tick(seconds: 4).notifications.map(\.kind) == [.driverOffline])
  }
}

extension HubLocationsTests {
  @Test("a first fix of the year 9999 is held back, and does not silence the driver")
  func wrongFirstClock() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    bench.turn(bench.fix(session, milliseconds: 253_402_300_000_000))
    #expect(bench.hub.counters.fixesHeld == 1)
    let turn = bench.turn(bench.fix(session))
    #expect(turn.positions.map(\.timestamp) == [bench.now.timestamp], "the next one, with a sound clock, goes out")
    #expect(bench.hub.counters.fixesAccepted == 1)
  }
}
