// Events of a driver and a fence, and their receivers.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct FenceTests {
  let center = at(48.137, 11.575)

  @Test(
    "A driver that drives through a fence enters and leaves it once, on the fence's, driver's and trip's channels")
  func through() throws {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 300)))
    bench.turn(
      bench.subscribe(bench.channel("F")), bench.subscribe(bench.driver("D")), bench.subscribe(bench.trip("T")))
    let out = bench.drive(
      driver, from: center.moved(270, 600), to: center.moved(90, 600), trip: "T")
    for channel in [bench.channel("F"), bench.driver("D"), bench.trip("T")] {
      let events = out.events(on: channel)
      #expect(events.kinds == ["fence_enter", "fence_exit"], "\(channel)")
      #expect(events.allSatisfy { $0.driverID == id("D") && $0.fence?.fenceID == id("F") })
    }
    let events = out.events(on: bench.channel("F"))
    #expect(events.map(\.sequence) == [1, 2])
    let (enter, exit) = (try #require(events[0].fence), try #require(events[1].fence))
    let entered = try #require(enter.location)
    let left = try #require(exit.location)
    #expect((280...300).contains(entered.distance(to: center)))
    // 10 % of 300 m outside.
    #expect((330...345).contains(left.distance(to: center)))
    #expect(exit.duration == exit.timestamp.seconds(since: enter.timestamp))
    #expect(exit.reason == nil)
  }

  @Test("Events may be recovered with since, on the fence's channel too")
  func resume() throws {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 300)))
    _ = bench.drive(driver, from: center.moved(270, 600), to: center.moved(90, 600))
    let answer = try #require(bench.turn(bench.subscribe(bench.channel("F"), since: 0)).subscribed.first)
    #expect(answer.answer.recovered && answer.answer.sequence == 2)
    #expect(answer.missed.compactMap(\.notification).kinds == ["fence_enter", "fence_exit"])
    let second = try #require(bench.turn(bench.subscribe(bench.channel("F"), since: 1, slot: 81)).subscribed.first)
    #expect(second.missed.compactMap(\.notification).kinds == ["fence_exit"])
  }

  @Test("A driver parked on the line makes one event, however noisy its fixes are")
  func parked() {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 100)))
    bench.turn(bench.subscribe(bench.channel("F")))
    var random = SplitMix64(seed: 3)
    var out: [HubOutput] = []
    let line = center.moved(0, 100)
    for _ in 0..<2000 {
      let place = line.moved(.random(in: 0..<360, using: &random), .random(in: 0...12, using: &random))
      out += bench.turn(bench.fix(driver, at: place, accuracy: 10, speed: 0)).all
      bench.advance(seconds: 2)
    }
    #expect(out.events(on: bench.channel("F")).kinds == ["fence_enter"])
  }

  @Test("A position of poor accuracy decides nothing, and history decides nothing")
  func gate() {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 300)))
    bench.turn(bench.subscribe(bench.channel("F")))
    #expect(bench.turn(bench.fix(driver, at: center, accuracy: 90)).all.events(on: bench.channel("F")).isEmpty)
    bench.advance(seconds: 1)
    let far = center.moved(0, 3000)
    let other = bench.connect("E", slot: 1)
    bench.turn(bench.fix(other, at: far))
    let old = bench.clock - 60_000
    #expect(
      bench.turn(bench.fix(other, at: center, milliseconds: old)).all.events(on: bench.channel("F")).isEmpty)
    #expect(bench.hub.counters.fixesHistory == 1)
    let enter = bench.drive(driver, from: center, to: center.moved(0, 50), accuracy: 5)
    #expect(enter.events(on: bench.channel("F")).kinds == ["fence_enter"])
  }

  @Test("A long stay is published once, when it has become long")
  func dwell() throws {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 300, dwell: 60)))
    bench.turn(bench.subscribe(bench.channel("F")))
    let early = bench.stand(driver, at: center, seconds: 60)
    #expect(early.events(on: bench.channel("F")).kinds == ["fence_enter"])
    let late = bench.stand(driver, at: center, seconds: 300).events(on: bench.channel("F"))
    #expect(late.kinds == ["fence_dwell"])
    #expect(late.first?.fence?.duration == 60)
    _ = bench.drive(driver, from: center, to: center.moved(0, 500))
    let again = bench.drive(driver, from: center.moved(0, 500), to: center)
    #expect(again.events(on: bench.channel("F")).kinds == ["fence_enter"])
    #expect(bench.stand(driver, at: center, seconds: 70).events(on: bench.channel("F")).kinds == ["fence_dwell"])
  }

  @Test("A fence for some drivers publishes these only, and lets go who is no longer one of them")
  func filtered() throws {
    let bench = HubBench()
    let (van, bus) = (bench.connect("V"), bench.connect("B", slot: 1))
    let word = message("van").text
    bench.turn(
      .put(circle("F", center, 300, drivers: FenceFilter(status: .available, tags: [word]))),
      .driverStatus(van, message("s1"), DriverStatusReport(status: .available, tags: [word])))
    bench.turn(bench.subscribe(bench.channel("F")))
    let first = bench.stand(van, at: center, seconds: 2) + bench.stand(bus, at: center, seconds: 2)
    #expect(first.events(on: bench.channel("F")).map(\.driverID) == [id("V")])
    bench.turn(.driverStatus(van, message("s2"), DriverStatusReport(status: .unavailable)))
    let exits = bench.stand(van, at: center, seconds: 3).events(on: bench.channel("F"))
    #expect(exits.kinds == ["fence_exit"] && exits.first?.fence?.reason == .filter)
    bench.turn(.driverStatus(van, message("s3"), DriverStatusReport(status: .available)))
    #expect(bench.stand(van, at: center, seconds: 3).events(on: bench.channel("F")).kinds == ["fence_enter"])
  }

  @Test("A driver that goes offline inside stays inside; when it is forgotten the fence's followers hear of it")
  func offline() throws {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 300)))
    bench.turn(bench.subscribe(bench.channel("F")))
    _ = bench.stand(driver, at: center, seconds: 2)
    bench.turn(.driverDisconnected(driver))
    let offline = bench.tick(seconds: 200)
    #expect(offline.all.events(on: bench.channel("F")).isEmpty)
    var back = bench.connect("D")
    #expect(bench.stand(back, at: center, seconds: 2).events(on: bench.channel("F")).isEmpty)
    bench.turn(.driverDisconnected(back))
    bench.tick(seconds: 200)
    let gone = (0..<30).flatMap { _ in bench.pass(seconds: 86_400).all }.events(on: bench.channel("F"))
    #expect(gone.kinds == ["fence_exit"] && gone.first?.fence?.reason == .forgotten)
    #expect(bench.hub.shownCounters().entries(.drivers) == 0 && bench.hub.fences.stays.count == 0)
    back = bench.connect("D")
    #expect(bench.stand(back, at: center, seconds: 2).events(on: bench.channel("F")).kinds == ["fence_enter"])
  }

  @Test("Deleting a fence notifies its followers and makes no exits; a new one of its name begins empty")
  func deleted() throws {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 300)))
    bench.turn(bench.subscribe(bench.channel("F")), bench.subscribe(bench.driver("D")))
    _ = bench.stand(driver, at: center, seconds: 2)
    let gone = bench.turn(.ask(.delete(id("F")))).all
    #expect(gone.events(on: bench.channel("F")).kinds == ["message"])
    #expect(gone.fenceAnswers.first?.isDeleted == true)
    #expect(bench.stand(driver, at: center, seconds: 3).events(on: bench.driver("D")).isEmpty)
    let left = bench.hub.fences.stays.count
    #expect(left <= 1)
    let new = bench.turn(.put(circle("F", center, 400))).all.fenceAnswers.first
    #expect(new?.isNew == true && new?.report?.inside == 0)
    #expect(bench.stand(driver, at: center, seconds: 3).events(on: bench.driver("D")).kinds == ["fence_enter"])
    let stays = bench.hub.fences.stays.count
    #expect(stays == 1)
    #expect(bench.turn(.ask(.delete(id("G")))).all.fenceAnswers.first?.isUnknown == true)
  }

  @Test("Who is in a fence that is put anew elsewhere leaves with the next position, and nobody enters twice")
  func replaced() {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 300)))
    bench.turn(bench.subscribe(bench.channel("F")))
    _ = bench.stand(driver, at: center, seconds: 2)
    let larger = bench.turn(.put(circle("F", center, 500))).all
    #expect(larger.fenceAnswers.first?.isNew == false && larger.fenceAnswers.first?.report?.inside == 1)
    #expect(larger.events(on: bench.channel("F")).isEmpty)
    #expect(bench.stand(driver, at: center, seconds: 3).events(on: bench.channel("F")).isEmpty)
    bench.turn(.put(circle("F", center.moved(0, 5000), 300)))
    #expect(bench.stand(driver, at: center, seconds: 3).events(on: bench.channel("F")).kinds == ["fence_exit"])
  }

  @Test("A hazard warns the driver when it comes into it, and the fence is published as any other")
  func hazard() {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 300, isHazard: true)))
    bench.turn(bench.subscribe(bench.channel("F")), bench.subscribe(bench.driver("D")))
    let out = bench.stand(driver, at: center, seconds: 5)
    #expect(out.events(on: bench.channel("F")).kinds == ["fence_enter"])
    #expect(out.events(on: bench.driver("D")).kinds == ["fence_enter", "hazard"])
  }

  @Test("Speeding is published once, and again only after it was slower for a while")
  func speeding() throws {
    let bench = HubBench()
    let driver = bench.connect("D")
    bench.turn(.put(circle("F", center, 5000, speedLimit: 8.5)))
    bench.turn(bench.subscribe(bench.channel("F")), bench.subscribe(bench.driver("D")))
    var place = center.moved(270, 3000)
    func drive(_ meters: Double, _ speed: Double) -> [HubMessages.Notification] {
      let start = place
      place = start.moved(90, meters)
      return bench.drive(driver, from: start, to: place, speed: speed).events(on: bench.driver("D")).filter {
        $0.kind == .speeding
      }
    }
    #expect(drive(400, 8).isEmpty)
    let received = drive(1000, 12)
    #expect(received.count == 1)
    let notice = try #require(received.first?.fence)
    let speed = try #require(notice.speed)
    #expect(notice.speedLimit == 8.5 && (8.5...13).contains(speed))
    #expect(drive(150, 5).isEmpty)
    #expect(drive(200, 12).count == 1)
    #expect(drive(100, 5).isEmpty)
    #expect(drive(200, 12).isEmpty, "sooner than a minute after the last time")
  }
}
