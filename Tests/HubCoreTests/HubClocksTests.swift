// A driver's clock that was ahead and is set right, as the driver's app, its followers and a second hub see it.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubClocksTests {
  /// A fix of the phone's time, which is `ahead` ms ahead of `now`.
  private func fix(_ bench: HubBench, _ session: SessionRef, ahead: Int64) -> HubInput {
    bench.fix(session, milliseconds: bench.clock + ahead, sent: bench.clock + ahead + 20)
  }

  @Test("its app is notified with each fix, its followers see times that continue, and the age is that of the fix")
  func followed() throws {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.subscribe(.driver(id("d"))))
    let hours: Int64 = 3 * 3_600_000
    bench.turn(fix(bench, session, ahead: hours))
    var times: [Timestamp] = []
    for _ in 0..<30 {
      bench.advance(seconds: 4)
      times += bench.turn(fix(bench, session, ahead: hours)).positions.map(\.timestamp)
    }
    #expect(times.count >= 29)
    var notices: [HubMessages.Notification.Kind] = []
    for second in stride(from: 4, through: 60, by: 4) {
      bench.advance(seconds: 4)
      let turn = bench.turn(fix(bench, session, ahead: 0))
      #expect(turn.codes == [.implausibleLocation] && turn.positions.isEmpty, "\(second)")
      #expect(turn.errors.first?.message.contains("clock was set back") == true)
      notices += turn.notifications.map(\.kind)
    }
    for _ in 0..<10 {
      bench.advance(seconds: 4)
      let turn = bench.turn(fix(bench, session, ahead: 0))
      #expect(turn.codes.isEmpty)
      let position = try #require(turn.positions.first)
      #expect(position.timeSource == .hub && position.age < 0.1)
      times.append(position.timestamp)
      notices += turn.notifications.map(\.kind)
    }
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    #expect(notices.isEmpty, "the driver was there all the time")
    #expect(bench.hub.counters.clocksBelieved == 1 && bench.hub.counters.fixesBehindClock == 15)
    let snapshot = try #require(bench.turn(bench.subscribe(.driver(id("d")), slot: 81)).subscribed.first)
    #expect(snapshot.answer.snapshot?.position?.timeSource == .hub)
    #expect(snapshot.answer.snapshot?.position?.timestamp == times.last)
  }

  @Test("queries, and ops who watch an area, get whose clock it is")
  func shown() throws {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(fix(bench, session, ahead: 7_200_000))
    bench.advance(seconds: 4)
    bench.turn(fix(bench, session, ahead: 7_200_000))
    for _ in 0...61 {
      bench.advance(seconds: 1)
      bench.turn(fix(bench, session, ahead: 0))
    }
    let report = try #require(bench.report(of: "d"))
    #expect(report.position?.timeSource == .hub)
    #expect((report.position?.timestamp?.milliseconds ?? 0) > bench.clock + 7_000_000)
    #expect((report.position?.age ?? 9) < 1)
  }

  @Test("of a clock that was 40 s ahead and was set right the age is right again after nine minutes")
  func smallCorrection() throws {
    let bench = HubBench()
    let session = bench.connect("d")
    for second in 0..<700 {
      bench.turn(fix(bench, session, ahead: second < 60 ? 40_000 : 0))
      bench.advance(seconds: 1)
    }
    let report = try #require(bench.report(of: "d"))
    #expect(report.position?.timestamp?.milliseconds == bench.clock - 1000 && report.position!.age < 1.1)
  }

  @Test("the hub's own wall clock may be turned as it likes: drivers whose clocks run on are not taken for set back")
  func hubClock() {
    for turned in [Int64(-7_200_000), 7_200_000] {
      var tracker = Tracker()
      for second in 0..<300 as Range<Int64> {
        let milliseconds = 1_763_680_000_000 + second * 1000
        let wall = Timestamp(milliseconds: milliseconds + (second < 150 ? 0 : turned))
        let outcome = tracker.update(
          Fix(coordinate: at(48, 11), timestamp: time(milliseconds)), sent: time(milliseconds),
          receivedAt: second * 1_000_000_000, hubClock: wall)
        #expect(outcome.position?.timeSource == .fix)
      }
    }
  }

  @Test("fixes by the old clock that are sent again are duplicates, and those by the new one are taken once")
  func identity() throws {
    let bench = HubBench()
    let session = bench.connect("d")
    var old: [Int64] = []
    for _ in 0..<10 {
      bench.advance(seconds: 1)
      old.append(bench.clock + 7_200_000)
      bench.turn(fix(bench, session, ahead: 7_200_000))
    }
    bench.turn(bench.batch(session, [bench.measured(old[9] - 500)]))  // from here on times are remembered
    var new: [Int64] = []
    for _ in 0..<70 {
      bench.advance(seconds: 1)
      new.append(bench.clock)
      bench.turn(fix(bench, session, ahead: 0))
    }
    let again = bench.turn(bench.batch(session, new.suffix(20).map { bench.measured($0) }))
    #expect(again.acks.first?.batch?.duplicates == 20 && again.positions.isEmpty)
    let late = bench.turn(bench.batch(session, [bench.measured(old[9])]))
    #expect(late.acks.first?.batch?.duplicates == 1 && late.positions.isEmpty)
  }

  @Test("a driver that was offline is online with its first fix by the new clock, at its newest position")
  func backOnline() throws {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.subscribe(.driver(id("d"))))
    bench.turn(fix(bench, session, ahead: 3_600_000))
    bench.advance(seconds: 4)
    bench.turn(fix(bench, session, ahead: 3_600_000))
    #expect(bench.tick(seconds: 62).notifications.map(\.kind) == [.driverOffline])
    #expect(bench.nearby(at(52.52, 13.405), radiusMeters: 500)?.count == 0)
    let back = bench.turn(fix(bench, session, ahead: 0))
    #expect(back.codes == [.implausibleLocation] && back.notifications.map(\.kind) == [.driverOnline])
    #expect(bench.report(of: "d")?.isOnline == true && bench.hub.shownCounters().driversOnline == 1)
    #expect(bench.nearby(at(52.52, 13.405), radiusMeters: 500)?.count == 1)
    #expect(bench.tick(seconds: 58).notifications.isEmpty)
    #expect(bench.tick(seconds: 4).notifications.map(\.kind) == [.driverOffline])
  }

  @Test("stays in fences continue: a long one is published when due, speeding again after a minute, and its length")
  func stays() throws {
    let bench = HubBench()
    let session = bench.connect("d")
    let start = at(52.52, 13.405)
    bench.turn(.put(circle("F", start, 5000, dwell: 300, speedLimit: 8)))
    bench.turn(bench.subscribe(.fence(id("F"))))
    var meters = 0.0
    func drive(_ seconds: Int, speed: Double, ahead: Int64) -> [HubMessages.Notification] {
      var all: [HubOutput] = []
      for _ in 0..<seconds {
        let time = bench.clock + ahead
        let place = start.moved(90, meters)
        all += bench.turn(bench.fix(session, at: place, speed: speed, heading: 90, milliseconds: time, sent: time)).all
        bench.advance(seconds: 1)
        meters += speed
      }
      return all.events(on: .fence(id("F")))
    }
    #expect(drive(100, speed: 12, ahead: 10_800_000).kinds == ["fence_enter", "speeding"])
    #expect(drive(150, speed: 5, ahead: 0).isEmpty)
    #expect(bench.hub.counters.clocksBelieved == 1)
    #expect(drive(40, speed: 12, ahead: 0).kinds == ["speeding"])
    let long = drive(15, speed: 5, ahead: 0)
    #expect(long.kinds == ["fence_dwell"] && long.first?.fence?.duration == 300)
    bench.turn(.put(circle("F", start.moved(0, 50_000), 300)))
    let left = drive(1, speed: 5, ahead: 0)
    #expect(left.kinds == ["fence_exit"] && left.first?.fence?.duration == 305)
  }

  @Test("a driver that stands at its target when its clock is set back is there after 15 s more")
  func target() {
    let place = at(48, 11)
    var leg = ActiveLeg(target: .pickup, place: UnitVector(place), route: nil, start: place, startMeters: 0)
    let (day, rules) = (Int64(86_400_000), TripRules())
    #expect(leg.dwells(10, at: time(2 * day), rules: rules) == false)
    for second in 0..<15 as Range<Int64> {
      #expect(leg.dwells(10, at: time(day + second * 1000), rules: rules) == false, "\(second)")
    }
    #expect(leg.dwells(10, at: time(day + 15_000), rules: rules) == true)
  }

  @Test("a hub's wall clock that is set forward makes no position older, of drivers that send and of those that wait")
  func setForward() throws {
    let bench = try DurableBench(startsEpoch: true)
    bench.connect()
    followed(bench)
    _ = drive(bench, seconds: 10, ahead: 0)
    bench.wallIsAhead += 3_600_000
    #expect(try #require(bench.report()?.position?.age) < 0.1)
    let positions = drive(bench, seconds: 10, ahead: -3_600_000).positions
    #expect(positions.count == 10 && positions.allSatisfy { $0.age < 0.1 })
    bench.wallIsAhead -= 3_600_000
    #expect(drive(bench, seconds: 10, ahead: 0).positions.allSatisfy { $0.age < 0.1 })
  }

  // MARK: Over a restart

  /// A live fix of the phone's clock, which is `ahead` ms ahead of the hub's.
  private func fix(_ bench: DurableBench, ahead: Int64) -> HubInput {
    .fix(
      FixInput(
        session: DurableBench.session, messageID: bench.freshMessage(), sent: time(bench.clock + ahead),
        received: bench.now,
        update: LocationUpdate(fix: Fix(coordinate: at(52.5, 13.4), timestamp: time(bench.clock + ahead), accuracy: 5)),
        tripIsGranted: true))
  }

  private func drive(_ bench: DurableBench, seconds: Int, ahead: Int64) -> Turn {
    var all: [HubOutput] = []
    for _ in 0..<seconds {
      bench.advance(seconds: 1)
      all += bench.turn([fix(bench, ahead: ahead)])
      all += bench.store()
    }
    return Turn(loops: [all])
  }

  private func followed(_ bench: DurableBench) {
    bench.turn([
      .subscribe(
        SubscribeInput(
          session: SessionRef(outlet: 0, slot: 80, generation: 1), actor: Actor(role: .ops, id: id("o")),
          messageID: bench.freshMessage(), request: Subscribe(channel: .driver(id("D"))), grant: .granted))
    ])
  }

  @Test(
    "after a restart times go on from what was published, out of the records and out of a snapshot",
    arguments: [false, true])
  func restarted(fromSnapshot: Bool) throws {
    let first = try DurableBench(startsEpoch: true)
    first.connect()
    followed(first)
    var times = drive(first, seconds: 30, ahead: 10_800_000).positions.map(\.timestamp)
    times += drive(first, seconds: 100, ahead: 0).positions.map(\.timestamp)
    #expect(times.count > 60)
    var records = first.submitted
    if fromSnapshot {
      records = []
      first.hub.writeSnapshot(partBytes: 500) { records.append(Array($0)) }
    }
    let second = try DurableBench(reading: records, uptime: 9_000_000_000)
    // Its clock continues where the first one's is.
    second.advance(seconds: Double(first.clock - second.clock) / 1000)
    second.turn([])
    second.connect()
    followed(second)
    second.store()
    let after = drive(second, seconds: 50, ahead: 0)
    #expect(after.codes.isEmpty)
    #expect(after.positions.count == 50 && after.positions.allSatisfy { $0.timeSource == .hub })
    times += after.positions.map(\.timestamp)
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    #expect(second.storedThrough() == second.clock, "by the phone's own times")
  }

  @Test("a clock that is set right while the hub is away is doubted and followed as if it had not been")
  func setRightMeanwhile() throws {
    let first = try DurableBench(startsEpoch: true)
    first.connect()
    _ = drive(first, seconds: 30, ahead: 10_800_000)
    let second = try DurableBench(reading: first.submitted, uptime: 9_000_000_000)
    second.advance(seconds: Double(first.clock - second.clock) / 1000)
    second.turn([])
    second.connect()
    followed(second)
    let doubted = drive(second, seconds: 60, ahead: 0)
    #expect(doubted.codes == Array(repeating: .implausibleLocation, count: 60) && doubted.positions.isEmpty)
    let believed = drive(second, seconds: 10, ahead: 0)
    #expect(believed.codes.isEmpty && believed.positions.count == 10)
    #expect(believed.positions.allSatisfy { $0.timestamp.milliseconds > first.clock + 10_800_000 })
  }

  @Test("a stay by the old clock is of the new one after a restart, too", arguments: [false, true])
  func stayRestarted(fromSnapshot: Bool) throws {
    let first = try DurableBench(startsEpoch: true)
    first.turn([.put(circle("F", at(52.5, 13.4), 300, dwell: 200))])
    first.connect()
    _ = drive(first, seconds: 30, ahead: 10_800_000)
    _ = drive(first, seconds: 100, ahead: 0)
    let second = try first.restarted(after: 0, fromSnapshot: fromSnapshot)
    #expect(try second.state() == first.state())
    second.connect()
    second.watch(.fence(id("F")))
    #expect(drive(second, seconds: 70, ahead: 0).notifications.isEmpty)
    let long = drive(second, seconds: 1, ahead: 0).notifications
    #expect(long.map(\.kind) == [.fenceDwell] && long.first?.fence?.duration == 200)
  }

  @Test("a pair that a driver began by its old clock is as old by the new one, also after a restart")
  func pairRestarted() throws {
    let bench = try DurableBench(startsEpoch: true)
    bench.turn([.put(roaming("R", 100))])
    bench.connect()
    let other = SessionRef(outlet: 0, slot: 5, generation: 1)
    bench.turn([.driverConnecting(other, id("B"))])
    let start = bench.clock
    for second in 0..<130 {
      bench.advance(seconds: 1)
      let fixOfOther = FixInput(
        session: other, messageID: bench.freshMessage(), sent: bench.now.timestamp, received: bench.now,
        update: LocationUpdate(fix: Fix(coordinate: at(52.5, 13.4), timestamp: bench.now.timestamp, accuracy: 5)),
        tripIsGranted: false)
      bench.turn([.fix(fixOfOther), fix(bench, ahead: second < 30 ? 10_800_000 : 0)])
      bench.store()
    }
    #expect(bench.hub.counters.clocksBelieved == 1)
    let pairs = try bench.state().compactMap { if case .pair(let pair) = $0 { pair } else { nil } }
    let pair = try #require(pairs.first)
    #expect(pairs.count == 1 && pair.driverID == id("D") && abs(pair.entered.milliseconds - start) < 3000)
    let second = try bench.restarted(after: 0)
    #expect(try second.state() == bench.state())
  }

  @Test("a driver whose clock was set back while it was offline is online after a restart, and that is published once")
  func backOnlineRestarted() throws {
    let first = try DurableBench(startsEpoch: true)
    first.watch(.driver(id("D")))
    first.connect()
    _ = drive(first, seconds: 3, ahead: 10_800_000)
    #expect(first.tick(62).map(\.kind) == [.driverOffline])
    #expect(drive(first, seconds: 1, ahead: 0).notifications.map(\.kind) == [.driverOnline])
    let second = try first.restarted(after: 1)
    #expect(second.report()?.isOnline == true)
    second.watch(.driver(id("D")))
    second.connect()
    #expect(drive(second, seconds: 1, ahead: 0).notifications.isEmpty)
  }
}
