// Drivers: sessions that replace each other, presence, and how a driver is forgotten.
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubDriversTests {
  // MARK: Sessions

  @Test("a newer session of the same driver takes over; what the older one still sends is nobody's")
  func replaced() {
    let bench = HubBench(loops: 2)
    let old = bench.connect("d", slot: 4)
    let new = bench.session(loop: 1, slot: 9)
    let turn = bench.turn(.driverConnecting(new, id("d")))
    #expect(turn.replaced == [old])
    #expect(turn.admitted == 1)
    let late = bench.turn(bench.fix(old), bench.batch(old, [bench.measured(1), bench.measured(2)]))
    #expect(late.all.isEmpty)
    #expect(bench.hub.counters.fixesOrphaned == 3)
    bench.turn(.driverDisconnected(old))
    #expect(bench.turn(bench.fix(new)).errors.isEmpty)
    #expect(bench.hub.counters.fixesAccepted == 1, "the old session's end does not end the new one")
  }

  @Test("more than 3 replacements in 60 s: the newcomer is refused for 30 s and the session that is there stays")
  func conflict() {
    let bench = HubBench()
    _ = bench.connect("d", slot: 0)
    for slot in 1...3 as ClosedRange<UInt32> { _ = bench.connect("d", slot: slot) }
    #expect(bench.turn(.driverConnecting(bench.session(slot: 4), id("d"))).conflicts == [30])
    bench.tick(seconds: 10)
    #expect(bench.turn(.driverConnecting(bench.session(slot: 5), id("d"))).conflicts == [20])
    let index = bench.hub.drivers.find(id("d"))!
    #expect(bench.hub.drivers[index].session?.slot == 3)
    bench.tick(seconds: 20)
    _ = bench.connect("d", slot: 6)
    #expect(bench.hub.counters.replacements == 4)
  }

  @Test("a client that connects again has 2 s before its older session is closed; in the meantime that takes no fixes")
  func takeover() {
    let bench = HubBench(loops: 2)
    let old = bench.connect("d", slot: 4, client: 7)
    let new = bench.session(loop: 1, slot: 9)
    #expect(bench.turn(.driverConnecting(new, id("d"), client: 7)).replaced.isEmpty)
    let status = HubInput.driverStatus(old, message("s"), DriverStatusReport(status: .unavailable))
    let late = bench.turn(bench.fix(old), bench.batch(old, [bench.measured(1)]), status)
    #expect(late.codes == [.rateLimited, .rateLimited, .rateLimited])
    #expect(late.errors.allSatisfy { $0.retryAfter == 2 && $0.replyTo != nil })
    #expect(bench.hub.counters.fixesOrphaned == 2 && bench.hub.drivers[0].status == .available)
    #expect(bench.turn(bench.fix(new)).errors.isEmpty && bench.hub.counters.fixesAccepted == 1)
    #expect(bench.pass(seconds: 1.9).replaced.isEmpty)
    let received = bench.pass(seconds: 1.1)
    #expect(received.replaced == [old] && received.replacedAgain.isEmpty)
    #expect(bench.turn(bench.fix(old)).all.isEmpty, "it was closed")
    bench.turn(.driverDisconnected(old))
    #expect(bench.turn(bench.fix(new)).errors.isEmpty)
  }

  @Test("of two sessions of a client the one that stays open speaks for the driver, whichever it closes")
  func closesOne() {
    for closesNewer in [false, true] {
      let bench = HubBench()
      let old = bench.connect("d", slot: 1, client: 7)
      let new = bench.connect("d", slot: 2, client: 7)
      bench.turn(.driverDisconnected(closesNewer ? new : old))
      #expect(bench.turn(bench.fix(closesNewer ? old : new)).errors.isEmpty)
      #expect(bench.hub.counters.fixesAccepted == 1)
      #expect(bench.tick(seconds: 5).replaced.isEmpty, "no session is left to be closed")
      bench.turn(.driverDisconnected(closesNewer ? old : new))
      #expect(bench.hub.drivers[0].session == nil)
    }
  }

  @Test("a client's own replacements do not count towards 409, those of another client do")
  func ownReplacements() {
    let bench = HubBench()
    for slot in 0...9 as ClosedRange<UInt32> { _ = bench.connect("d", slot: slot, client: 7) }
    for slot in 10...12 as ClosedRange<UInt32> { _ = bench.connect("d", slot: slot, client: slot) }
    #expect(bench.turn(.driverConnecting(bench.session(slot: 13), id("d"), client: 13)).conflicts == [30])
    _ = bench.connect("d", slot: 14, client: 12)
    let replaced = bench.tick(seconds: 4).replaced.map(\.slot)
    #expect(Set(replaced) == Set(0...8).union([12]), "all but those that another client replaced at once")
  }

  @Test("a client that comes again within 60 s of a 4409 is closed with 1000 from then on; later with 4409 again")
  func comesAgain() {
    let bench = HubBench()
    _ = bench.connect("d", slot: 0, client: 7)
    for (slot, pause) in [(1, 30), (2, 50), (3, 30), (4, 70)] {
      _ = bench.connect("d", slot: UInt32(slot), client: 7)
      let received = bench.tick(seconds: 4)
      #expect(received.replaced.map(\.slot) == [UInt32(slot - 1)])
      #expect(received.replacedAgain.isEmpty == (slot == 1), "\(slot)")
      bench.tick(seconds: pause)
    }
    #expect(bench.hub.drivers.sessions.overlaps.isEmpty)
    _ = bench.connect("d", slot: 5, client: 7)
    #expect(bench.tick(seconds: 4).replacedAgain.isEmpty)
  }

  @Test("sessions of a client that began before its 4409 are closed with 4409, too: it has not come again after it")
  func beganBefore() {
    let bench = HubBench()
    for slot in 0...2 as ClosedRange<UInt32> {
      _ = bench.connect("d", slot: slot, client: 7)
      bench.advance(seconds: 0.5)
    }
    let received = bench.tick(seconds: 6)
    #expect(received.replaced.map(\.slot) == [0, 1] && received.replacedAgain.isEmpty)
  }

  @Test("so is one that comes again after a 4409 for a session at another hub; other clients and later ones are not")
  func comesAgainAcrossHubs() {
    let bench = HubBench(loops: 2)
    bench.hub.joinCluster(outlet: 1)
    for (number, (client, pause, isAgain)) in [
      (7, 30, false), (7, 40, true), (8, 10, false), (7, 30, false), (7, 70, true), (7, 1, false), (0, 1, false),
      (0, 1, false),
    ].enumerated() {
      let session = bench.connect("d", slot: UInt32(number), client: UInt32(client))
      let received = bench.turn(.cluster(.driverElsewhere(id("d"), arrival: UInt16(number + 1))))
      #expect(received.replaced == [session] && received.replacedAgain == (isAgain ? [session] : []), "\(number)")
      bench.tick(seconds: pause)
    }
  }

  @Test("a session that ended makes way without counting as a replacement")
  func reconnects() {
    let bench = HubBench()
    for _ in 0..<10 {
      let session = bench.connect("d")
      bench.turn(.driverDisconnected(session))
    }
    #expect(bench.hub.counters.replacements == 0)
  }

  @Test("a slot that another connection took over does not speak for the driver before it")
  func slotReuse() {
    let bench = HubBench()
    let first = bench.connect("d1", slot: 7)
    bench.turn(.driverDisconnected(first))
    let second = bench.connect("d2", slot: 7)
    bench.turn(bench.fix(first), bench.fix(second))
    #expect(bench.hub.counters.fixesOrphaned == 1)
    #expect(bench.hub.drivers[bench.hub.drivers.find(id("d1"))!].position == nil)
    #expect(bench.hub.drivers[bench.hub.drivers.find(id("d2"))!].position != nil)
  }

  @Test("at the limit of drivers a newcomer gets the error that the hub is full, and a known driver still connects")
  func full() {
    var limits = HubLimits.roomy
    limits.drivers = 2
    let bench = HubBench(limits: limits)
    let first = bench.connect("d1", slot: 1)
    _ = bench.connect("d2", slot: 2)
    #expect(bench.turn(.driverConnecting(bench.session(slot: 3), id("d3"))).full == 1)
    let overHTTP = bench.turn(bench.batch(bench.session(slot: 4), driver: "d4", [bench.measured(bench.clock)]))
    #expect(overHTTP.codes == [.rateLimited])
    #expect(overHTTP.errors.first?.retryAfter == 60)
    #expect(bench.hub.counters.fixesOrphaned == 1)
    bench.turn(.driverDisconnected(first))
    _ = bench.connect("d1", slot: 5)
    #expect(bench.hub.counters.hits(.drivers) == 2)
  }

  @Test("driver_status is acked and shows in queries; the pong says through which fix everything came")
  func statusAndPong() {
    let bench = HubBench()
    let session = bench.connect("d")
    #expect(bench.turn(.driverStatus(session, message("s"), DriverStatusReport(status: .unavailable))).acks.count == 1)
    bench.turn(bench.fix(session, milliseconds: 77_000))
    let turn = bench.turn(.ping(session, message("p"), Ping()), .query(session, .driver(id("d"))))
    guard case .pong(let pong) = turn.replies.first else {
      Issue.record("no pong")
      return
    }
    #expect(pong.storedThrough == time(77_000))
    #expect(pong.replyTo == message("p"))
    guard case .queryResult(_, .driver(let report), nil) = turn.all.last else {
      Issue.record("no report")
      return
    }
    #expect(report.status == .unavailable && report.isOnline == true && report.position?.timestamp == time(77_000))
  }

  // MARK: Presence

  @Test("a driver is offline 60 s after its session went, and online again with its next fix")
  func offlineAndOnline() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")), bench.subscribe(bench.trip("t")))
    var session = bench.connect("d")
    bench.turn(bench.fix(session, trip: "t"))
    bench.turn(.driverDisconnected(session))
    #expect(bench.tick(seconds: 59).notifications.isEmpty)
    let offline = bench.tick(seconds: 3)
    #expect(offline.notifications.map(\.kind) == [.driverOffline, .driverOffline])
    #expect(Set(offline.deliveries.map(\.publication.channel)) == [bench.driver("d"), bench.trip("t")])
    #expect(offline.notifications.allSatisfy { $0.driverID == id("d") })
    #expect(bench.hub.shownCounters().driversOnline == 0)
    session = bench.connect("d")
    #expect(bench.hub.shownCounters().driversOnline == 0, "a session without a fix shows nobody where the driver is")
    let online = bench.turn(bench.fix(session, trip: "t"))
    #expect(online.notifications.map(\.kind) == [.driverOnline, .driverOnline])
    #expect(bench.hub.shownCounters().driversOnline == 1)
  }

  @Test("a fix that comes in the same turn as its session's end came by the session: 60 s later the driver is offline")
  func lastFix() {
    let bench = HubBench(sampling: SamplingRules())
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    bench.turn(.driverStatus(session, bench.freshMessage(), DriverStatusReport(status: .background)))
    bench.turn(bench.fix(session), .driverDisconnected(session))
    #expect(!bench.hub.drivers[0].isReachable)
    #expect(bench.tick(seconds: 59).notifications.isEmpty)
    #expect(bench.tick(seconds: 3).notifications.map(\.kind) == [.driverOffline])
  }

  @Test("a driver that comes back again and again without a fix is offline in the end")
  func withoutFixes() {
    let bench = HubBench(sampling: SamplingRules())
    bench.turn(bench.subscribe(bench.driver("d")))
    bench.turn(bench.fix(bench.connect("d")))
    var kinds: [Notification.Kind] = []
    for _ in 0..<8 {
      kinds += bench.tick(seconds: 50).notifications.map(\.kind)
      _ = bench.connect("d")
    }
    #expect(kinds == [.driverOffline])
  }

  @Test("a trip is told only of the driver that serves it, whoever has named it before")
  func presenceOfOthers() {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "r", "t", .requested), bench.subscribe(bench.trip("t")))
    let session = bench.connect("other")
    bench.turn(bench.fix(session, trip: "t"))
    bench.turn(bench.move(.driver, "d", "t", .accepted), .driverDisconnected(session))
    #expect(bench.tick(seconds: 62).notifications.isEmpty)
  }

  @Test("a hub that was stalled calls nobody offline whom it could not hear", arguments: [true, false])
  func stall(isConnected: Bool) {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    bench.turn(bench.fix(session))
    if !isConnected { bench.turn(.driverDisconnected(session)) }
    bench.tick(seconds: 30)
    bench.skip(seconds: 3600)
    #expect(bench.turn(.loopStalled).notifications.isEmpty)
    #expect(bench.tick(seconds: 59).notifications.isEmpty)
    #expect(bench.tick(seconds: 3).notifications.map(\.kind) == [.driverOffline])
  }

  @Test("a driver that came back goes offline again as promptly as the first time", arguments: [2, 5])
  func flapping(rounds: Int) {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    for round in 0..<rounds {
      let online = bench.turn(bench.fix(session))
      #expect(online.notifications.map(\.kind) == (round == 0 ? [] : [.driverOnline]))
      #expect(bench.tick(seconds: 62).notifications.map(\.kind) == [.driverOffline], "round \(round)")
      #expect(bench.hub.deadlines.count <= 2, "what is armed does not grow with the rounds")
    }
  }

  @Test("silence makes a driver stale though its session is there")
  func silence() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    let session = bench.connect("d")
    for _ in 0..<6 {
      bench.turn(bench.fix(session))
      #expect(bench.tick(seconds: 30).notifications.isEmpty)
    }
    #expect(bench.tick(seconds: 32).notifications.map(\.kind) == [.driverOffline])
  }

  @Test("a stale driver is not found nearby, and is again after its next fix")
  func notNearby() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.fix(session))
    func found() -> Int {
      bench.nearby(at(52.52, 13.405), radiusMeters: 500, limit: 10)?.count ?? -1
    }
    #expect(found() == 1)
    bench.tick(seconds: 62)
    #expect(found() == 0)
    bench.turn(bench.fix(session))
    #expect(found() == 1)
  }

  @Test("an offline event of a trip that has ended stays on the driver's channel")
  func endedTrip() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")))
    let session = bench.connect("d")
    bench.turn(bench.fix(session, trip: "t"))
    bench.turn(bench.move(.driver, "d", "t", .cancelled))
    #expect(bench.tick(seconds: 65).notifications.isEmpty)
  }

  // MARK: Forgetting

  @Test("a driver that is gone is forgotten after the retention, and a driver with a session never")
  func forgotten() {
    let bench = HubBench()
    let staying = bench.connect("stays", slot: 1)
    let going = bench.connect("goes", slot: 2)
    bench.turn(bench.fix(staying), bench.fix(going))
    bench.turn(.driverDisconnected(going))
    bench.tick(seconds: 62)
    bench.pass(seconds: 86_400 - 70)
    #expect(bench.hub.shownCounters().entries(.drivers) == 2)
    bench.tick(seconds: 12)
    #expect(bench.hub.shownCounters().entries(.drivers) == 1)
    #expect(bench.hub.drivers.find(id("goes")) == nil)
    for _ in 0..<5 { bench.pass(seconds: 86_400) }
    #expect(bench.hub.drivers.find(id("stays")) != nil)
    bench.turn(.driverDisconnected(staying))
    bench.pass(seconds: 86_400 + 2)
    #expect(bench.hub.shownCounters().entries(.drivers) == 0)
  }

  @Test("a driver with a trip that continues is not forgotten")
  func heldByTrip() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.fix(session, trip: "t"))
    bench.turn(.driverDisconnected(session))
    for step in [TripStatus.driverEnRoute, .arrivedPickup, .tripStarted] {
      bench.pass(seconds: 80_000)
      bench.turn(bench.move(.ops, "o", "t", step))
    }
    #expect(bench.hub.shownCounters().entries(.drivers) == 1)
    bench.turn(bench.move(.ops, "o", "t", .cancelled))
    for _ in 0..<3 { bench.pass(seconds: 86_400) }
    #expect(bench.hub.shownCounters().entries(.drivers) == 0)
    #expect(bench.hub.shownCounters().entries(.trips) == 0)
  }

  @Test("when very many deadlines come at once the hub takes some a turn, and says that it has more")
  func manyDeadlines() {
    let bench = HubBench()
    for number in 0..<600 { bench.turn(bench.batch(bench.session(slot: 0), driver: "d\(number)", [])) }
    #expect(bench.hub.shownCounters().driversOnline == 600 && !bench.hub.hasMoreDue)
    bench.pass(seconds: 70)
    let left = bench.hub.shownCounters().driversOnline
    #expect(left > 0 && left < 600 && bench.hub.hasMoreDue)
    for _ in 0..<10 { bench.turn([]) }
    #expect(bench.hub.shownCounters().driversOnline == 0 && !bench.hub.hasMoreDue)
  }

  @Test("when everything has ended nothing is left in any table")
  func nothingLeft() {
    let bench = HubBench(loops: 2)
    var handles: [(UInt32, ChannelHandle)] = []
    var sessions: [SessionRef] = []
    for number in 0..<20 {
      let name = "d\(number)"
      let loop = UInt32(number % 2)
      for channel in [bench.trip("t\(number)"), bench.driver(name), .fleet] {
        let turn = bench.turn(bench.subscribe(channel, loop: loop, slot: UInt32(100 + number)))
        handles.append((loop, turn.subscribed[0].handle))
      }
      let session = bench.connect(name, slot: UInt32(number), loop: loop)
      sessions.append(session)
      bench.turn(bench.fix(session, trip: "t\(number)"), bench.batch(session, [bench.measured(bench.clock + 1)]))
    }
    #expect(bench.hub.shownCounters().entries(.channels) == 41)
    #expect(bench.hub.drivers.fixTimes.count == 20)
    for number in 0..<20 { bench.turn(bench.move(.ops, "o", "t\(number)", .cancelled)) }
    for session in sessions { bench.turn(.driverDisconnected(session)) }
    for (loop, handle) in handles { bench.turn(.released(outlet: loop, handle)) }
    for _ in 0..<3 { bench.pass(seconds: 86_400) }
    let counters = bench.hub.shownCounters()
    #expect(counters.entries(.drivers) == 0 && counters.driversOnline == 0 && counters.entries(.trips) == 0)
    #expect(counters.entries(.channels) == 0 && counters.entries(.events) == 0)
    #expect(bench.hub.drivers.count == 0 && bench.hub.trips.count == 0)
    #expect(bench.hub.deadlines.count == 0 && bench.hub.drivers.fixTimes.count == 0)
    #expect(bench.hub.drivers.index.count == 0)
  }
}
