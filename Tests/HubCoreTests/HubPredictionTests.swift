// Where drivers are by now: what ops are shown beside the last published position.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubPredictionTests {
  private func east(_ meters: Double) -> Coordinate {
    LocalPlane(origin: at(52.5, 13.4)).coordinate(eastMeters: meters, northMeters: 0)
  }

  /// A hub with a driver that has driven east at `speed` for 30 s, its clock an hour behind.
  private func driving(_ speed: Double) -> (HubBench, SessionRef) {
    let bench = HubBench()
    let session = bench.connect("d")
    for step in 0..<30 {
      bench.pass(seconds: 1)
      let phone = bench.clock - 3_600_000
      bench.turn(
        bench.fix(
          session, at: east(Double(step) * speed), speed: speed, heading: 90, milliseconds: phone, sent: phone))
    }
    return (bench, session)
  }

  private func ask(_ bench: HubBench) -> DriverReport? {
    guard let reports = bench.nearby(east(0), radiusMeters: 100_000, limit: 5) else { return nil }
    let report = bench.report(of: "d")
    if let found = reports.first { #expect(found.predicted == report?.predicted) }
    return report
  }

  @Test(
    "a driver is as far ahead of its last position as it drives in the time since; from 10 s on nothing is predicted",
    arguments: [0, 1, 4.5, 10, 10.001, 30] as [Double])
  func ahead(seconds: Double) throws {
    let (bench, _) = driving(15)
    bench.pass(seconds: seconds)
    let report = try #require(ask(bench))
    guard seconds > 0 else {
      #expect(report.predicted == nil, "it is where it was")
      return
    }
    guard seconds <= 10 else {
      #expect(report.predicted == nil, "a car that is shown 10 s ahead for good is nowhere")
      return
    }
    let predicted = try #require(report.predicted)
    #expect(predicted == predicted.published, "it is written with 7 decimals")
    let last = try #require(report.position)
    #expect(abs(last.coordinate.distance(to: predicted) - 15 * seconds) < 0.5 + 0.1 * seconds)
    #expect(predicted.longitude > last.coordinate.longitude)
    #expect(last.age == seconds, "the clock that is an hour behind changes nothing")
  }

  @Test("nearest is by what was published, not by what is predicted")
  func order() throws {
    let (bench, _) = driving(20)
    bench.pass(seconds: 5)
    let reports = try #require(bench.nearby(east(1000), radiusMeters: 100_000, limit: 5))
    let report = try #require(reports.first)
    let place = try #require(report.position?.coordinate)
    #expect(report.distance == (place.distance(to: east(1000)) * 100).rounded() / 100)
  }

  @Test("nothing is predicted of who stands, has no position or is offline")
  func unknown() {
    let (standing, _) = driving(0)
    standing.pass(seconds: 5)
    #expect(ask(standing)?.position != nil && ask(standing)?.predicted == nil)
    let (gone, _) = driving(15)
    gone.tick(seconds: 70)
    #expect(ask(gone)?.isOnline == false && ask(gone)?.predicted == nil)
    let fresh = HubBench()
    _ = fresh.connect("d")
    #expect(ask(fresh)?.predicted == nil)
  }
}
