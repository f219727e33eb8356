// How often a driver should send: the tree as a table, its borders, and what keeps it from flapping.
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

private let second: Int64 = 1_000_000_000

/// A policy with a clock.
private struct Bench {
  var policy = SamplingPolicy()
  var rules = SamplingRules()
  var uptime: Int64 = 0

  /// The reason sent, if any.
  mutating func decide(
    _ status: DriverStatus = .onTrip, kmh: Double? = nil, isWatched: Bool = false, after seconds: Int64 = 0
  ) -> SamplingReason? {
    uptime += seconds * second
    return policy.decide(status, speed: kmh.map { $0 / 3.6 }, isWatched: isWatched, at: uptime, rules: rules)
  }
}

@Suite struct SamplingPolicyTests {
  /// Status, km/h, whether somebody follows, seconds, reason.
  private static let tree: [(DriverStatus, Double, Bool, Double, SamplingReason)] = [
    (.onTrip, 0, false, 8, .tripSlow), (.onTrip, 20, false, 8, .tripSlow), (.onTrip, 20.1, false, 4, .tripMedium),
    (.onTrip, 50, false, 4, .tripMedium), (.onTrip, 50.1, false, 2, .tripFast), (.onTrip, 300, false, 2, .tripFast),
    (.available, 0, false, 120, .standing), (.available, 3.9, false, 120, .standing),
    (.available, 4.1, false, 30, .moving), (.available, 120, false, 30, .moving),
    (.unavailable, 0, false, 120, .standing), (.unavailable, 60, false, 30, .moving),
    (.background, 0, false, 300, .background), (.background, 120, false, 300, .background),
    (.onTrip, 0, true, 2, .watched), (.onTrip, 30, true, 2, .watched), (.onTrip, 100, true, 2, .tripFast),
    (.available, 0, true, 2, .watched), (.available, 60, true, 2, .watched), (.background, 0, true, 2, .watched),
  ]

  @Test("the tree, as a driver hears it once things have been so for a while", arguments: tree)
  func table(status: DriverStatus, kmh: Double, isWatched: Bool, seconds: Double, reason: SamplingReason) {
    for before in Self.tree {
      var bench = Bench()
      _ = bench.decide(before.0, kmh: before.1, isWatched: before.2)
      _ = bench.decide(before.0, kmh: before.1, isWatched: before.2, after: 60)
      // Well within the band first, for at its lower border the band before is kept.
      for step in 0...3 {
        _ = bench.decide(status, kmh: step == 0 ? min(kmh, kmh * 0.8) : kmh, isWatched: isWatched, after: 30)
      }
      #expect(bench.policy.reason == reason, "after \(before)")
      #expect(bench.rules.interval(bench.policy.reason) == seconds)
    }
  }

  @Test("a shorter interval is sent at once, a longer one only after it has been right for 20 s")
  func hold() {
    var bench = Bench()
    #expect(bench.decide(kmh: 60) == .tripFast)
    #expect(bench.decide(kmh: 5, after: 2) == nil)
    #expect(bench.decide(kmh: 5, after: 18) == nil)
    #expect(bench.decide(kmh: 5, after: 2) == .tripSlow, "20 s after the first slow fix")
    #expect(bench.decide(kmh: 60, after: 8) == .tripFast, "and fast again at once")
  }

