// LatencyHistogram against a sorted list.
import Testing

@testable import Gateway

@Suite struct LatencyHistogramTests {
  @Test("a quantile is within 1/32 of the value in a sorted list")
  func quantiles() {
    var random = SplitMix64(seed: 7)
    var histogram = LatencyHistogram()
    var values: [UInt64] = []
    for _ in 0..<5000 {
      // All magnitudes alike, from 1 µs to an hour.
      let magnitude = UInt64.random(in: 1..<32, using: &random)
      let value = UInt64.random(in: 0..<(1 << magnitude), using: &random)
      values.append(value)
      histogram.record(microseconds: value)
    }
    values.sort()
    for quantile in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1] {
      let exact = values[max(0, Int((Double(values.count) * quantile).rounded(.up)) - 1)]
      let found = histogram.value(atQuantile: quantile)
      #expect(found >= exact)
      #expect(found <= exact + exact / 32 + 1)
    }
    #expect(histogram.count == 5000)
    #expect(histogram.maximum == values.last)
    #expect(histogram.sum == values.reduce(0, +))
  }

  @Test("merging two is like recording all in one")
  func merging() {
    var both = LatencyHistogram()
    var first = LatencyHistogram()
    var second = LatencyHistogram()
    for value in UInt64(0)..<1000 {
      both.record(microseconds: value * value)
      if value % 3 == 0 {
        first.record(microseconds: value * value)
      } else {
        second.record(microseconds: value * value)
      }
    }
    first.merge(second)
    #expect(first.count == both.count)
    #expect(first.maximum == both.maximum)
    for quantile in [0.1, 0.5, 0.99] {
      #expect(first.value(atQuantile: quantile) == both.value(atQuantile: quantile))
    }
    first.reset()
    #expect(first.value(atQuantile: 0.5) == 0)
  }

  @Test("the count up to a bound never falls, and ends at all")
  func cumulative() {
    var histogram = LatencyHistogram()
    for value in [0, 1, 31, 32, 33, 1000, 65_535, 65_536, UInt64.max / 2] { histogram.record(microseconds: value) }
    var before: UInt64 = 0
    for bound in [0, 1, 31, 32, 100, 1000, 2000, 65_535, 100_000, UInt64.max] {
      let count = histogram.count(upTo: bound)
      #expect(count >= before)
      before = count
    }
    #expect(before == histogram.count)
  }

  @Test("a negative duration counts as none")
  func negative() {
    var histogram = LatencyHistogram()
    histogram.record(nanoseconds: -5)
    #expect(histogram.maximum == 0 && histogram.count == 1)
  }
}
