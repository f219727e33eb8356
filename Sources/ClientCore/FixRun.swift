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
