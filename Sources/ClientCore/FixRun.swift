// Runs of fixes that the hub has not confirmed become batches, which cost it least.
import HubMessages

/// Consecutive fixes of the same trip, for one batch.
struct FixRun {
  let maximum: Int
  private var fixes: [Fix] = []
  private var trip: TripName?
  private var number: UInt64 = 0
  private var first: UInt64 = 0

  init(maximum: Int) { self.maximum = maximum }

  func takes(_ trip: TripName?) -> Bool {
    fixes.isEmpty || fixes.count < maximum && trip?.id == self.trip?.id
  }

  mutating func append(_ fix: Fix, _ trip: TripName?, _ number: UInt64) {
    if fixes.isEmpty { first = number }
    fixes.append(fix)
    self.trip = trip
    self.number = number
  }

  /// A resent batch as single fixes where it has more than `maximum`, which another hub may not take; else unchanged.
  /// The fixes get numbers between those of its first and its last.
  static func parts(of entry: SendQueue.Entry, atMost maximum: Int) -> [SendQueue.Entry] {
    guard case .resentFixes(let queued) = entry.payload, case .locationBatch(let batch) = queued.message,
      batch.fixes.count > maximum, let first = queued.first
    else { return [entry] }
    let trip = batch.tripID.map { TripName($0) }
    return zip(first..., batch.fixes).compactMap { number, fix in
      guard case .success(let fix) = fix else { return nil }
      return SendQueue.Entry(number: number, payload: .fix(fix, trip))
    }
  }

  /// The batch has the number of its last fix, so that numbers still ascend. The protocol asks for oldest first.
  mutating func finish(into entries: inout [SendQueue.Entry]) {
    guard !fixes.isEmpty else { return }
    fixes.sort { $0.timestamp < $1.timestamp }
    let batch = LocationBatch(tripID: trip?.id, fixes: fixes.map { .success($0) })
    entries.append(
      SendQueue.Entry(number: number, payload: .resentFixes(QueuedMessage(.locationBatch(batch), first: first))))
    fixes.removeAll()
    trip = nil
  }
}
