// How much a session may ask for, by hand-driven time.
import HubTestSupport
import Testing

@testable import HubGateway

@Suite struct TokenBucketTests {
  private let millisecond: Int64 = 1_000_000

  @Test("a burst goes through, the next message overdraws, and the wait is as long as the refill takes")
  func burst() {
    var bucket = TokenBucket(burst: 50, now: 0)
    for _ in 0..<50 {
      let isWithin = bucket.charge(1, rate: 10, burst: 50, now: 0)
      #expect(isWithin)
    }
    let isWithin = bucket.charge(1, rate: 10, burst: 50, now: 0)
    #expect(!isWithin)
    let wait = bucket.nanosecondsUntilLevel(rate: 10, burst: 50, now: 0)
    #expect(wait == 101 * millisecond)
    let after = bucket.nanosecondsUntilLevel(rate: 10, burst: 50, now: wait)
    #expect(after == 0)
  }

  @Test("at a rate of next to nothing the wait is a day, and no number too large", arguments: [1e-10, 1e-300, 0.0001])
  func slowest(rate: Double) {
    var bucket = TokenBucket(burst: 1, now: 0)
    for _ in 0..<200 { _ = bucket.charge(100, rate: rate, burst: 1, now: 0) }
    let waits = [
      bucket.nanosecondsUntilLevel(rate: rate, burst: 1, now: 0),
      bucket.nanosecondsUntil(has: 1, rate: rate, burst: 1, now: 0),
    ]
    #expect(waits == [86_400_001 * millisecond, 86_400_001 * millisecond])
  }

  @Test("it never holds more than the burst, however long a session is idle")
  func ceiling() {
    var bucket = TokenBucket(burst: 5, now: 0)
    let hour = 3_600_000 * millisecond
    var passed = 0
    while bucket.charge(1, rate: 10, burst: 5, now: hour) { passed += 1 }
    #expect(passed == 5)
  }

  @Test("what is sent at the rate always goes through, at any spacing", arguments: [1, 7, 100, 1000] as [Int64])
  func steady(spacing: Int64) {
    var bucket = TokenBucket(burst: 50, now: 0)
    var now: Int64 = 0
    for _ in 0..<5000 {
      now += spacing * millisecond
      let isWithin = bucket.charge(Double(spacing) / 1000 * 9.99, rate: 10, burst: 50, now: now)
      #expect(isWithin)
    }
  }

  @Test("over a long time no more than rate × time + burst goes through")
  func bound() {
    var random = SplitMix64(seed: 4)
    var bucket = TokenBucket(burst: 20, now: 0)
    var now: Int64 = 0
    var passed = 0.0
    for _ in 0..<20_000 {
      now += Int64.random(in: 0...40, using: &random) * millisecond / 3
      guard bucket.nanosecondsUntilLevel(rate: 10, burst: 20, now: now) == 0 else { continue }
      _ = bucket.charge(1, rate: 10, burst: 20, now: now)
      passed += 1
    }
    let most = 21 + 10 * Double(now) / 1e9  // the last one may overdraw
    #expect(passed <= most * 1.001 && passed >= most * 0.99)
  }

  @Test("the millisecond counter wraps after 49 days without losing tokens")
  func wrap() {
    let before = (Int64(UInt32.max) - 500) * millisecond
    var bucket = TokenBucket(burst: 10, now: before)
    _ = bucket.charge(10, rate: 10, burst: 10, now: before)
    let isWithin = bucket.charge(10, rate: 10, burst: 10, now: before + 1000 * millisecond)
    #expect(isWithin)
  }

  @Test("loops that share a bucket are each at a time of their own: an earlier one neither fills it nor turns it back")
  func earlierTime() {
    let (start, ms) = (Int64(7_200_000_000_000), Int64(1_000_000))
    var bucket = TokenBucket(burst: 10, now: start)
    _ = bucket.charge(60, rate: 1, burst: 10, now: start)
    let times = [-1, -2, -1000, -3_600_000, 1000, 40 * 86_400_000] as [Int64]
    let levels = times.map { bucket.level(rate: 1, burst: 10, now: start + $0 * ms) }
    #expect(levels == [-50, -50, -50, -50, -49, 10], "and full after 40 idle days")
  }
}
