// Fixes of phone apps in their own formats: presence by the app's interval, and the trip that the driver is on.
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubPhonesTests {
  private func post(
    _ bench: HubBench, _ driver: String = "d", fixes: [Result<Fix, ErrorCode>]? = nil, phone: PhoneFormat? = .ownTracks
  ) -> HubInput {
    var batch = BatchInput(
      session: bench.session(slot: 50), driverID: id(driver), messageID: bench.freshMessage(),
      sent: bench.now.timestamp, received: bench.now,
      batch: LocationBatch(fixes: fixes ?? [bench.measured(bench.clock)]), tripIsGranted: false)
    batch.phone = phone
    batch.takesCurrentTrip = true
    return .batch(batch)
  }

  @Test("three days of a fix each 300 s never make the driver offline, from the first one on")
  func threeDays() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.driver("d")))
    for _ in 0..<864 {
      #expect(bench.turn(post(bench)).acks.count == 1)
      #expect(bench.tick(seconds: 300).notifications.isEmpty)
    }
    #expect(bench.hub.counters.positionsPublished == 864)
    #expect(bench.tick(seconds: 440).notifications.isEmpty, "2.5 × 300 s from the last one, 300 s ago")
    #expect(bench.tick(seconds: 12).notifications.map(\.kind) == [.driverOffline])
    #expect(bench.turn(post(bench)).notifications.map(\.kind) == [.driverOnline])
  }

  @Test("the operator says how seldom an app may send; who posts in no app's format is not meant")
  func ownInterval() {
    var timings = HubTimings()
    timings.deviceInterval = 3600
    let bench = HubBench(timings: timings)
    bench.turn(bench.subscribe(bench.driver("d")), bench.subscribe(bench.driver("e")))
    bench.turn(post(bench, "d"), post(bench, "e", phone: nil))
    let reported = bench.tick(seconds: 8990).notifications
    #expect(reported.map(\.kind) == [.driverOffline] && reported.first?.driverID == id("e"))
    #expect(bench.tick(seconds: 70).notifications.map(\.driverID) == [id("d")])
  }

  @Test("fixes belong to the one trip that the driver is on; with none or two, to none")
  func currentTrip() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t1")), bench.subscribe(bench.trip("t2")))
    func trips() -> [Identifier?] {
      bench.advance(seconds: 5)
      return bench.turn(post(bench)).positions.map(\.tripID)
    }
    #expect(trips() == [])
    bench.turn(bench.move(.ops, "o", "t1", .requested, driver: "d"))
    #expect(trips() == [], "it has not accepted")
    bench.turn(bench.move(.driver, "d", "t1", .accepted))
    #expect(trips() == [id("t1")])
    bench.turn(bench.move(.ops, "o", "t2", .requested, driver: "d"), bench.move(.driver, "d", "t2", .accepted))
    #expect(trips() == [], "on two, nobody knows which")
    bench.turn(bench.move(.ops, "o", "t1", .cancelled))
    #expect(trips() == [id("t2")])
    for status in [TripStatus.driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination] {
      bench.turn(bench.move(.driver, "d", "t2", status))
      #expect(trips() == [id("t2")])
    }
    bench.turn(bench.move(.driver, "d", "t2", .completed))
    #expect(trips() == [])
  }

  @Test(
    "of three trips the one that is left is meant, in whatever order the others end",
    arguments: ["abc", "acb", "bac", "bca", "cab", "cba"])
  func lastOfThree(order: String) {
    let bench = HubBench()
    for name in ["a", "b", "c"] {
      bench.turn(bench.subscribe(bench.trip(name)))
      bench.turn(bench.move(.ops, "o", name, .requested, driver: "d"))
      bench.turn(bench.move(.driver, "d", name, .accepted))
    }
    let names = order.map { String($0) }
    for (count, name) in names.enumerated() {
      bench.advance(seconds: 5)
      #expect(bench.turn(post(bench)).positions.map(\.tripID) == (count == 2 ? [id(name)] : []))
      bench.turn(bench.move(.ops, "o", name, .cancelled))
    }
    bench.advance(seconds: 5)
    #expect(bench.turn(post(bench)).positions.isEmpty)
  }

  @Test("what was measured before the trip was accepted belongs to none, however late it comes")
  func backlog() {
    let bench = HubBench()
    bench.turn(bench.subscribe(bench.trip("t")), bench.subscribe(bench.driver("d")))
    bench.advance(seconds: 600)
    bench.turn(bench.move(.ops, "o", "t", .requested, driver: "d"))
    bench.turn(bench.move(.driver, "d", "t", .accepted))
    let accepted = bench.clock
    bench.advance(seconds: 20)
    let times = [-300_000, -1000, 1000, 15_000].map { accepted + Int64($0) }
    let positions = bench.turn(post(bench, fixes: times.map { bench.measured($0) })).positions
    #expect(positions.filter { $0.tripID == nil }.map(\.timestamp) == times.prefix(2).map { time($0) })
    #expect(Set(positions.filter { $0.tripID != nil }.map(\.timestamp)) == Set(times.suffix(2).map { time($0) }))
  }

  @Test("when a trip was accepted is known after a restart, and each part of a backlog has its record")
  func backlogAfterRestart() throws {
    let first = try DurableBench()
    first.turn([first.move(.ops, "o", "T", .requested)])
    first.advance(seconds: 600)
    first.turn([first.move(.driver, "D", "T", .accepted)])
    first.store()
    let accepted = first.now.timestamp.milliseconds
    let bench = try first.restarted(after: 20, fromSnapshot: true)
    var batch = BatchInput(
      session: DurableBench.session, driverID: id("D"), messageID: bench.freshMessage(), sent: bench.now.timestamp,
      received: bench.now,
      batch: LocationBatch(
        fixes: [-300_000, -1000, 1000, 15_000].map {
          .success(Fix(coordinate: at(52.5, 13.4), timestamp: time(accepted + $0), accuracy: 5))
        }), tripIsGranted: false)
    batch.takesCurrentTrip = true
    bench.turn([.batch(batch)])
    var trips: [Identifier?] = []
    for record in bench.submitted {
      try record.withUnsafeBytes { bytes in
        var reader = RecordReader(bytes)
        while let record = try DurableRecord.next(from: &reader) {
          if case .fixes(let fixes) = record { trips.append(fixes.tripID) }
        }
      }
    }
    #expect(trips == [nil, id("T")])
  }

  @Test("what comes is counted by app and outcome, and a message without a position as ignored")
  func counts() {
    let bench = HubBench()
    let now = bench.clock
    bench.turn(
      post(bench, fixes: [bench.measured(now), bench.measured(now), .failure(.invalidLocation)], phone: .overland),
      post(bench, fixes: [], phone: .ownTracks), post(bench, fixes: [], phone: .ownTracks))
    #expect(bench.hub.counters.phoneFixes == [[0, 0, 0, 2], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]])
  }
}
