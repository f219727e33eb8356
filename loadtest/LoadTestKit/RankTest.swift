// Whether two samples differ: the rank sum test of Wilcoxon, and Mann and Whitney, exact for as many values as a series
// of runs has. It asks how often, were the runs dealt out to A and B by chance, the ranks would lie as far to one side
// as they do. It assumes nothing about how figures scatter, which on a shared machine is anything but normal, and one
// wild run weighs no more than its rank.
//
// H. B. Mann, D. R. Whitney: On a Test of Whether One of Two Random Variables is Stochastically Larger (1947).
import Glibc

package enum RankTest {
  /// Values of both samples together up to which every sum of ranks is counted.
  static let maximumCounted = 40

  /// The two-sided probability, 0…1; 1 where one of the samples is empty. Ties get the mean of their ranks.
  ///
  /// O((n + m)² n m) for up to `maximumCounted` values, O((n + m)²) for more.
  package static func probability(_ a: [Double], _ b: [Double]) -> Double {
    let (n, m) = (a.count, b.count)
    guard n > 0, m > 0 else { return 1 }
    let ranks = doubledRanks(a + b)
    let observed = ranks[..<n].reduce(0, +)
    if n + m > maximumCounted { return normal(ranks, observed, n, m) }
    // How many ways there are to choose k of the ranks with a given sum.
    let total = ranks.reduce(0, +)
    var ways = Array(repeating: Array(repeating: 0.0, count: total + 1), count: n + 1)
    ways[0][0] = 1
    for rank in ranks {
      for chosen in stride(from: n, to: 0, by: -1) {
        for sum in stride(from: total, through: rank, by: -1) { ways[chosen][sum] += ways[chosen - 1][sum - rank] }
      }
    }
    let all = ways[n].reduce(0, +)
    // Doubled once more, so that the mean of the sums is a whole number.
    let middle = n * total * 2 / (n + m)
    let distance = abs(observed * 2 - middle)
    let asFar = ways[n].indices.filter { abs($0 * 2 - middle) >= distance }.reduce(0.0) { $0 + ways[n][$1] }
    return min(1, asFar / all)
  }

  /// The two-sided probability of a sum of ranks by the normal distribution, whose variance is less with ties,
  /// corrected for sums being whole numbers (E. L. Lehmann: Nonparametrics, 1975).
  private static func normal(_ doubled: [Int], _ observed: Int, _ n: Int, _ m: Int) -> Double {
    let (first, second, all) = (Double(n), Double(m), Double(n + m))
    var ties: [Int: Double] = [:]
    for rank in doubled { ties[rank, default: 0] += 1 }
    let tied = ties.values.reduce(0) { $0 + ($1 * $1 * $1 - $1) } / (all * (all - 1))
    let deviation = (first * second / 12 * (all + 1 - tied)).squareRoot()
    guard deviation > 0 else { return 1 }
    let distance = abs(Double(observed) / 2 - first * (all + 1) / 2) - 0.5
    return min(1, erfc(max(0, distance) / deviation / 2.0.squareRoot()))
  }

  /// Twice the rank of each value, from 1, so that the mean rank of ties is whole.
  private static func doubledRanks(_ values: [Double]) -> [Int] {
    values.map { value in
      let below = values.count { $0 < value }
      let same = values.count { $0 == value }
      return 2 * below + same + 1
    }
  }

  package static func median(_ values: [Double]) -> Double {
    guard !values.isEmpty else { return 0 }
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  }

  /// The median of the distances from the median (P. J. Huber: Robust Statistics): the scatter.
  package static func medianDeviation(_ values: [Double]) -> Double {
    let center = median(values)
    return median(values.map { abs($0 - center) })
  }
}
