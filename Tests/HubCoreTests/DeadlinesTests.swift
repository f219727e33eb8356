// What comes due when: against a list that is searched.
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct DeadlinesTests {
  private let second: Int64 = 1_000_000_000

  private func drain(_ deadlines: inout Deadlines, uptime: Int64) -> [UInt32] {
    var indices: [UInt32] = []
    while let entry = deadlines.next(uptime: uptime) { indices.append(entry.handle.index) }
    return indices
  }

  @Test("an entry comes up in the first second wholly after its time, never before, and once")
  func firstSecondAfter() {
    var deadlines = Deadlines(uptime: 0)
    deadlines.arm(.trip, Handle(index: 7, generation: 0), at: 2 * second + 1)
    #expect(drain(&deadlines, uptime: 2 * second + 999_999_999) == [])
    #expect(drain(&deadlines, uptime: 3 * second) == [7])
    #expect(drain(&deadlines, uptime: 9 * second) == [])
    #expect(deadlines.count == 0)
  }

  @Test("a time that has passed comes up in the next second that is looked at")
  func past() {
    var deadlines = Deadlines(uptime: 100 * second)
    deadlines.arm(.trip, Handle(index: 1, generation: 0), at: 5 * second)
    #expect(drain(&deadlines, uptime: 101 * second) == [1])
  }

  @Test("agrees with a sorted list while time creeps and leaps", arguments: 1...6 as ClosedRange<UInt64>)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var now = Int64.random(in: 0...1_000_000, using: &random) * 1_000_003
    var deadlines = Deadlines(uptime: now)
    var model: [(index: UInt32, second: Int64)] = []
    var next: UInt32 = 0
    for _ in 0..<400 {
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let at =
          now + Int64.random(in: -5...Int64([3, 90, 90_000].randomElement(using: &random)!), using: &random) * second
          / 2
        deadlines.arm(.trip, Handle(index: next, generation: 0), at: at)
        model.append((next, max(at / second + 1, now / second + 1)))
        next += 1
      }
      now += Int64([0, 1, 2, 70, 100_000].randomElement(using: &random)!) * second / 2 + 7
      let due = drain(&deadlines, uptime: now)
      let expected = model.filter { $0.second <= now / second }.sorted { ($0.second, $0.index) < ($1.second, $1.index) }
      #expect(due == expected.map(\.index), "seed \(seed)")
      model.removeAll { $0.second <= now / second }
      #expect(deadlines.count == model.count)
    }
  }

  @Test("a turn handles so many that are due, and the next turns the others")
  func perTurn() {
    var limits = HubLimits.roomy
    limits.deadlinesPerTurn = 10
    let bench = HubBench(limits: limits)
    let sessions = (0..<25).map { bench.connect("d\($0)", slot: UInt32($0)) }
    bench.turn(sessions.map { .driverDisconnected($0) })
    bench.advance(seconds: 65)
    var online: [Int] = []
    repeat {
      bench.turn()
      online.append(bench.hub.shownCounters().driversOnline)
    } while bench.hub.hasMoreDue && online.count < 5
    #expect(online == [15, 5, 0])
  }
}
