// The token bucket, with time driven by hand.
import Testing

@testable import Gateway

@Suite struct TokenBucketTests {
  @Test("takes a burst at once, then goes below zero and says for how long")
  func burst() {
    var bucket = TokenBucket(burst: 5, now: 0)
    for _ in 0..<5 {
      let isLevel = bucket.charge(1, rate: 10, burst: 5, now: 0)
      #expect(isLevel)
    }
    let isLevel = bucket.charge(1, rate: 10, burst: 5, now: 0)
    #expect(!isLevel)
    let wait = bucket.wait(rate: 10, burst: 5, now: 0)
    #expect(wait >= 100_000_000 && wait <= 102_000_000)
    let then = bucket.wait(rate: 10, burst: 5, now: wait)
    #expect(then == 0)
  }

  @Test("never holds more than the burst")
  func full() {
    var bucket = TokenBucket(burst: 5, now: 0)
    let hour: Int64 = 3_600_000_000_000
    let results = (0..<6).map { _ in bucket.charge(1, rate: 10, burst: 5, now: hour) }
    #expect(results == [true, true, true, true, true, false])
  }

  @Test("over a long time lets the rate through, whatever the pattern")
  func average() {
    var random = SplitMix64(seed: 3)
    var bucket = TokenBucket(burst: 50, now: 0)
    var now: Int64 = 0
    var taken = 0.0
    while now < 600_000_000_000 {
      now += Int64.random(in: 0..<200_000_000, using: &random)
      guard bucket.wait(rate: 10, burst: 50, now: now) == 0 else { continue }
      let cost = Double(Int.random(in: 1...11, using: &random))
      _ = bucket.charge(cost, rate: 10, burst: 50, now: now)
      taken += cost
    }
    #expect(taken <= 600 * 10 + 50 + 11)
    #expect(taken >= 600 * 10 * 0.9)
  }

  @Test("survives the wrap of its clock after 49 days")
  func wrap() {
    let nearWrap = (Int64(UInt32.max) - 500) * 1_000_000
    var bucket = TokenBucket(burst: 5, now: nearWrap)
    for _ in 0..<10 { _ = bucket.charge(1, rate: 10, burst: 5, now: nearWrap) }
    let wait = bucket.wait(rate: 10, burst: 5, now: nearWrap)
    #expect(wait > 0)
    let then = bucket.wait(rate: 10, burst: 5, now: nearWrap + 1_000_000_000)
    #expect(then == 0)
  }
}
