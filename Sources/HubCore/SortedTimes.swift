// Ascending fix times (milliseconds), searched for duplicates and missed fixes, and in the journal.

extension [Int64] {
  /// The first index whose value is not less, of ascending values. O(log n).
  @inline(__always)
  func lowerBound(_ value: Int64) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < value { low = middle + 1 } else { high = middle }
    }
    return low
  }

  func containsAscending(_ value: Int64) -> Bool {
    let index = lowerBound(value)
    return index < count && self[index] == value
  }
}
