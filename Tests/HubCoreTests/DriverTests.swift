// The parts of a driver's record: its session's clock, its replacements, the times of its fixes.
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct SessionClockTests {
  @Test("without an observation the session's clock counts as the hub's")
  func unknown() {
    #expect(SessionClock().age(of: time(1000), at: time(3500)) == 2.5)
  }

  @Test("the offset is the smallest of receive time − envelope timestamp, because delay only adds")
  func smallest() {
    var clock = SessionClock()
    clock.observe(sent: time(10_000), received: time(17_000))  // 5 s behind, 2 s on the way
    clock.observe(sent: time(20_000), received: time(25_000))  // 5 s behind, at once
    clock.observe(sent: time(30_000), received: time(39_000))  // 5 s behind, 4 s on the way
    #expect(clock.age(of: time(40_000), at: time(46_000)) == 1)
  }

  @Test("a clock that is ahead gives the same age, and no age is negative")
  func ahead() {
    var clock = SessionClock()
    clock.observe(sent: time(100_000), received: time(40_000))
    #expect(clock.age(of: time(100_000), at: time(42_000)) == 2)
    #expect(clock.age(of: time(200_000), at: time(42_000)) == 0)
  }

  @Test(
    "messages by a wrong clock, before it is set right, count for no more than two windows of time",
    arguments: [(40_000, 60), (86_400_000, 2), (3_000_000_000_000, 1)] as [(Int64, Int64)])
  func recovers(ahead: Int64, seconds: Int64) {
    var clock = SessionClock()
    let window = Int64(1) << SessionClock.windowBits
    for second in 0..<window * 3 / 1000 {
      let now = second * 1000
      clock.observe(sent: time(second < seconds ? now + ahead : now), received: time(now + 200))
      let age = clock.age(of: time(now), at: time(now + 200))
      if now >= 2 * window { #expect(age == 0, "second \(second)") }
    }
  }

  @Test("the offset is the smallest of the two newest windows in which something came")
  func windows() throws {
    var random = SplitMix64(seed: 7)
    for _ in 0..<40 {
      var clock = SessionClock()
      var now: Int64 = 1_763_680_000_000
      var smallest: [(window: Int64, offset: Int64)] = []
      for _ in 0..<200 {
        now += .random(in: 0...(Bool.random(using: &random) ? 20_000 : 600_000), using: &random)
        let difference = Int64.random(in: -1 << 14...1 << 14, using: &random) >> Int.random(in: 0...12, using: &random)
        clock.observe(sent: time(now - difference), received: time(now))
        let window = now >> SessionClock.windowBits
        if let last = smallest.last, last.window == window {
          smallest[smallest.count - 1].offset = min(last.offset, difference)
        } else {
          smallest.append((window, difference))
        }
        #expect(clock.offsetMilliseconds == smallest.suffix(2).map(\.offset).min())
      }
    }
  }
}

@Suite struct ReplacementWindowTests {
  private let second: Int64 = 1_000_000_000

  @Test("three replacements in 60 s are allowed; the fourth is refused for 30 s, and then the count begins anew")
  func fourth() {
    var window = ReplacementWindow()
    let timings = HubTimings()
    for step in 0..<3 as Range<Int64> { #expect(window.replace(at: step * second, timings: timings) == nil) }
    #expect(window.replace(at: 3 * second, timings: timings) == 30)
    #expect(window.replace(at: 13 * second, timings: timings) == 20)
    #expect(window.replace(at: 33 * second - 1, timings: timings)! < 1e-8)
    for step in 33..<36 as Range<Int64> { #expect(window.replace(at: step * second, timings: timings) == nil) }
    #expect(window.replace(at: 36 * second, timings: timings) == 30)
  }

  @Test("a replacement leaves the window after 60 s")
  func slides() {
    var window = ReplacementWindow()
    for step in 0..<100 as Range<Int64> {
      #expect(window.replace(at: step * 20 * second, timings: HubTimings()) == nil)
    }
  }
}

@Suite struct FixTimesTests {
  @Test("agrees with a sorted list of the newest times", arguments: 1...4 as ClosedRange<UInt64>)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let capacity = 12
    var times = FixTimes(capacity: capacity)
    var model: [Int64] = []
    for step in 0..<2000 as Range<Int64> {
      let value = step / 10 + Int64.random(in: 0..<30, using: &random)
      let isKnown = model.contains(value)
      #expect(times.insert(time(value)) == !isKnown, "seed \(seed)")
      if !isKnown { model = ((model + [value]).sorted().suffix(capacity)) }
    }
  }

  @Test("a time older than all that is remembered counts as new, and is not remembered instead of a newer one")
  func older() {
    var times = FixTimes(capacity: 2)
    for value in [10, 20] as [Int64] { _ = times.insert(time(value)) }
    #expect(times.insert(time(5)) == true)
    #expect(times.insert(time(5)) == true)
    #expect(times.insert(time(10)) == false)
    #expect(times.insert(time(20)) == false)
  }
}
