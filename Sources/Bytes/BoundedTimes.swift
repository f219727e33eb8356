// Durations as a page of metrics shows them: how many were no longer than each of a few bounds. Where there are many of
// these, one for each kind of request, a LatencyHistogram's 26 KiB for each would be too much.

/// Counts of durations by four bounds, in 48 bytes.
public struct BoundedTimes: Sendable {
  /// In microseconds: 1, 10, 100 ms and 1 s.
  public static let bounds: [UInt64] = [1_000, 10_000, 100_000, 1_000_000]

  /// Durations by the first bound that they do not exceed; the last count has those that exceed all.
  private var counts: [5 of UInt64] = .init(repeating: 0)
  /// Microseconds.
  public private(set) var sum: UInt64 = 0

  /// Empty counts.
  public init() {}

  /// Counts one duration, rounded down to microseconds; a negative one counts as 0.
  public mutating func record(nanoseconds: Int64) {
    let microseconds = UInt64(max(0, nanoseconds)) / 1000
    sum &+= microseconds
    counts[BoundedTimes.bounds.firstIndex { microseconds <= $0 } ?? 4] += 1
  }

  /// How many there were.
  public var count: UInt64 { counts.indices.reduce(0) { $0 + counts[$1] } }

  /// How many were no longer than each of the bounds.
  public var upToBounds: [UInt64] {
    var sum: UInt64 = 0
    return BoundedTimes.bounds.indices.map { index in
      sum += counts[index]
      return sum
    }
  }

  /// Adds the counts and the sum of others, for instance of another loop.
  public mutating func merge(_ other: BoundedTimes) {
    for index in counts.indices { counts[index] += other.counts[index] }
    sum &+= other.sum
  }
}
