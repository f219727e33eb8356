// Latencies in buckets whose width grows with the value (the idea of HdrHistogram, G. Tene): any value from 1 µs to
// over an hour is kept to within 1/128 of itself, in 26 KiB, without an allocation for each. The hub, the demo and the
// load test all count with it.

/// Counts of durations, in microseconds.
public struct LatencyHistogram: Sendable, Equatable {
  private static let subBucketBits = 7
  private static let subBucketCount = 1 << subBucketBits
  /// Up to 2^32 µs, which is 71 minutes; what takes longer is counted in the last bucket.
  private static let bucketCount = (32 - subBucketBits + 1) * subBucketCount

  private var counts = [UInt64](repeating: 0, count: bucketCount)
  public private(set) var count: UInt64 = 0
  /// Microseconds.
  public private(set) var maximum: UInt64 = 0
  public private(set) var sum: UInt64 = 0

  /// An empty histogram: 26 KiB.
  public init() {}

  /// Counts one duration in µs; one of over 71 minutes is counted in the last bucket. No allocation.
  public mutating func record(microseconds: UInt64) {
    counts[LatencyHistogram.bucket(of: microseconds)] += 1
    count += 1
    sum &+= microseconds
    if microseconds > maximum { maximum = microseconds }
  }

  /// Counts one duration in ns, rounded down to microseconds; a negative one counts as 0.
  public mutating func record(nanoseconds: Int64) { record(microseconds: UInt64(max(0, nanoseconds)) / 1000) }

  /// The value, in microseconds, that `quantile` (0…1) of all values do not exceed, up to the bucket's width.
  public func value(atQuantile quantile: Double) -> UInt64 {
    guard count > 0 else { return 0 }
    let wanted = max(1, UInt64((Double(count) * quantile).rounded(.up)))
    var seen: UInt64 = 0
    for index in counts.indices {
      seen += counts[index]
      if seen >= wanted { return min(LatencyHistogram.upperBound(of: index), maximum) }
    }
    return maximum
  }

  /// How many values are at most `microseconds`, up to the bucket's width.
  public func count(upTo microseconds: UInt64) -> UInt64 {
    let last = LatencyHistogram.bucket(of: microseconds)
    return counts[0...last].reduce(0, +)
  }

  /// Adds the counts of another, for instance of another loop. O(buckets), some 3,300.
  public mutating func merge(_ other: LatencyHistogram) {
    for index in counts.indices { counts[index] += other.counts[index] }
    count += other.count
    sum &+= other.sum
    maximum = max(maximum, other.maximum)
  }

  /// What was counted since the copy `before` was made; the maximum is that of all times.
  public func since(_ before: LatencyHistogram) -> LatencyHistogram {
    var passed = self
    for index in counts.indices { passed.counts[index] &-= before.counts[index] }
    passed.count &-= before.count
    passed.sum &-= before.sum
    return passed
  }

  /// Forgets all that was counted. O(buckets), some 3,300.
  public mutating func reset() { self = LatencyHistogram() }

  /// The buckets that hold anything, from the lowest: the highest value that falls into each, and how many did.
  public var buckets: [(microseconds: UInt64, count: UInt64)] {
    counts.indices.filter { counts[$0] > 0 }.map { (LatencyHistogram.upperBound(of: $0), counts[$0]) }
  }

  /// Below 128 each value has its own bucket; above, each power of two has 128.
  private static func bucket(of value: UInt64) -> Int {
    if value < subBucketCount { return Int(value) }
    let exponent = 63 - value.leadingZeroBitCount
    let offset = Int((value >> UInt64(exponent - subBucketBits)) & UInt64(subBucketCount - 1))
    let index = (exponent - subBucketBits + 1) << subBucketBits + offset
    return min(index, bucketCount - 1)
  }

  private static func upperBound(of index: Int) -> UInt64 {
    if index < subBucketCount { return UInt64(index) }
    let exponent = index >> subBucketBits + subBucketBits - 1
    return (UInt64(subBucketCount + index & (subBucketCount - 1)) + 1) << UInt64(exponent - subBucketBits) - 1
  }
}
