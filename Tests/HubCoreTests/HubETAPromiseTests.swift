// What one believes who counts down to the last ETA that was published, at any moment of a drive; and how many are
// published for that.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubETAPromiseTests {
  @Test(
    "two minutes into a drive at a constant speed a reader is never off by more than 5 %, or 5 s",
    arguments: [3.0, 5, 8, 10, 15, 20, 30], [1.0, 4])
  func constantSpeed(speed: Double, interval: Double) throws {
    let seconds = 900.0
    let length = speed * seconds
    let trip = try TripBench(dropoff: (length, 0), route: [(0, 0), (length / 2, 0), (length, 0)])
    trip.fix((0, 0), speed: speed, heading: 90)
    trip.move(.arrivedPickup, .tripStarted)
    let begun = trip.second
    trip.drive(from: (0, 0), to: (length, 0), speed: speed, interval: interval)
    let published = trip.etas.filter { $0.update.target == .dropoff }
    var worst = (part: 0.0, published: 0.0, truth: 0.0)
    for tenth in 1200..<Int(seconds * 10) {
      let second = Double(tenth) / 10
      let newest = try #require(published.last { $0.second - begun <= second })
      let truth = seconds - second
      let published = newest.update.arrivalTime.seconds(since: trip.bench.now.timestamp) + seconds - second
      let part = abs(published - truth) / max(5, 0.05 * truth)
      if part > worst.part { worst = (part, published, truth) }
    }
    #expect(worst.part <= 1, "\(worst.published) s were published for \(worst.truth) s")
    #expect(published.count <= 30, "\(published.count)")
  }

  /// Fixes of a drive, as a trip to where it ends, along its own way.
  private func etas(of fixes: [Fix]) throws -> Int {
    let bench = HubBench()
    let (first, last) = try (#require(fixes.first), #require(fixes.last))
    let session = bench.connect("d")
    bench.turn(bench.subscribe(bench.trip("t")))
    let way = Polyline.simplify(fixes.map(\.coordinate), toleranceMeters: 10).map { fixes[$0].coordinate }
    let report = TripStatusReport(
      tripID: id("t"), status: .requested, timestamp: bench.now.timestamp, dropoff: last.coordinate,
      driverID: id("d"), route: try Route(points: way))
    bench.turn(
      .tripStatus(
        TripStatusInput(
          session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .ops, id: id("o")),
          messageID: bench.freshMessage(), report: report, tripIsGranted: true)))
    for step in [TripStatus.accepted, .driverEnRoute, .arrivedPickup, .tripStarted] {
      bench.turn(bench.move(.driver, "d", "t", step))
    }
    let start = bench.clock - first.timestamp.milliseconds
    var count = 0
    var published: (arrival: Timestamp, at: Int64)?
    for fix in fixes {
      let due = start + fix.timestamp.milliseconds
      bench.advance(seconds: Double(due - bench.clock) / 1000)
      let turn = bench.turn(
        bench.fix(
          session, trip: "t", at: fix.coordinate, accuracy: fix.accuracy ?? 5, speed: fix.speed, heading: fix.heading))
      for update in turn.etas where update.target == .dropoff {
        count += 1
        if let published { #expect(bench.clock - published.at >= 5000) }
        published = (update.arrivalTime, bench.clock)
      }
    }
    return count
  }

  @Test("in stop and go, where the pace changes all the time, ETAs come 5.5 s apart or more on the average")
  func stopAndGo() throws {
    var counts: [Int] = []
    for seed in 1...5 as ClosedRange<UInt64> {
      let drive = SimulatedDrive(seed: seed, seconds: 1200)
      counts.append(try etas(of: drive.fixes(PhoneErrors(), seed: seed).map(\.fix)))
    }
    print("ETAs of simulated town drives of 1,200 s: \(counts)")
    #expect(counts.allSatisfy { Double($0) <= 1200 / 5.5 }, "\(counts)")
  }

  @Test("on recorded drives likewise", arguments: ["phone_hwy_20200514_pixel4", "spp_mixed_20210428_pixel5_a"])
  func recorded(name: String) throws {
    guard let trace = TruthTrace(name) else {
      print("skipped: there is no ../shared/data/traces/\(name).csv")
      return
    }
    let (first, last) = try (#require(trace.fixes.first), #require(trace.fixes.last))
    let seconds = last.timestamp.seconds(since: first.timestamp)
    let count = try etas(of: trace.fixes)
    print("ETAs of \(name), \(Int(seconds)) s: \(count)")
    #expect(Double(count) <= seconds / 5.5, "\(count) in \(seconds) s")
  }
}
