// How sessions are closed on a drain: all at once, or evenly over a time.
import HubRuntime
import Testing

@testable import HubGateway

@Suite struct DrainTests {
  private static let second: Int64 = 1_000_000_000

  @Test("without a spread all are closed at once; the loop ends when they have gone, or after its time")
  func together() {
    let lifecycle = Lifecycle(delaySeconds: 2)
    var drain = Drain(seconds: 4)
    #expect(drain.step(lifecycle, 7, connections: 7, now: 0) == .serve(until: nil))
    lifecycle.requestStop(at: 10)
    #expect(drain.step(lifecycle, 7, connections: 7, now: 20) == .serve(until: 2 * Self.second + 10))
    #expect(!drain.isDraining)
    #expect(drain.step(lifecycle, 7, connections: 7, now: 2 * Self.second + 10) == .dismiss(0..<7))
    #expect(drain.isDraining)
    #expect(drain.step(lifecycle, 7, connections: 1, now: 3 * Self.second) == .wait)
    #expect(drain.step(lifecycle, 7, connections: 0, now: 3 * Self.second) == .stop)
    #expect(drain.step(lifecycle, 7, connections: 1, now: 6 * Self.second + 10) == .stop)
  }

  @Test("10,000 sessions over 20 s: each is closed once, never more than 700 in any second, and no newcomer is taken")
  func spread() {
    let lifecycle = Lifecycle(delaySeconds: 0, spreadSeconds: 20)
    var drain = Drain(seconds: 4)
    lifecycle.requestStop(at: 0)
    var closed: [Int64] = []
    for now in stride(from: Int64(0), through: 20 * Self.second, by: 20_000_000) {
      switch drain.step(lifecycle, 10_000, connections: 10_000 - closed.count, now: now) {
      case .dismiss(let slots):
        #expect(slots.lowerBound == closed.count)
        closed += slots.map { _ in now }
      case .wait: #expect(now > 0, "the first step ends admission")
      case .serve, .stop: Issue.record("at \(now)")
      }
    }
    #expect(closed.count == 10_000)
    for start in stride(from: Int64(0), through: 20 * Self.second, by: 100_000_000) {
      let inSecond = closed.filter { $0 >= start && $0 < start + Self.second }.count
      #expect(inSecond <= 700, "\(inSecond) from \(start)")
    }
    #expect(drain.step(lifecycle, 10_000, connections: 0, now: 20 * Self.second) == .stop)
  }
}
