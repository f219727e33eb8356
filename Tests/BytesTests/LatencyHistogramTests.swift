// Quantiles by buckets against quantiles of the sorted values.
import HubTestSupport
import Testing

@testable import HubBytes

@Suite struct LatencyHistogramTests {
  @Test("every quantile is at least the exact one and at most 1/128 above it", arguments: 1...6 as ClosedRange<UInt64>)
  func errorBound(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var histogram = LatencyHistogram()
    var values: [UInt64] = []
    for _ in 0..<3000 {
      let bits = UInt64.random(in: 0...31, using: &random)
      let value = UInt64.random(in: 0...(1 << bits), using: &random)
      values.append(value)
      histogram.record(microseconds: value)
    }
    values.sort()
    for quantile in [0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1] {
      let rank = max(1, Int((Double(values.count) * quantile).rounded(.up)))
      let exact = values[rank - 1]
      let found = histogram.value(atQuantile: quantile)
      #expect(
        found >= exact && Double(found) <= Double(exact) * (1 + 1 / 128.0), "\(quantile): \(found), exactly \(exact)")
    }
    #expect(histogram.count == 3000)
    #expect(histogram.maximum == values.last)
    #expect(histogram.sum == values.reduce(0, +))
  }

  @Test("every value below 256 µs is exact")
  func small() {
    for value in 0..<256 as Range<UInt64> {
      var histogram = LatencyHistogram()
      histogram.record(microseconds: value)
      histogram.record(microseconds: 1_000_000)
      #expect(histogram.value(atQuantile: 0.5) == value)
    }
  }

  @Test("values beyond the last bucket are counted there, and the maximum is exact")
  func beyond() {
    var histogram = LatencyHistogram()
    histogram.record(microseconds: .max)
    histogram.record(nanoseconds: -5)
    #expect(histogram.maximum == .max)
    #expect(histogram.count == 2)
    #expect(histogram.value(atQuantile: 0) == 0)
    #expect(histogram.value(atQuantile: 1) >= 1 << 32 - 1)
  }

  @Test("more values in one bucket than 32 bits can count are all there")
  func many() {
    var histogram = LatencyHistogram()
    histogram.record(microseconds: 100)
    for _ in 0..<33 { histogram.merge(histogram) }
    #expect(histogram.count == 1 << 33)
    #expect(histogram.count(upTo: .max) == 1 << 33)
  }

  @Test("an empty histogram says 0")
  func empty() {
    #expect(LatencyHistogram().value(atQuantile: 0.99) == 0)
    #expect(LatencyHistogram().count(upTo: 1000) == 0)
  }

  @Test("counts up to a bound never fall and reach the whole; merging adds; resetting forgets")
  func cumulative() {
    var random = SplitMix64(seed: 9)
    var (a, b) = (LatencyHistogram(), LatencyHistogram())
    for _ in 0..<500 {
      a.record(microseconds: UInt64.random(in: 0...100_000, using: &random))
      b.record(microseconds: UInt64.random(in: 0...1000, using: &random))
    }
    var merged = a
    merged.merge(b)
    var last: UInt64 = 0
    for bound in stride(from: 0, through: 110_000, by: 250) as StrideThrough<UInt64> {
      let count = merged.count(upTo: bound)
      #expect(count >= last && count == a.count(upTo: bound) + b.count(upTo: bound))
      last = count
    }
    #expect(last == 1000 && merged.count == 1000)
    merged.reset()
    #expect(merged.count == 0 && merged.maximum == 0 && merged.count(upTo: .max) == 0)
  }

  @Test("the buckets hold every value, in order, each at most as high as its bucket says")
  func buckets() {
    var random = SplitMix64(seed: 11)
    var histogram = LatencyHistogram()
    var values: [UInt64] = []
    for _ in 0..<200 {
      values.append(UInt64.random(in: 0...50_000, using: &random))
      histogram.record(microseconds: values[values.count - 1])
    }
    var last: UInt64?
    for bucket in histogram.buckets {
      #expect(bucket.count > 0 && bucket.microseconds > last ?? 0 || last == nil)
      let below = values.filter { $0 <= bucket.microseconds && ($0 > last ?? 0 || last == nil) }
      #expect(below.count == Int(bucket.count))
      last = bucket.microseconds
    }
    #expect(histogram.buckets.reduce(0) { $0 + $1.count } == 200)
  }
}
