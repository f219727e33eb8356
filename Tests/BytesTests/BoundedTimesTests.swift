// Durations counted by bounds: at a bound, around it, and merged.
import Testing

@testable import HubBytes

@Suite struct BoundedTimesTests {
  @Test func `each duration counts for every bound that it does not pass`() {
    var times = BoundedTimes()
    for microseconds in [0, 1000, 1001, 10_000, 99_999, 1_000_000, 1_000_001] as [Int64] {
      times.record(nanoseconds: microseconds * 1000)
    }
    times.record(nanoseconds: -5)
    #expect(times.upToBounds == [3, 5, 6, 7])
    #expect(times.count == 8 && times.sum == 2_112_001)
  }

  @Test func `what is merged is what would have been counted together`() {
    var (one, other, both) = (BoundedTimes(), BoundedTimes(), BoundedTimes())
    for nanoseconds in stride(from: Int64(0), to: 3_000_000_000, by: 77_777_777) {
      both.record(nanoseconds: nanoseconds)
      if nanoseconds % 2 == 0 { one.record(nanoseconds: nanoseconds) } else { other.record(nanoseconds: nanoseconds) }
    }
    one.merge(other)
    #expect(one.upToBounds == both.upToBounds && one.count == both.count && one.sum == both.sum)
  }
}
