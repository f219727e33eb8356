// The order in which the fixes of a batch are handled.
import HubMessages

extension LocationBatch {
  /// The places of the fixes, by time. "Oldest first" is what the protocol asks for; where a phone does otherwise, its
  /// newest fix must not make history of those behind it.
  var placesByTime: [Int] {
    var places: [(time: Int64, place: Int)] = []
    places.reserveCapacity(fixes.count)
    var newest = Int64.min
    var isInOrder = true
    for (place, fix) in fixes.enumerated() {
      let time = if case .success(let fix) = fix { fix.timestamp.milliseconds } else { newest }
      if time < newest { isInOrder = false }
      newest = max(newest, time)
      places.append((time, place))
    }
    if !isInOrder { places.sort { $0 < $1 } }
    return places.map(\.place)
  }
}
