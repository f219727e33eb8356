// The order in which the fixes of a batch are handled.
import HubMessages

extension LocationBatch {
  /// The indices of the fixes, by time. The protocol asks for "oldest first"; where a phone does otherwise, its newest
  /// fix must not make those behind it history.
  var indicesByTime: [Int] {
    var entries: [(time: Int64, index: Int)] = []
    entries.reserveCapacity(fixes.count)
    var newest = Int64.min
    var isInOrder = true
    for (index, fix) in fixes.enumerated() {
      let time = if case .success(let fix) = fix { fix.timestamp.milliseconds } else { newest }
      if time < newest { isInOrder = false }
      newest = max(newest, time)
      entries.append((time, index))
    }
    if !isInOrder { entries.sort { $0 < $1 } }
    return entries.map(\.index)
  }
}
