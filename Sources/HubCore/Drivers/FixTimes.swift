// Which fixes of a driver have come, as far as memory reaches; for older ones the journal is read
// (Batches/HistoryLookups.swift).
import HubMessages

/// The newest fix times of one driver, to recognise duplicates over any transport.
struct FixTimes {
  private let capacity: Int
  /// Ascending.
  private var milliseconds: [Int64] = []

  /// A time at or after this one (ms since 1970) is new unless it is in the list.
  private(set) var completeSince = Int64.min

  /// Begins with the driver's newest fix, nil if it has sent none; one without a record counts as unseen. `latest`: the
  /// latest time of any fix of the driver, later than the newest fix where its clock was set back.
  init(capacity: Int, newest: Timestamp? = nil, isRecorded: Bool = true, completeSince latest: Timestamp? = nil) {
    self.capacity = capacity
    guard let newest else { return }
    if isRecorded { milliseconds = [newest.milliseconds] }
    completeSince = (latest ?? newest).milliseconds
  }

  func contains(_ time: Timestamp) -> Bool { milliseconds.containsAscending(time.milliseconds) }

  /// False for a duplicate. O(log n) to find, O(n) to insert out of order.
  mutating func insert(_ time: Timestamp) -> Bool {
    let value = time.milliseconds
    var low = milliseconds.lowerBound(value)
    if low < milliseconds.count, milliseconds[low] == value { return false }
    if milliseconds.count == capacity {
      if low == 0 { return true }  // older than all that is remembered: unknown, counts as new
      completeSince = max(completeSince, milliseconds.removeFirst() + 1)
      low -= 1
    }
    milliseconds.insert(value, at: low)
    return true
  }
}
