// What was promised and seen, and whether it is true.
import HubMessages

struct Findings {
  /// A trip as riders see it: its events from the first on, and the epoch that their numbers belong to.
  struct Trip {
    var seen: [Publication] = []
    var acked: [TripStatus] = []
  }

  private(set) var trips: [Identifier: Trip] = [:]
  private(set) var broken: [String] = []
  private(set) var ackedMoves = 0
  var ackedBatches = 0
  private(set) var eventsSeen = 0
  private(set) var eventsAudited = 0

  var tripIDs: [Identifier] { Array(trips.keys) }

  mutating func fail(_ text: String) { broken.append(text) }

  mutating func acked(_ trip: Identifier, _ status: TripStatus) {
    trips[trip, default: Trip()].acked.append(status)
    ackedMoves += 1
  }

  /// A rider of the trip, which follows it from before its beginning, was shown an event.
  mutating func saw(_ event: Publication, _ sequence: UInt64, of trip: Identifier) {
    eventsSeen += 1
    let count = trips[trip, default: Trip()].seen.count
    guard sequence == UInt64(count + 1) else {
      return fail("\(trip): a rider saw event \(sequence) after \(count)")
    }
    trips[trip, default: Trip()].seen.append(event)
  }

  /// What was known of a trip when a witness asked: all of it must be shown to it.
  struct Known {
    var seen = 0
    var acked = 0
  }

  func known(of trip: Identifier) -> Known {
    trips[trip].map { Known(seen: $0.seen.count, acked: $0.acked.count) } ?? Known()
  }

  /// A witness was shown the trip's events from the first on.
  mutating func audit(_ trip: Identifier, _ list: [Publication], since known: Known) {
    eventsAudited += list.count
    guard let now = trips[trip] else { return }
    let count = min(list.count, now.seen.count)
    if list.count < known.seen || list[..<count] != now.seen[..<count] {
      fail("\(trip): riders saw \(known.seen) events, the hub has others, or fewer: \(list.count)")
    }
    let statuses = list.compactMap { event in
      if case .tripUpdate(let update) = event.body { update.status } else { nil }
    }
    for status in now.acked.prefix(known.acked) where statuses.count(where: { $0 == status }) != 1 {
      fail("\(trip): \(status) was acked, and the hub has \(statuses)")
    }
  }

  mutating func check(fixes promised: Set<DrivenFix>, stored: Set<DrivenFix>) {
    let missing = promised.subtracting(stored)
    if let one = missing.first {
      fail("\(missing.count) of \(promised.count) fixes are not stored, for instance \(one.driver)'s of \(one.time)")
    }
  }
}