  @Test("a red light now and then does not lengthen the interval")
  func redLights() {
    var bench = Bench()
    _ = bench.decide(kmh: 60)
    for _ in 0..<20 {
      for _ in 0..<9 { #expect(bench.decide(kmh: 0, after: 2) == nil) }
      for _ in 0..<9 { #expect(bench.decide(kmh: 60, after: 2) == nil) }
    }
  }

  @Test("a speed that wavers about a border keeps the shorter interval", arguments: [20.0, 50.0])
  func border(kmh: Double) {
    var bench = Bench()
    _ = bench.decide(kmh: kmh + 0.5)
    let received = bench.policy.reason
    for step in 0..<100 { #expect(bench.decide(kmh: step % 2 == 0 ? kmh - 1.9 : kmh + 0.5, after: 10) == nil) }
    #expect(bench.decide(kmh: kmh * 0.89, after: 10) == nil)
    #expect(bench.decide(kmh: kmh * 0.89, after: 20) != nil, "a tenth below, it is another band")
    #expect(bench.policy.reason != received)
  }

  @Test(
    "no two longer intervals are sent within 20 s, whatever the speeds, and a sent one always differs",
    arguments: 0..<8 as Range<UInt64>)
  func noFlapping(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var bench = Bench()
    var interval = bench.rules.interval(bench.policy.reason)
    var lengthened = Int64.min / 2
    var kmh = 30.0
    for _ in 0..<5000 {
      kmh = min(130, max(0, kmh + Double.random(in: -15...15, using: &random)))
      let isWatched = Int.random(in: 0..<50, using: &random) == 0
      let received = bench.decide(kmh: kmh, isWatched: isWatched, after: Int64.random(in: 1...5, using: &random))
      guard let received else { continue }
      let new = bench.rules.interval(received)
      #expect(new != interval)
      if new > interval {
        #expect(bench.uptime - lengthened >= 20 * second)
        lengthened = bench.uptime
      }
      interval = new
    }
  }

  @Test("what a driver does is no noise: the end of a trip and going to the background are sent at once")
  func situations() {
    var bench = Bench()
    _ = bench.decide(.onTrip, kmh: 60)
    #expect(bench.decide(.available, kmh: 60, after: 1) == .moving)
    #expect(bench.decide(.background, kmh: 60, after: 1) == .background)
    #expect(bench.decide(.available, kmh: 60, after: 1) == .moving)
    #expect(bench.decide(.onTrip, kmh: 60, after: 1) == .tripFast)
  }

  @Test("who nobody follows any more may send less, after a while")
  func demandEnds() {
    var bench = Bench()
    #expect(bench.decide(.available, kmh: 0, isWatched: true) == .watched)
    #expect(bench.decide(.available, kmh: 0, after: 2) == nil)
    #expect(bench.decide(.available, kmh: 0, isWatched: true, after: 10) == nil, "somebody looked again")
    #expect(bench.decide(.available, kmh: 0, after: 2) == nil)
    #expect(bench.decide(.available, kmh: 0, after: 19) == nil)
    #expect(bench.decide(.available, kmh: 0, after: 1) == .standing)
  }

  @Test("an unknown speed changes nothing; a driver of whom nothing is known is taken to move slowly")
  func unknownSpeed() {
    var bench = Bench()
    #expect(bench.decide(.available) == nil && bench.policy.reason == .moving)
    #expect(bench.decide(.onTrip) == .tripSlow)
    #expect(bench.decide(.onTrip, kmh: 60) == .tripFast)
    #expect(bench.decide(.onTrip, after: 60) == nil)
  }

  @Test("a session is sent its interval at its start, without waiting")
  func begins() {
    var bench = Bench()
    _ = bench.decide(.onTrip, kmh: 60)
    #expect(bench.policy.begin(.available, isWatched: false, rules: bench.rules) == .moving)
    #expect(bench.policy.begin(.background, isWatched: true, rules: bench.rules) == .watched)
  }

  @Test("with a fixed interval nothing is ever sent")
  func fixed() {
    var bench = Bench()
    bench.rules = .fixed(seconds: 4)
    for (status, kmh, isWatched, _, _) in Self.tree {
      #expect(bench.decide(status, kmh: kmh, isWatched: isWatched, after: 60) == nil)
      #expect(bench.rules.advice(bench.policy.reason).interval == 4)
      #expect(bench.rules.advice(bench.policy.reason).minDistance == 10)
    }
  }

  @Test("a distance goes with short intervals only: of long ones each fix counts")
  func distance() {
    let rules = SamplingRules()
    for reason in SamplingReason.allCases {
      let advice = rules.advice(reason)
      #expect(advice.minDistance == (advice.interval < 30 ? 10 : 0) && advice.reason == reason)
    }
  }

  @Test("it costs a driver 24 bytes")
  func size() {
    #expect(MemoryLayout<SamplingPolicy>.stride == 24)
  }
}
