// Fix times (milliseconds) in ascending order: looked up where a fix comes again, where one was missed, and in the
// journal.

extension [Int64] {
  /// The first place whose value is not less, of values in ascending order. O(log n).
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
