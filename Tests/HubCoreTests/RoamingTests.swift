// Two drivers near each other.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct RoamingTests {
  let center = at(48.137, 11.575)

  @Test("Two drivers that meet and part enter once and leave once, on the fence's channel and on both drivers'")
  func meeting() throws {
    let bench = HubBench()
    let (a, b) = (bench.connect("A"), bench.connect("B", slot: 1))
    bench.turn(.put(roaming("R", 100)))
    bench.turn(
      bench.subscribe(bench.channel("R")), bench.subscribe(bench.driver("A")), bench.subscribe(bench.driver("B")))
    _ = bench.stand(b, at: center, seconds: 5)
    let out = bench.drive(a, from: center.moved(270, 400), to: center.moved(90, 400))
    let events = out.events(on: bench.channel("R"))
    #expect(events.kinds == ["fence_enter", "fence_exit"])
    #expect(events.allSatisfy { $0.driverID == id("A") && $0.fence?.otherID == id("B") })
    let (near, far) = (try #require(events[0].fence?.distance), try #require(events[1].fence?.distance))
    #expect((85...100).contains(near) && (120...135).contains(far))
    #expect([near, far].contains { $0.rounded() != $0 } && [near, far].allSatisfy { ($0 * 10).rounded() == $0 * 10 })
    #expect(out.events(on: bench.driver("A")).kinds == ["fence_enter", "fence_exit"])
    let others = out.events(on: bench.driver("B")).filter { $0.fence != nil }
    #expect(others.kinds == ["fence_enter", "fence_exit"] && others.allSatisfy { $0.fence?.otherID == id("A") })
    let pairs = bench.hub.fences.pairs.count
    #expect(pairs == 0)
  }

  @Test("Only pairs of one side and the other count, and who goes offline is near nobody")
  func sides() throws {
    let bench = HubBench()
    let sessions = ["A", "B", "C"].enumerated().map { bench.connect($1, slot: UInt32($0)) }
    let word = message("guard").text
    bench.turn(
      .put(roaming("R", 100, drivers: FenceFilter(tags: [word]))),
      .driverStatus(sessions[0], message("s"), DriverStatusReport(status: .available, tags: [word])))
    bench.turn(bench.subscribe(bench.channel("R")))
    var out: [HubOutput] = []
    for _ in 0..<5 {
      for (number, session) in sessions.enumerated() {
        out += bench.turn(bench.fix(session, at: center.moved(0, Double(number) * 10), speed: 0)).all
      }
      bench.advance(seconds: 1)
    }
    #expect(out.events(on: bench.channel("R")).kinds == ["fence_enter", "fence_enter"])
    bench.turn(.driverDisconnected(sessions[1]))
    let offline = (0..<80).flatMap { _ in
      bench.pass(seconds: 1).all + bench.stand(sessions[0], at: center, seconds: 1)
    }
    let exits = offline.events(on: bench.channel("R")).filter { $0.fence?.otherID == id("B") || $0.driverID == id("B") }
    #expect(exits.kinds == ["fence_exit"] && exits.first?.fence?.reason == .offline)
  }

  @Test("A crowd makes as many pairs as the limit lets it, and when all have gone there are none")
  func crowd() {
    var limits = HubLimits.roomy
    limits.pairsPerDriver = 4
    let bench = HubBench(limits: limits)
    let sessions = (0..<30).map { bench.connect("D\($0)", slot: UInt32($0)) }
    bench.turn(.put(roaming("R", 200)))
    for _ in 0..<4 {
      for (number, session) in sessions.enumerated() {
        bench.turn(bench.fix(session, at: center.moved(Double(number) * 12, 20), speed: 0))
      }
      bench.advance(seconds: 1)
    }
    let pairs = bench.hub.fences.pairs.count
    #expect(pairs > 20 && pairs <= 60)
    for session in sessions { bench.turn(.driverDisconnected(session)) }
    bench.tick(seconds: 200)
    let left = bench.hub.fences.pairs.count
    #expect(left == 0)
  }
}
